"""Anthropic's Messages."""

from collections.abc import Container, Mapping, Sequence
from typing import Any, ClassVar

from clew.core.items import Item
from clew.wire.formats.anthropic import asking, codec, media, tools, writing
from clew.wire.formats.anthropic.answers import MessagesAnswer
from clew.wire.formats.anthropic.codec import LIST, NAME
from clew.wire.formats.anthropic.joining import MessagesStream
from clew.wire.formats.anthropic.rules import RULES
from clew.wire.formats.base import (
    ApiAct,
    CallResult,
    Format,
    ParameterKeys,
    Provider,
    is_seen,
    texts,
    with_block,
    with_wire,
)
from clew.wire.formats.plain import Block

__all__ = ["LIST", "NAME", "Anthropic"]

ERROR_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


class Anthropic(Format):
    """Results are blocks of the user's."""

    NAME, LIST, RULES = NAME, LIST, RULES
    number = 1
    provider = Provider("anthropic", "https://api.anthropic.com", ("ANTHROPIC_API_KEY",), "x-api-key")
    answer, joined = staticmethod(MessagesAnswer), staticmethod(MessagesStream)
    answer_block, events = staticmethod(writing.answer_block), staticmethod(writing.events)
    question = staticmethod(asking.question)
    split, join = staticmethod(codec.split), staticmethod(codec.join)
    read, write = staticmethod(codec.read), staticmethod(codec.write)
    read_choice, write_tools = staticmethod(tools.read_choice), staticmethod(tools.write_tools)
    read_media, write_media = staticmethod(media.read_media), staticmethod(media.write_media)
    parameters = ParameterKeys("max_tokens", stop="stop_sequences")
    paths: ClassVar[Mapping[str, ApiAct]] = {"/v1/messages": "answer", "/v1/messages/count_tokens": "count"}
    usage_keys = ("input_tokens",)
    counted_answer = ("max_tokens",)
    refuses_empty_text = declares_calls = joins_results = keeps_marks = True
    least_limit = 8192
    warmest = 1
    mark: ClassVar[Block] = {"type": "ephemeral"}

    def has_failed(self, result: Item) -> bool:
        return (result.wire or {}).get("is_error") is True

    def with_parts(self, result: Item, parts: Sequence[str | Block], failed: bool) -> Item:
        if not (failed or is_seen(parts)):
            return result
        content = texts(parts, {"type": "text"}) if is_seen(parts) else result.text
        return with_wire(result, {"content": content} | ({"is_error": True} if failed else {}))

    def with_tail(self, messages: list[Any], text: str) -> list[Any]:
        return with_block(messages, {"type": "text", "text": text})

    def results(self, results: Sequence[CallResult]) -> list[Block]:
        blocks = [
            {"type": "tool_result", "tool_use_id": r.id, "content": r.text} | ({"is_error": True} if r.failed else {})
            for r in results
        ]
        return [{"role": "user", "content": blocks}] if blocks else []

    def is_spoken(self, path: str, headers: Container[str]) -> bool:
        return "anthropic-version" in headers or path.startswith("/v1/messages")

    def error(self, status: int, message: str, code: str | None = None) -> Block:
        kind = ERROR_KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}}

    def without(self, answer: Any, calls: Container[str], left: bool) -> Any:
        answer["content"] = [block for block in answer.get("content") or () if block.get("id") not in calls]
        if not left and answer.get("stop_reason"):  # who has nothing to call has ended
            answer["stop_reason"] = "end_turn"
        return answer
