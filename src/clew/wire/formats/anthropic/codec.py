"""Anthropic Messages: messages to items and back, losing nothing."""

from collections.abc import Iterable, Mapping, Sequence
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
    marked,
    objects,
    opened,
    role_of,
    says_nothing,
    string,
    text_item,
    text_of,
    unmarked,
)

NAME = "anthropic"
LIST = "messages"

ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
KINDS: Mapping[str, Kind] = {
    "image": "media",
    "document": "media",
    "search_result": "media",
    "container_upload": "media",
}


def split(body: Mapping[str, Any]) -> tuple[Frame, list[Any]]:
    """The frame of a body, and the messages that are history."""
    messages = as_list(body.get("messages"), "messages")
    rest = {k: fresh(v) for k, v in body.items() if k != "messages"}
    system, tools = text_of(rest.get("system")), objects(rest.get("tools"))
    return Frame(NAME, string(rest.get("model")), (), rest, system, tools), messages


def join(frame: Frame, messages: Sequence[Block]) -> Block:
    """The body of a frame and its history."""
    return {**fresh(frame.body), "messages": list(messages)}


def read(message: Any, where: str) -> list[Item]:
    """The items of one message."""
    message = as_mapping(message, where)
    role = role_of(message, ROLES, where)
    keys = {k: fresh(v) for k, v in message.items() if k != "content"}
    content = message.get("content")
    if isinstance(content, str):
        return opened([Item("text", role, content)], role, keys, bare=True)
    if not content:
        keys |= {k: fresh(message[k]) for k in ("content",) if k in message}
        return opened([], role, keys, bare=False)
    blocks = as_list(content, f"{where}.content")
    return opened([_read(b, role, f"{where}.content[{i}]") for i, b in enumerate(blocks)], role, keys, bare=False)


def write(items: Iterable[Item]) -> list[Block]:
    """The messages of items."""
    return [_message(group) for group in grouped(items, lambda first, item: _side(item) == _side(first))]


def _read(block: Any, role: Role, where: str) -> Item:
    block = as_mapping(block, where)
    match block.get("type"):
        case "text":
            return text_item("text", role, block)
        case "thinking":
            return text_item("reasoning", role, block, "thinking")
        case "redacted_thinking":
            return text_item("reasoning", role, block, "data")
        case "tool_use":
            return _call(block, role)
        case "tool_result" if role == "user":
            return _result(block)
        case kind:
            copy, mark = unmarked(block)
            # Tools that the provider runs: call and result share an id and must stay together, verbatim.
            call_id = string(copy.get("tool_use_id")) or (string(copy.get("id")) if "use" in str(kind) else "")
            name = string(copy.get("name"))
            return Item(KINDS.get(str(kind), "opaque"), role, text_of(copy), name, call_id, copy, mark=mark)


def _call(block: Mapping[str, Any], role: Role) -> Item:
    copy, mark = unmarked(block)
    given = copy.get("input")
    try:
        text = rawjson.dumps(given).decode()
        plain = copy.keys() == {"type", "id", "name", "input"} and rawjson.loads(text) == given
    except BadRequest:
        text, plain = "", False
    return Item(
        "call", role, text, string(copy.get("name")), string(copy.get("id")), None if plain else copy, mark=mark
    )


def _result(block: Mapping[str, Any]) -> Item:
    copy, mark = unmarked(block)
    call_id = string(copy.get("tool_use_id"))
    rest = {k: v for k, v in copy.items() if k != "type" and not (k == "tool_use_id" and call_id)}
    plain = rest.keys() == {"content"} and isinstance(rest["content"], str)
    return Item(
        "result", "tool", text_of(copy.get("content")), call_id=call_id, wire=None if plain else rest, mark=mark
    )


def _side(item: Item) -> str:
    return "user" if item.role == "tool" else item.role


def _message(group: list[Item]) -> Block:
    first = group[0]
    message: Block = fresh(first.opens.keys) if first.opens else {"role": _side(first)}
    blocks = [_write(item) for item in group if not says_nothing(item)]
    if blocks:
        bare = first.opens is None or first.opens.bare
        alone = bare and len(blocks) == 1 and blocks[0].keys() == {"type", "text"}
        message["content"] = blocks[0]["text"] if alone else blocks
    return message


def _write(item: Item) -> Block:
    if item.kind == "result":
        block: Block = {"type": "tool_result"}
        if item.call_id:
            block["tool_use_id"] = item.call_id
        block |= {"content": item.text} if item.wire is None else fresh(item.wire)
    elif item.wire is not None:
        block = fresh(item.wire)
    elif item.kind == "call":
        block = {"type": "tool_use", "id": item.call_id, "name": item.name, "input": rawjson.loads(item.text or "{}")}
    else:
        block = {"type": "text", "text": item.text}
    return marked(block, item)
