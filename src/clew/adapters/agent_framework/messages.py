"""Messages of Agent Framework as those of Anthropic, whose blocks are nearest to its contents, and back."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

from agent_framework import Content, FunctionTool, Message

from clew.adapters.restoring import WireMessage, restored
from clew.core import rawjson

AGENT_FRAMEWORK_FORMAT = "anthropic"
STANDING_ROLES = ("system", "developer")  # whose messages are always sent
UNSAID = ("usage", "error")  # contents that no model reads
REASONING_IDS = "rs_"  # how the ids of OpenAI's reasoning begin


def frame_of(model: str, options: Mapping[str, Any], system: str = "") -> dict[str, Any]:
    """What a request says beside its messages."""
    tools = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters()}
        for tool in options.get("tools") or ()
        if isinstance(tool, FunctionTool)
    ]
    said = "\n\n".join(filter(None, (str(options.get("instructions") or ""), system)))
    given = {"model": model, "system": said, "tools": tools, "max_tokens": options.get("max_tokens")}
    return {key: value for key, value in given.items() if value}


class WireMessages:
    """Messages of an agent as clew reads them, with the way back to its own objects."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._made: dict[bytes, tuple[list[Content], Message]] = {}  # what a block was made of, and where that stands
        self._calls: dict[str, tuple[Content, Message]] = {}
        self._standing = [message for message in messages if message.role in STANDING_ROLES]
        self._held = [([message], self._wire(message)) for message in messages if message.role not in STANDING_ROLES]
        self.messages = [one for _, wire in self._held for one in wire]

    @property
    def system(self) -> str:
        """What the messages of the system say."""
        return "\n\n".join(message.text for message in self._standing)

    def back(self, sent: Sequence[WireMessage]) -> list[Message]:
        """The messages to send, the agent's own objects where they are unchanged."""
        return [*self._standing, *(one for some in restored(sent, self._held, self._messages) for one in some)]

    def _wire(self, message: Message) -> list[dict[str, Any]]:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = [*self._blocks(message)]
        return [{"role": role, "content": blocks}] if blocks else []

    def _blocks(self, message: Message) -> Iterator[WireMessage]:
        contents = [content for content in message.contents if content.type not in UNSAID]
        served = [i for i, content in enumerate(contents) if _is_served(content)]
        for i, content in enumerate(contents):
            if served and i == served[0]:  # what a provider's own tools did stays together
                together = contents[i : served[-1] + 1]
                yield self._known({"type": "text", "text": "\n".join(map(_text_of, together))}, together, message)
            elif not (served and served[0] < i <= served[-1]) and (block := _block(content)):
                if content.type in ("function_call", "function_result"):
                    self._calls[f"{content.type} {content.call_id}"] = content, message
                yield self._known(block, [content], message)

    def _known(self, block: WireMessage, made_of: list[Content], message: Message) -> WireMessage:
        self._made[rawjson.dumps(block)] = made_of, message
        return block

    def _messages(self, message: WireMessage) -> list[Message]:
        """The messages that one of clew's is: results of tools are in one of their own."""
        said = message["content"]
        blocks = [{"type": "text", "text": said}] if isinstance(said, str) else said
        found = [self._made.get(rawjson.dumps(block)) or self._changed(block) for block in blocks]
        contents = [content for made_of, _ in found for content in made_of]
        owner = next((owner for _, owner in found if owner is not None), None)
        if message["role"] == "assistant":
            return [_like(owner, "assistant", _unbound(contents, owner))]
        results = [content for content in contents if content.type == "function_result"]
        others = [content for content in contents if content.type != "function_result"]
        made = [_like(None, "tool", results)] if results else []
        return [*made, _like(None if results else owner, "user", others)] if others else made

    def _changed(self, block: WireMessage) -> tuple[list[Content], Message | None]:
        """What a block of clew's is, in the place of what it was."""
        if block["type"] == "tool_use" and (known := self._calls.get(f"function_call {block['id']}")):
            call = copy(known[0])
            call.arguments = dict(block["input"])
            return [call], known[1]
        if block["type"] == "tool_result":
            return [Content.from_function_result(block["tool_use_id"], result=_words(block.get("content")))], None
        return [Content.from_text(str(block.get("text") or ""))], None


def _like(owner: Message | None, role: str, contents: list[Content]) -> Message:
    if owner is None or owner.role != role:
        return Message(role, contents)
    return Message(role, contents, author_name=owner.author_name)  # its id is of what it was


def _unbound(contents: list[Content], owner: Message | None) -> list[Content]:
    """The contents of a changed response: OpenAI's reasoning is bound by ids to all that came with it."""
    if owner is None or not any(_is_bound(content) for content in owner.contents):
        return contents
    kept = [copy(content) for content in contents if content.type != "text_reasoning"]
    for content in kept:
        content.additional_properties = {k: v for k, v in content.additional_properties.items() if k != "fc_id"}
        content.raw_representation = None
    return kept


def _is_bound(content: Content) -> bool:
    return content.type == "text_reasoning" and str(content.id).startswith(REASONING_IDS)


def _is_served(content: Content) -> bool:
    return not content.type.startswith("function_") and content.type.endswith(("_tool_call", "_tool_result", "_output"))


def _block(content: Content) -> WireMessage | None:
    match content.type:
        case "text":
            return {"type": "text", "text": content.text} if content.text else None
        case "text_reasoning":
            if not (content.text or content.protected_data):
                return None
            signed = {"signature": content.protected_data} if content.protected_data else {}
            return {"type": "thinking", "thinking": content.text or "", **signed}
        case "function_call":
            given = content.parse_arguments() or {}
            return {"type": "tool_use", "id": content.call_id, "name": content.name, "input": given}
        case "function_result":
            return {"type": "tool_result", "tool_use_id": content.call_id, "content": _results(content)}
        case "data" | "uri":
            return _file(content)
    return {"type": "text", "text": _text_of(content)}


def _results(content: Content) -> Any:
    items = list(content.items or ())
    if any(item.type in ("data", "uri") for item in items):
        return [block for item in items if (block := _block(item))]
    return str(content.result if content.result is not None else content.exception or "")


def _file(content: Content) -> WireMessage:
    kind = "image" if str(content.media_type).startswith("image/") else "document"
    head, _, data = str(content.uri).partition(";base64,")
    if head.startswith("data:") and data:
        source = {"type": "base64", "media_type": content.media_type or head.removeprefix("data:"), "data": data}
        return {"type": kind, "source": source}
    return {"type": kind, "source": {"type": "url", "url": content.uri}}


def _text_of(content: Content) -> str:
    return content.text or rawjson.dumps(content.to_dict(exclude={"raw_representation"})).decode()


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block["text"]) for block in content or () if "text" in block)
