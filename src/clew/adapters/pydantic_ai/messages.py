"""Messages of Pydantic AI as those of Anthropic, whose blocks are nearest to its parts, and back."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as with_
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    CapabilityLoadDeltaPart,
    FilePart,
    FileUrl,
    ImageUrl,
    InstructionBaselinePart,
    InstructionDeltaPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelSettingsDeltaPart,
    NativeToolCallPart,
    NativeToolReturnPart,
    RetryPromptPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolAvailabilityDeltaPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext

from clew.adapters.restoring import restored
from clew.core import rawjson

PYDANTIC_FORMAT = "anthropic"

WireBlock = Mapping[str, Any]
# Not said by anybody: what holds from a place in the history on. It is always sent.
STANDING = (
    SystemPromptPart,
    InstructionBaselinePart,
    InstructionDeltaPart,
    ToolAvailabilityDeltaPart,
    CapabilityLoadDeltaPart,
    ModelSettingsDeltaPart,
)
REDACTED = "redacted_thinking"  # the id that Pydantic AI gives a thought only its provider can read
OPENAI_REASONING = "rs_"  # how the ids of OpenAI's reasoning begin


def frame_of(asked: ModelRequestContext) -> dict[str, Any]:
    """What a request says beside its messages."""
    told = asked.model_request_parameters
    held = (part for message in asked.messages for part in message.parts)
    system = [part.content for part in told.instruction_parts or ()]
    system += [
        part.content for part in held if isinstance(part, SystemPromptPart | InstructionDeltaPart) and part.content
    ]
    tools = [
        {"name": tool.name, "description": tool.description or "", "input_schema": tool.parameters_json_schema}
        for tool in (*told.function_tools, *told.output_tools)
    ]
    given: dict[str, Any] = {"model": asked.model.model_name, "system": "\n\n".join(system), "tools": tools}
    if most := (asked.model_settings or {}).get("max_tokens"):
        given["max_tokens"] = most
    return {key: value for key, value in given.items() if value}


class Converted:
    """Messages of an agent as clew reads them, with the way back to its own objects."""

    def __init__(self, messages: Sequence[ModelMessage]) -> None:
        self._made: dict[bytes, tuple[Any, ModelMessage]] = {}  # what a block was made of, and where that stands
        self._calls: dict[str, tuple[ToolCallPart, ModelMessage]] = {}
        self._results: dict[str, tuple[ToolReturnPart | RetryPromptPart, ModelMessage]] = {}
        self._held = [(message, self._wire(message)) for message in messages]
        self.messages = [one for _, wire in self._held for one in wire]

    def back(self, sent: Sequence[Mapping[str, Any]]) -> list[ModelMessage]:
        """The messages to send, the agent's own objects where they are unchanged."""
        out = restored(sent, self._held, self._message)
        there = {id(part) for message in out for part in message.parts}
        standing = [
            part
            for message, _ in self._held
            for part in message.parts
            if isinstance(part, STANDING) and id(part) not in there
        ]
        if standing:
            if isinstance(first := out[0], ModelRequest):
                return [with_(first, parts=[*standing, *first.parts]), *out[1:]]
            return [ModelRequest(standing), *out]
        return out

    def _wire(self, message: ModelMessage) -> list[dict[str, Any]]:
        if isinstance(message, ModelResponse):
            blocks, role = [*self._answer_blocks(message)], "assistant"
        else:
            # A provider wants the results of calls before all else.
            blocks = sorted(self._asked(message), key=lambda block: block["type"] != "tool_result")
            role = "user"
        return [{"role": role, "content": blocks}] if blocks else []

    def _answer_blocks(self, message: ModelResponse) -> Iterator[WireBlock]:
        parts = list(message.parts)
        native = [i for i, part in enumerate(parts) if isinstance(part, NativeToolCallPart | NativeToolReturnPart)]
        for i, part in enumerate(parts):
            if native and i == native[0]:  # what a provider's own tools did stays together
                yield self._known(_text(_joined_words(parts[i : native[-1] + 1])), parts[i : native[-1] + 1], message)
            elif native and native[0] < i <= native[-1]:
                continue
            elif isinstance(part, ToolCallPart):
                self._calls[part.tool_call_id] = part, message
                given = part.args_as_dict()
                call = {"type": "tool_use", "id": part.tool_call_id, "name": part.tool_name, "input": given}
                yield self._known(call, [part], message)
            elif isinstance(part, ThinkingPart):
                if part.content or part.signature:
                    yield self._known(_thought(part), [part], message)
            elif isinstance(part, FilePart):
                yield self._known(_file(part.content), [part], message)
            elif text := _joined_words([part]):
                yield self._known(_text(text), [part], message)

    def _asked(self, message: ModelRequest) -> Iterator[WireBlock]:
        for part in message.parts:
            if isinstance(part, STANDING):
                continue
            if isinstance(part, ToolReturnPart) or (isinstance(part, RetryPromptPart) and part.tool_name):
                self._results[part.tool_call_id] = part, message
                yield self._known(_result(part), part, message)
            elif isinstance(part, UserPromptPart):
                said = [part.content] if isinstance(part.content, str) else part.content
                for content in said:
                    if (block := _content(content)) is not None:
                        yield self._known(block, content, message)
            elif text := _joined_words([part]):
                yield self._known(_text(text), part, message)

    def _known(self, block: WireBlock, made_of: Any, message: ModelMessage) -> WireBlock:
        self._made[rawjson.dumps(block)] = made_of, message
        return block

    def _message(self, message: Mapping[str, Any]) -> ModelMessage:
        content = message["content"]
        blocks = [_text(content)] if isinstance(content, str) else content
        found = [self._made.get(rawjson.dumps(block)) or self._changed(block) for block in blocks]
        if message["role"] != "assistant":
            asked = next((owner for _, owner in found if isinstance(owner, ModelRequest)), None)
            return with_(asked, parts=_parts(found)) if asked else ModelRequest(_parts(found))
        parts = [
            part for made_of, _ in found for part in (made_of if isinstance(made_of, list) else [TextPart(made_of)])
        ]
        said = next((owner for _, owner in found if isinstance(owner, ModelResponse)), None)
        return with_(said, parts=_unbound(parts, said)) if said else ModelResponse(parts)

    def _changed(self, block: WireBlock) -> tuple[Any, ModelMessage | None]:
        """What a block of clew's is, in the place of what it was."""
        if block["type"] == "tool_use" and block["id"] in self._calls:
            call, owner = self._calls[block["id"]]
            return [with_(call, args=dict(block["input"]))], owner
        if block["type"] == "tool_result" and block["tool_use_id"] in self._results:
            result, asked = self._results[block["tool_use_id"]]
            text = _words(block.get("content"))
            if result.tool_name and getattr(result, "tool_kind", None):  # its content has a shape that a text has not
                return ToolReturnPart(result.tool_name, text, result.tool_call_id), asked
            return with_(result, content=text), asked
        return str(block.get("text") or block.get("content") or ""), None


def _parts(found: Iterable[tuple[Any, Any]]) -> list[Any]:
    """The parts of a request; what the user said one thing after the other is one prompt."""
    parts: list[Any] = []
    said: list[Any] = []
    for made_of, _ in found:
        if isinstance(made_of, str | TextContent | BinaryContent | FileUrl) or not hasattr(made_of, "part_kind"):
            said.append(made_of)
        else:
            parts += _prompt(said)
            said = []
            parts.append(made_of)
    return parts + _prompt(said)


def _prompt(said: list[Any]) -> list[UserPromptPart]:
    if not said:
        return []
    return [UserPromptPart(said[0] if len(said) == 1 and isinstance(said[0], str) else said)]


def _unbound(parts: Iterable[Any], owner: ModelResponse) -> list[Any]:
    """The parts of a changed response: ids of OpenAI bind its reasoning to all that came with it, and are used once."""
    if any(isinstance(part, ThinkingPart) and str(part.id).startswith(OPENAI_REASONING) for part in owner.parts):
        parts = (part for part in parts if not isinstance(part, ThinkingPart))
    return [with_(part, id=None) if isinstance(part, TextPart | ToolCallPart) and part.id else part for part in parts]


def _text(text: str) -> WireBlock:
    return {"type": "text", "text": text}


def _thought(part: ThinkingPart) -> WireBlock:
    if part.id == REDACTED:
        return {"type": REDACTED, "data": part.signature or ""}
    signed = {"signature": part.signature} if part.signature else {}
    return {"type": "thinking", "thinking": part.content, **signed}


def _result(part: ToolReturnPart | RetryPromptPart) -> WireBlock:
    text = part.model_response_str() if isinstance(part, ToolReturnPart) else part.model_response()
    files = [_file(file) for file in part.files] if isinstance(part, ToolReturnPart) else []
    return {
        "type": "tool_result",
        "tool_use_id": part.tool_call_id,
        "content": [*([_text(text)] if text else []), *files] if files else text,
    }


def _content(content: Any) -> WireBlock | None:
    if isinstance(content, CachePoint) or content == "":
        return None
    if isinstance(content, str):
        return _text(content)
    return _text(content.content) if isinstance(content, TextContent) else _file(content)


def _file(content: Any) -> WireBlock:
    if isinstance(content, BinaryContent):
        kind = "image" if content.is_image else "document"
        data = b64encode(content.data).decode()
        return {"type": kind, "source": {"type": "base64", "media_type": content.media_type, "data": data}}
    kind = "image" if isinstance(content, ImageUrl) else "document"
    url = content.url if isinstance(content, FileUrl) else content.identifier
    return {"type": kind, "source": {"type": "url", "url": url}}


def _joined_words(parts: Sequence[Any]) -> str:
    """What parts of other kinds say, in words."""
    return "\n".join(filter(None, map(_worded, parts)))


def _worded(part: Any) -> str:
    if isinstance(part, NativeToolCallPart):
        return f"{part.tool_name} {part.args_as_json_str()}"
    if isinstance(part, NativeToolReturnPart):
        return part.model_response_str()
    if callable(respond := getattr(part, "model_response", None)):  # what Pydantic AI says to a bad answer
        return str(respond())
    said = getattr(part, "content", None) or getattr(part, "transcript", None)
    return said if isinstance(said, str) else ""


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block["text"]) for block in content or () if "text" in block)
