"""The JSON in which each API answers."""

from dataclasses import dataclass
from typing import Any

from clew import rawjson
from clew.provider.cache import tokens
from clew.usage import Spent

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the provider says to one request; with an `error`, that and a status."""

    text: str = "Understood."
    calls: tuple[str, ...] = ()
    reasoning: str = ""
    cut: bool = False
    status: int = 200
    error: str = ""
    seconds: float = 0  # before it is sent
    raw: bytes | None = None  # sent as it is, whatever it is


def error(message: str, kind: str) -> bytes:
    """A refusal, in a shape that all SDKs read."""
    return rawjson.dumps({"type": "error", "error": {"type": kind, "message": message, "code": kind}})


def said(path: str, body: Body, answer: Answer, spent: Spent) -> Body:
    """An answer as the API behind a path gives it."""
    output = tokens(answer.text + answer.reasoning)
    match path:
        case "/v1/chat/completions":
            return _chat(body, answer, spent, output)
        case "/v1/responses":
            return _responses(body, answer, spent, output)
        case "/v1/responses/compact":
            return _compacted(body, answer, spent, output)
        case _:
            return _messages(body, answer, spent, output)


def _chat(body: Body, answer: Answer, spent: Spent, output: int) -> Body:
    calls = [
        {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for i, name in enumerate(answer.calls)
    ]
    message: Body = {"role": "assistant", "content": answer.text or None}
    message |= {"tool_calls": calls} if calls else {}
    message |= {"reasoning_content": answer.reasoning} if answer.reasoning else {}
    why = "length" if answer.cut else "tool_calls" if calls else "stop"
    usage = {
        "prompt_tokens": spent.input,
        "completion_tokens": output,
        "total_tokens": spent.input + output,
        "prompt_tokens_details": {"cached_tokens": spent.cache_read},
    }
    choice = {"index": 0, "message": message, "finish_reason": why}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "model": body.get("model")}
    return {**head, "choices": [choice], "usage": usage}


def _responses(body: Body, answer: Answer, spent: Spent, output: int) -> Body:
    items: list[Body] = []
    if answer.reasoning:
        items.append(
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": answer.reasoning}]}
        )
    if answer.text:
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "content": [part]})
    items += [
        {"type": "function_call", "id": f"fc_{i}", "call_id": f"call_{i}", "name": name, "arguments": "{}"}
        for i, name in enumerate(answer.calls)
    ]
    done = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    state = done if answer.cut else {"status": "completed"}
    head = {"id": "resp_1", "object": "response", "model": body.get("model"), **state}
    return {**head, "output": items, "usage": _usage(spent, output)}


def _compacted(body: Body, answer: Answer, spent: Spent, output: int) -> Body:
    """All that the user said, and one item that only the provider can read."""
    said = body["input"] if isinstance(body["input"], list) else [{"role": "user", "content": body["input"]}]
    kept = [item for item in said if item.get("role") == "user"]
    sealed = {"type": "compaction", "id": "cmp_1", "encrypted_content": answer.text}
    return {"id": "resp_1", "object": "response.compaction", "output": [*kept, sealed], "usage": _usage(spent, output)}


def _usage(spent: Spent, output: int) -> Body:
    cached = {"cached_tokens": spent.cache_read}
    return {"input_tokens": spent.input, "input_tokens_details": cached, "output_tokens": output}


def _messages(body: Body, answer: Answer, spent: Spent, output: int) -> Body:
    edits = (body.get("context_management") or {}).get("edits") or ()
    compacts = [edit for edit in edits if edit.get("type") == "compact_20260112"]
    if compacts and spent.input >= compacts[0]["trigger"]["value"]:
        blocks: list[Body] = [{"type": "compaction", "content": answer.text}]
        why = "compaction"
    else:
        blocks = [{"type": "thinking", "thinking": answer.reasoning, "signature": "c2ln"}] if answer.reasoning else []
        blocks += [{"type": "text", "text": answer.text}] if answer.text else []
        blocks += [{"type": "tool_use", "id": f"toolu_{i}", "name": n, "input": {}} for i, n in enumerate(answer.calls)]
        why = "max_tokens" if answer.cut else "tool_use" if answer.calls else "end_turn"
    usage = {
        "input_tokens": spent.input - spent.cache_read - spent.cache_write,
        "cache_read_input_tokens": spent.cache_read,
        "cache_creation_input_tokens": spent.cache_write,
        "output_tokens": output,
    }
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model"), "content": blocks}
    return {**message, "stop_reason": why, "stop_sequence": None, "usage": usage}
