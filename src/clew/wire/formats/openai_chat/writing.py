"""An answer of Chat Completions, as OpenAI writes it; thoughts as DeepSeek, vLLM and others add them."""

from collections.abc import Iterator
from typing import Any

from clew.wire.streams.writing import ProviderBody, WrittenTurn, sse

WHY = {"end": "stop", "length": "length", "window": "length", "filter": "content_filter"}


def in_one_piece(turn: WrittenTurn) -> ProviderBody:
    """An answer in one piece."""
    answer = turn.answer
    message: ProviderBody = {"role": "assistant", "content": answer.text or (None if answer.calls else "")}
    message |= {"reasoning_content": answer.reasoning} if answer.reasoning else {}
    message |= {"tool_calls": [call for call, _ in _calls(turn)]} if answer.calls else {}
    message |= {"refusal": None, "annotations": []}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _why(turn)}
    return {**_head(turn, "chat.completion"), "choices": [choice], "usage": _usage(turn)}


def stream(turn: WrittenTurn, error: ProviderBody | None = None) -> Iterator[bytes]:
    """An answer in deltas, with its usage where the request asks for it; an error ends it."""
    head = _head(turn, "chat.completion.chunk")
    asked = bool((turn.body.get("stream_options") or {}).get("include_usage"))
    usage: ProviderBody = {"usage": None} if asked else {}

    def chunk(delta: ProviderBody, why: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": why}
        return sse({**head, "choices": [choice], **usage})

    yield from map(chunk, _deltas(turn))
    if error:
        yield sse(error)
        return
    yield chunk({}, _why(turn))
    if asked:
        yield sse({**head, "choices": [], "usage": _usage(turn)})
    yield sse("[DONE]")


def _deltas(turn: WrittenTurn) -> Iterator[ProviderBody]:
    answer = turn.answer
    calls = list(_calls(turn))
    opening: ProviderBody = {"role": "assistant", "content": None if calls and not answer.text else "", "refusal": None}
    if len(calls) == 1 and not answer.text and not answer.reasoning:
        yield {**opening, "tool_calls": [_opened(0, calls[0][0])]}  # a single call comes with the role
    else:
        yield opening
    yield from ({"reasoning_content": piece} for piece in turn.pieces(answer.reasoning))
    yield from ({"content": piece} for piece in turn.pieces(answer.text))
    for n, (call, arguments) in enumerate(calls):
        if len(calls) > 1 or answer.text or answer.reasoning:
            yield {"tool_calls": [_opened(n, call)]}
        for piece in turn.pieces(arguments):
            yield {"tool_calls": [{"index": n, "function": {"arguments": piece}}]}


def _opened(n: int, call: ProviderBody) -> ProviderBody:
    return {"index": n, **call, "function": {**call["function"], "arguments": ""}}


def _calls(turn: WrittenTurn) -> Iterator[tuple[ProviderBody, str]]:
    for n, call in enumerate(turn.answer.calls):
        function = {"name": call.name, "arguments": call.written}
        yield {"id": call.id or turn.id("call_", n), "type": "function", "function": function}, call.written


def _why(turn: WrittenTurn) -> str:
    return "tool_calls" if turn.answer.calls and turn.answer.stop == "end" else WHY[turn.answer.stop]


def _head(turn: WrittenTurn, kind: str) -> dict[str, Any]:
    made = {"id": turn.id("chatcmpl-"), "object": kind, "created": turn.created, "model": turn.model}
    return {**made, "service_tier": "default", "system_fingerprint": "fp_a1b2c3d4e5"}


def _usage(turn: WrittenTurn) -> ProviderBody:
    spent = turn.spent
    return {
        "prompt_tokens": spent.input,
        "completion_tokens": turn.output,
        "total_tokens": spent.input + turn.output,
        "prompt_tokens_details": {"cached_tokens": spent.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": turn.thought,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
