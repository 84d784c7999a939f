"""Amazon Bedrock Converse: messages to items and back, losing nothing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as with_
from typing import Any

from clew.core import rawjson
from clew.core.items import Frame, Item, Kind, Role
from clew.errors import BadRequest
from clew.wire.formats.plain import (
    Block,
    as_list,
    as_mapping,
    fresh,
    grouped,
    opened,
    role_of,
    says_nothing,
    string,
    text_of,
)

NAME = "bedrock"
LIST = "messages"  # the key of a body that holds its history

ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
# A block is an object of one key, which says what it is; what is not here is opaque.
KINDS: Mapping[str, Kind] = {
    "text": "text",
    "citationsContent": "text",
    "guardContent": "text",
    "reasoningContent": "reasoning",
    "image": "media",
    "document": "media",
    "video": "media",
    "audio": "media",
    "searchResult": "media",
}


def split(body: Mapping[str, Any]) -> tuple[Frame, list[Any]]:
    """The frame of a body, and the messages that are history."""
    messages = as_list(body.get(LIST), LIST)
    rest = {k: fresh(v) for k, v in body.items() if k != LIST}
    config = rest.get("toolConfig")
    tools = config.get("tools") if isinstance(config, dict) else None
    specs = [t.get("toolSpec") for t in tools if isinstance(t, dict)] if isinstance(tools, list) else []
    declared = tuple(spec for spec in specs if isinstance(spec, dict) and spec)
    return Frame(NAME, string(rest.get("modelId")), (), rest, _words(rest.get("system")), declared), messages


def join(frame: Frame, messages: Sequence[Block]) -> Block:
    """The body of a frame and its history."""
    return {**fresh(frame.body), LIST: list(messages)}


def read(message: Any, where: str) -> list[Item]:
    """The items of one message."""
    message = as_mapping(message, where)
    role = role_of(message, ROLES, where)
    keys = {k: fresh(v) for k, v in message.items() if k != "content"}
    content = message.get("content")
    if not content:
        keys |= {k: fresh(message[k]) for k in ("content",) if k in message}
        return opened([], role, keys, bare=False)
    items: list[Item] = []
    for i, block in enumerate(as_list(content, f"{where}.content")):
        copy = fresh(as_mapping(block, f"{where}.content[{i}]"))
        if items and items[-1].mark is None and _is_mark(copy):
            items[-1] = with_(items[-1], mark=copy)
        else:
            items.append(_read(copy, role))
    return opened(items, role, keys, bare=False)


def write(items: Iterable[Item]) -> list[Block]:
    """The messages of items."""
    return [_message(group) for group in _alternating(items)]


def _alternating(items: Iterable[Item]) -> Iterator[list[Item]]:
    """The items of each message: what we put next to a message of the same role goes into it.

    Converse refuses two messages of one role in a row. Where a client itself sent two, they stay two.
    """
    message: list[Item] = []
    ours = False
    for group in grouped(items, lambda first, item: _side(item) == _side(first)):
        first = group[0]
        before, ours = ours, first.opens is None or first.kind == "summary"
        if message and (before or ours) and _side(message[0]) == _side(first):
            message += group
        else:
            if message:
                yield message
            message = group
    if message:
        yield message


def _is_mark(block: Block) -> bool:
    return block.keys() == {"cachePoint"} and isinstance(block["cachePoint"], dict)


def _read(block: Block, role: Role) -> Item:
    if block.keys() == {"text"} and isinstance(block["text"], str):
        return Item("text", role, block["text"])
    if isinstance(used := block.get("toolUse"), dict):
        return _served(block, role, used) if "type" in used else _call(block, role, used)
    if isinstance(given := block.get("toolResult"), dict):
        return _served(block, role, given) if "type" in given or role != "user" else _result(block, given)
    key = next((k for k in block if k in KINDS), "")
    value = block.get(key)
    kind = KINDS.get(key, "opaque")
    if key == "guardContent" and not text_of(value):
        kind = "media"
    if key == "reasoningContent" and isinstance(value, dict):
        value = value.get("reasoningText")
    return Item(kind, role, text_of(value), wire=block)


def _served(block: Block, role: Role, used: Block) -> Item:
    """A tool that the provider runs: call and result share an id and stay together in the assistant's message."""
    return Item("opaque", role, _words(used.get("content")), string(used.get("name")), _id(used), block)


def _call(block: Block, role: Role, used: Block) -> Item:
    name, call_id = string(used.get("name")), _id(used)
    text = _json(used.get("input"))
    plain = block == {"toolUse": {"toolUseId": call_id, "name": name, "input": _parsed(text)}}
    return Item("call", role, text, name, call_id, None if plain and text else block)


def _result(block: Block, given: Block) -> Item:
    call_id, text = _id(given), _words(given.get("content"))
    plain = block == {"toolResult": {"toolUseId": call_id, "content": [{"text": text}]}}
    return Item("result", "tool", text, call_id=call_id, wire=None if plain else block)


def _id(used: Block) -> str:
    return string(used.get("toolUseId"))


def _words(content: Any) -> str:
    """The text of system blocks or of a result, which may also be JSON."""
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    said = (_json(p["json"]) if "json" in p else text_of(p.get("guardContent", p)) for p in parts)
    return "\n".join(filter(None, said))


def _json(value: Any) -> str:
    try:
        return rawjson.dumps(value).decode()
    except BadRequest:
        return ""  # bytes, as boto3 takes them


def _parsed(text: str) -> Any:
    return rawjson.loads(text) if text else None


def _side(item: Item) -> str:
    return "user" if item.role == "tool" else item.role


def _message(group: list[Item]) -> Block:
    first = group[0]
    message: Block = fresh(first.opens.keys) if first.opens else {"role": _side(first)}
    blocks = [block for item in group if not says_nothing(item) for block in _write(item)]
    if blocks:
        message["content"] = blocks
    return message


def _write(item: Item) -> Iterator[Block]:
    if item.wire is not None:
        yield fresh(item.wire)
    elif item.kind == "result":
        yield {"toolResult": {"toolUseId": item.call_id, "content": [{"text": item.text}]}}
    elif item.kind == "call":
        yield {"toolUse": {"toolUseId": item.call_id, "name": item.name, "input": rawjson.loads(item.text or "{}")}}
    else:
        yield {"text": item.text}
    if item.mark is not None:
        yield fresh(item.mark)
