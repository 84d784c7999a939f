"""Amazon Bedrock's Converse, as its SDK takes it."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from clew.core.items import Item
from clew.wire.formats.base import CallResult, Format, ParameterKeys, is_seen, texts, with_block, with_wire
from clew.wire.formats.bedrock import codec, media, tools
from clew.wire.formats.bedrock.codec import LIST, NAME
from clew.wire.formats.bedrock.documents import with_documents
from clew.wire.formats.bedrock.rules import RULES
from clew.wire.formats.plain import Block
from clew.wire.formats.tools import Choice, ToolDeclaration

__all__ = ["LIST", "NAME", "Bedrock"]


class Bedrock(Format):
    """Blocks have no type: each is under the key that names it."""

    NAME, LIST, RULES = NAME, LIST, RULES
    number = 4
    split, join = staticmethod(codec.split), staticmethod(codec.join)
    read, write = staticmethod(codec.read), staticmethod(codec.write)
    read_choice, write_tools = staticmethod(tools.read_choice), staticmethod(tools.write_tools)
    read_media, write_media = staticmethod(media.read_media), staticmethod(media.write_media)
    parameters = ParameterKeys("maxTokens", "temperature", "topP", "", "stopSequences", "inferenceConfig")
    model_key = "modelId"
    user_first = refuses_empty_text = refuses_empty_results = declares_calls = joins_results = keeps_marks = True
    warmest = 1
    mark: ClassVar[Block] = {"cachePoint": {"type": "default"}}

    def system(self, text: str) -> Block:
        return {"system": [{"text": text}]}

    def declaring(self, tools: list[Any]) -> Block:
        return {"toolConfig": {"tools": tools}}

    def with_tools(self, body: Mapping[str, Any], tools: list[ToolDeclaration]) -> Block:
        config, new = body.get("toolConfig") or {}, self.write_tools(tools, Choice())["toolConfig"]
        return {**body, "toolConfig": {**config, "tools": [*config.get("tools", ()), *new["tools"]]}}

    def content_of(self, result: Item) -> Any:
        return _inner(result).get("content")

    def has_failed(self, result: Item) -> bool:
        return _inner(result).get("status") == "error"

    def with_parts(self, result: Item, parts: Sequence[str | Block], failed: bool) -> Item:
        if not (failed or is_seen(parts)):
            return result
        given = {"toolUseId": result.call_id, "content": texts(parts, {})}
        return with_wire(result, {"toolResult": given | ({"status": "error"} if failed else {})})

    def arranged(self, items: list[Item]) -> list[Item]:
        return with_documents(items)

    def with_tail(self, messages: list[Any], text: str) -> list[Any]:
        return with_block(messages, {"text": text})

    def results(self, results: Sequence[CallResult]) -> list[Block]:
        blocks = [
            {"toolUseId": r.id, "content": [{"text": r.text or "[empty]"}]} | ({"status": "error"} if r.failed else {})
            for r in results
        ]
        return [{"role": "user", "content": [{"toolResult": block} for block in blocks]}] if blocks else []

    def begun(self, text: str) -> Block:
        return {"role": "assistant", "content": [{"text": text}]}

    def asked(self, text: str) -> Block:
        return {"role": "user", "content": [{"text": text}]}


def _inner(result: Item) -> Mapping[str, Any]:
    held = (result.wire or {}).get("toolResult")
    return held if isinstance(held, Mapping) else {}
