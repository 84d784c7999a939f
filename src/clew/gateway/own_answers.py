"""Answers that no model gave, in the shape in which one would have: whole, or as a stream."""

import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from uuid import uuid4

from clew.core import rawjson
from clew.gateway.http import GatewayReply, json_reply, just
from clew.tokens import counter_for

Block = dict[str, Any]


CHARACTERS = 4  # in a token, more or less, of a request


class TokensRead(NamedTuple):
    """Tokens as a provider would have counted them: Qwen Code takes no summary that did not read what it stands for."""

    read: int
    written: int

    @classmethod
    def of(cls, raw: bytes, text: str, model: str, format: str) -> "TokensRead":
        """By a request and its answer."""
        return cls(max(1, len(raw) // CHARACTERS), counter_for(model, format).text(text))


def answer(text: str, format: str, model: str, streamed: bool, spent: TokensRead, alt: str = "") -> GatewayReply:
    """What a client gets that asked for text."""
    match format:
        case "anthropic":
            block = {"type": "text", "text": text}
            return _messages(block, _text_events(text), "end_turn", model, streamed, spent)
        case "openai_responses":
            return responses([_message(text)], model, streamed, spent)
        case "gemini":
            return _gemini(text, model, streamed, spent, alt)
    return _chat(text, model, streamed, spent)


def _sse(events: Iterator[tuple[str, Mapping[str, Any]]], end: bytes = b"") -> GatewayReply:
    parts = [
        (f"event: {name}\n".encode() if name else b"") + b"data: " + rawjson.dumps(e) + b"\n\n" for name, e in events
    ]
    headers = [("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache")]
    return GatewayReply(200, headers, just(b"".join(parts) + end))


def _text_events(text: str) -> list[Block]:
    return [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
    ]


def _messages(
    block: Block, growing: list[Block], stop: str, model: str, streamed: bool, spent: TokensRead
) -> GatewayReply:
    message = {"id": f"msg_{uuid4().hex}", "type": "message", "role": "assistant", "model": model}
    usage = {
        "input_tokens": spent.read,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": spent.written,
    }
    ended = {"stop_reason": stop, "stop_sequence": None}
    if not streamed:
        return json_reply(rawjson.dumps({**message, "content": [block], **ended, "usage": usage}))
    begun: Block = {
        **message,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }
    events: list[Block] = [
        {"type": "message_start", "message": begun},
        *growing,
        {"type": "message_delta", "delta": ended, "usage": usage},
        {"type": "message_stop"},
    ]
    return _sse((event["type"], event) for event in events)


def _chat(text: str, model: str, streamed: bool, spent: TokensRead) -> GatewayReply:
    about = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time.time()), "model": model}
    usage = {"prompt_tokens": spent.read, "completion_tokens": spent.written, "total_tokens": sum(spent)}
    if not streamed:
        said = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": said, "finish_reason": "stop", "logprobs": None}
        return json_reply(rawjson.dumps({**about, "object": "chat.completion", "choices": [choice], "usage": usage}))
    about["object"] = "chat.completion.chunk"

    def chunk(delta: Block, finish: str | None = None) -> tuple[str, Block]:
        return "", {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    events = [
        chunk({"role": "assistant", "content": text}),
        chunk({}, "stop"),
        ("", {**about, "choices": [], "usage": usage}),
    ]
    return _sse(iter(events), b"data: [DONE]\n\n")


def _message(text: str) -> Block:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def responses(
    output: list[Block], model: str, streamed: bool, spent: TokensRead, kind: str = "response"
) -> GatewayReply:
    """A response of OpenAI's with these items."""
    usage = {
        "input_tokens": spent.read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": spent.written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sum(spent),
    }
    about: Block = {"id": f"resp_{uuid4().hex}", "object": kind, "created_at": int(time.time()), "model": model}
    whole = {**about, "status": "completed", "output": output, "usage": usage, "error": None}
    if not streamed:
        return json_reply(rawjson.dumps(whole))
    begun = {**about, "status": "in_progress", "output": [], "usage": None, "error": None}
    events: list[Block] = [{"type": f"response.{name}", "response": begun} for name in ("created", "in_progress")]
    for index, item in enumerate(output):
        events += _item(item, index)
    events.append({"type": "response.completed", "response": whole})
    return _sse((event["type"], {**event, "sequence_number": n}) for n, event in enumerate(events))


def _item(item: Block, index: int) -> Iterator[Block]:
    place = {"output_index": index}
    if item["type"] == "message":
        at = {**place, "item_id": item["id"], "content_index": 0}
        [part] = item["content"]
        yield {"type": "response.output_item.added", **place, "item": {**item, "status": "in_progress", "content": []}}
        yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
        yield {"type": "response.output_text.delta", **at, "delta": part["text"], "logprobs": []}
        yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **at, "part": part}
    else:
        yield {"type": "response.output_item.added", **place, "item": item}
    yield {"type": "response.output_item.done", **place, "item": item}


def _gemini(text: str, model: str, streamed: bool, spent: TokensRead, alt: str) -> GatewayReply:
    said = {
        "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": spent.read,
            "candidatesTokenCount": spent.written,
            "totalTokenCount": sum(spent),
        },
        "modelVersion": model,
        "responseId": uuid4().hex,
    }
    if streamed and alt == "sse":
        return _sse(iter([("", said)]))
    return json_reply(rawjson.dumps([said] if streamed else said))


OPENED = "failed open: the request went on as it came"
DEGRADED = "the store fails: the request was fitted from memory, and is not in the log"


def marked(reply: GatewayReply, how: str = OPENED) -> GatewayReply:
    """A reply that says that clew had no part in it, or not all of it."""
    reply.headers = [*reply.headers, ("x-clew", how)]
    return reply
