"""OpenAI Chat Completions: messages to items and back, losing nothing."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clew.core.items import Frame, Item, Role
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

NAME = "openai_chat"
LIST = "messages"

ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
MEDIA = frozenset({"image_url", "input_audio", "file"})
# Where OpenAI-compatible servers put what a reasoning model thought.
REASONING = ("reasoning_content", "reasoning", "reasoning_details")


def split(body: Mapping[str, Any]) -> tuple[Frame, list[Any]]:
    """The frame of a body, and the messages that are history."""
    messages = as_list(body.get("messages"), "messages")
    lead = 0
    while lead < len(messages) and _is_system(messages[lead]):
        lead += 1
    opening = tuple(fresh(m) for m in messages[:lead])
    frame = Frame(
        NAME,
        string(body.get("model")),
        opening,
        {k: fresh(v) for k, v in body.items() if k != "messages"},
        "\n".join(text_of(m.get("content")) for m in opening),
        objects(fresh(body.get("tools"))),
    )
    return frame, messages[lead:]


def join(frame: Frame, messages: Sequence[Block]) -> Block:
    """The body of a frame and its history."""
    return {**fresh(frame.body), "messages": [*fresh(frame.lead), *messages]}


def read(message: Any, where: str) -> list[Item]:
    """The items of one message."""
    message = as_mapping(message, where)
    role = role_of(message, ROLES, where)
    if message["role"] == "tool":
        return [_result(message)]
    keys = dict(message)
    items = [_thought(keys, key) for key in REASONING if keys.get(key)] if role == "assistant" else []
    content = message.get("content")
    bare = isinstance(content, str) and (content != "" or not message.get("tool_calls"))
    if bare:
        items.append(Item("text", role, keys.pop("content")))
    elif isinstance(content, list | tuple) and content:
        items += [_part(p, role, f"{where}.content[{i}]") for i, p in enumerate(keys.pop("content"))]
    elif content:
        as_list(content, f"{where}.content")
    if calls := message.get("tool_calls"):
        items += [
            _call(c, role, f"{where}.tool_calls[{i}]") for i, c in enumerate(as_list(calls, f"{where}.tool_calls"))
        ]
        del keys["tool_calls"]
    return opened(items, role, fresh(keys), bare)


def write(items: Iterable[Item]) -> list[Block]:
    """The messages of items."""
    return [_message(group) for group in grouped(items, lambda first, item: item.role == first.role != "tool")]


def _is_system(message: Any) -> bool:
    return isinstance(message, Mapping) and message.get("role") in ("system", "developer")


def _result(message: Mapping[str, Any]) -> Item:
    keys = fresh(message)
    wire = None if isinstance(keys.get("content"), str) else {k: keys[k] for k in ("content",) if k in keys}
    keys.pop("content", None)
    call_id = string(keys.get("tool_call_id"))
    if call_id:
        del keys["tool_call_id"]
    text = text_of(message.get("content"))
    return opened([Item("result", "tool", text, call_id=call_id, wire=wire)], "tool", keys, bare=False)[0]


def _thought(keys: dict[str, Any], key: str) -> Item:
    value = fresh(keys.pop(key))
    return Item("reasoning", "assistant", text_of(value), key, wire=None if isinstance(value, str) else {key: value})


def _part(part: Any, role: Role, where: str) -> Item:
    part = as_mapping(part, where)
    kind = string(part.get("type"))
    if kind in ("text", "refusal"):
        return text_item("text", role, part, kind)
    copy, mark = unmarked(part)
    return Item("media" if kind in MEDIA else "opaque", role, text_of(copy), wire=copy, mark=mark)


def _call(call: Any, role: Role, where: str) -> Item:
    copy = fresh(as_mapping(call, where))
    function = copy.get("function")
    plain = (
        copy.keys() == {"id", "type", "function"}
        and copy["type"] == "function"
        and isinstance(copy["id"], str)
        and isinstance(function, dict)
        and function.keys() == {"name", "arguments"}
        and all(isinstance(v, str) for v in function.values())
    )
    said = function if isinstance(function, dict) else copy.get("custom")
    said = said if isinstance(said, dict) else {}
    text = string(said.get("arguments")) or string(said.get("input"))
    return Item("call", role, text, string(said.get("name")), string(copy.get("id")), wire=None if plain else copy)


def _message(group: list[Item]) -> Block:
    first = group[0]
    message: Block = fresh(first.opens.keys) if first.opens else {"role": first.role, "content": None}
    if len(group) == 1 and first.kind in ("text", "summary") and first.wire is None and first.mark is None:
        bare = first.opens is None or first.opens.bare  # most messages are this: one string
        return message | {"content": first.text if bare else [{"type": "text", "text": first.text}]}
    if first.kind == "result":
        if first.call_id:
            message["tool_call_id"] = first.call_id
        return message | ({"content": first.text} if first.wire is None else fresh(first.wire))
    parts: list[Block] = []
    calls: list[Block] = []
    for item in group:
        if item.kind == "call":
            calls.append(_write_call(item))
        elif item.kind == "reasoning":
            message |= {item.name: item.text} if item.wire is None else fresh(item.wire)
        elif item.wire is None:
            parts.append(marked({"type": "text", "text": item.text}, item))
        elif not says_nothing(item):
            parts.append(marked(fresh(item.wire), item))
    if parts:
        bare = first.opens.bare if first.opens else True
        message["content"] = parts[0]["text"] if bare and _alone(parts) else parts
    if calls:
        message["tool_calls"] = calls
    return message


def _alone(parts: list[Block]) -> bool:
    return len(parts) == 1 and parts[0].keys() == {"type", "text"}


def _write_call(item: Item) -> Block:
    if item.wire is not None:
        return dict(fresh(item.wire))
    return {"id": item.call_id, "type": "function", "function": {"name": item.name, "arguments": item.text}}
