"""Answers of Anthropic's Messages that tell what the gateway did to a history: its edits, and a summary of it."""

from collections.abc import Iterator
from contextlib import aclosing, suppress
from typing import Any

from clew.core import rawjson
from clew.errors import BadRequest
from clew.exchange.transport import Chunks
from clew.gateway.http import GatewayReply
from clew.llm.streaming.events import Events, read

Block = dict[str, Any]


def telling(reply: GatewayReply, applied: list[Block], summary: str | None) -> GatewayReply:
    """A reply that says which edits were applied, after the summary that was made."""
    done = {"applied_edits": applied}
    if isinstance(reply.said, bytes):
        with suppress(BadRequest):
            answer = rawjson.loads(reply.said)
            led = [{"type": "compaction", "content": summary}] if summary else []
            told = {**answer, "content": [*led, *answer["content"]], "context_management": done}
            reply.said = rawjson.dumps(told)
    else:
        reply.said = _streamed(reply.said, done, summary)
    return reply


def compaction_events(summary: str, index: int = 0) -> list[Block]:
    """A summary as a stream says it: in one piece."""
    return [
        {"type": "content_block_start", "index": index, "content_block": {"type": "compaction", "content": None}},
        {"type": "content_block_delta", "index": index, "delta": {"type": "compaction_delta", "content": summary}},
        {"type": "content_block_stop", "index": index},
    ]


async def _streamed(chunks: Chunks, done: Block, summary: str | None) -> Chunks:
    events = Events()
    async with aclosing(chunks):
        async for chunk in chunks:
            if out := b"".join(part for raw in events.add(chunk) for part in _told(raw, done, summary)):
                yield out
    if rest := b"".join(part for raw in events.end() for part in _told(raw, done, summary)):
        yield rest


def _told(raw: bytes, done: Block, summary: str | None) -> Iterator[bytes]:
    if summary is None and b'"message_delta"' not in raw:
        yield raw
        return
    try:
        said = read(raw)
    except BadRequest:
        yield raw
        return
    match said.get("type"):
        case "message_start" if summary is not None:
            yield raw
            yield from map(_sse, compaction_events(summary))
        case "message_delta":
            yield _sse({**said, "context_management": done})
        case _ if "index" in said and summary is not None:
            yield _sse({**said, "index": said["index"] + 1})
        case _:
            yield raw


def _sse(event: Block) -> bytes:
    return f"event: {event['type']}\n".encode() + b"data: " + rawjson.dumps(event) + b"\n\n"
