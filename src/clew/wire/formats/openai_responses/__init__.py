"""OpenAI's Responses."""

from collections.abc import Container, Mapping, Sequence
from typing import Any, ClassVar

from clew.core.items import Item
from clew.errors import ModelError
from clew.wire.formats.base import (
    ApiAct,
    ApiCall,
    CallResult,
    Format,
    ModelQuestion,
    ParameterKeys,
    is_seen,
    texts,
    with_wire,
)
from clew.wire.formats.openai_chat import OPENAI
from clew.wire.formats.openai_chat.media import read_media
from clew.wire.formats.openai_chat.tools import read_choice
from clew.wire.formats.openai_responses import codec, writing
from clew.wire.formats.openai_responses.answers import ResponsesAnswer
from clew.wire.formats.openai_responses.codec import LIST, NAME
from clew.wire.formats.openai_responses.joining import ResponsesStream
from clew.wire.formats.openai_responses.media import write_media
from clew.wire.formats.openai_responses.rules import RULES
from clew.wire.formats.openai_responses.tools import write_tools
from clew.wire.formats.plain import Block
from clew.wire.formats.tools import Choice, ToolDeclaration

__all__ = ["LIST", "NAME", "OpenAIResponses"]


class OpenAIResponses(Format):
    """Items and not messages; its provider keeps what it is sent unless it is told not to."""

    NAME, LIST, RULES = NAME, LIST, RULES
    number = 2
    provider = OPENAI
    answer, joined = staticmethod(ResponsesAnswer), staticmethod(ResponsesStream)
    answer_block, events = staticmethod(writing.answer_block), staticmethod(writing.events)
    split, join = staticmethod(codec.split), staticmethod(codec.join)
    read, write = staticmethod(codec.read), staticmethod(codec.write)
    read_choice, write_tools = staticmethod(read_choice), staticmethod(write_tools)
    read_media, write_media = staticmethod(read_media), staticmethod(write_media)
    parameters = ParameterKeys("max_output_tokens", stop="")
    paths: ClassVar[Mapping[str, ApiAct]] = {
        "/v1/responses": "answer",
        "/v1/responses/input_tokens": "count",
        "/v1/responses/compact": "compact",
    }
    usage_keys = ("input_tokens", "total_tokens")
    says_system = True
    fixed: ClassVar[Mapping[str, Any]] = {"store": False}  # no other format has it kept unasked

    def question(self, asked: ModelQuestion) -> Block:
        first = [{"role": "system", "content": asked.system}] if asked.system else []
        body = asked.after or {LIST: first, "store": False}
        if body.get("conversation"):
            raise ModelError("the provider keeps this conversation, where the question would stay", "refused")
        body.pop("background", None)
        before = [self.asked(body[LIST])] if isinstance(body[LIST], str) else body[LIST]
        return {**body, LIST: [*before, self.asked(asked.text)], "max_output_tokens": max(asked.limit, 16)}  # no less

    def system(self, text: str) -> Block:
        return {"instructions": text}

    def added_tools(self, body: Mapping[str, Any]) -> list[Any]:
        """As Codex sends them for its newest models."""
        history = body.get(LIST)
        first = history[0] if isinstance(history, list) and history else None
        if not isinstance(first, Mapping) or first.get("type") != "additional_tools":
            return []
        tools = first.get("tools")
        return tools if isinstance(tools, list) else []

    def with_tools(self, body: Mapping[str, Any], tools: list[ToolDeclaration]) -> Block:
        if not (others := self.added_tools(body)) or body.get("tools"):
            return super().with_tools(body, tools)
        first, *history = body[LIST]
        return {**body, LIST: [{**first, "tools": [*others, *write_tools(tools, Choice())["tools"]]}, *history]}

    def content_of(self, result: Item) -> Any:
        return (result.wire or {}).get("output")

    def with_parts(self, result: Item, parts: Sequence[str | Block], failed: bool) -> Item:
        if not is_seen(parts):
            return result
        output = texts(parts, {"type": "input_text"})
        return with_wire(result, {"type": "function_call_output", "call_id": result.call_id, "output": output})

    def with_tail(self, messages: list[Any], text: str) -> list[Any]:
        """Nothing may follow the item with which a client has its provider compact."""
        if messages and messages[-1].get("type") == "compaction_trigger":
            return messages
        return super().with_tail(messages, text)

    def read_request_below(self, path: str) -> ApiCall | None:
        """Such a URL need not end with a version."""
        found = (act for known, act in self.paths.items() if path.endswith(known.removeprefix("/v1")))
        return next((ApiCall(NAME, act) for act in found), None)

    def counted(self, tokens: int) -> Block:
        return {"object": "response.input_tokens", "input_tokens": tokens}

    def results(self, results: Sequence[CallResult]) -> list[Block]:
        return [{"type": "function_call_output", "call_id": r.id, "output": r.text} for r in results]

    def begun(self, text: str) -> Block:
        return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}

    def without(self, answer: Any, calls: Container[str], left: bool) -> Any:
        output = answer.get("output") or ()
        return {**answer, "output": [item for item in output if item.get("call_id", item.get("id")) not in calls]}
