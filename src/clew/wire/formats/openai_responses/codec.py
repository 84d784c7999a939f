"""OpenAI Responses: input items to items and back, losing nothing.

Only the items of a message share an input item. All others stand for themselves and have no opening, so that what the
model put out in one response continues itself and is not cut: reasoning, searches, calls made together.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, cast

from clew.core.items import Frame, Item, Opening, Role
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

NAME = "openai_responses"
LIST = "input"

ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
MEDIA = frozenset({"input_image", "input_file", "input_audio"})
TEXT = frozenset({"input_text", "output_text", "text"})
# Items that stand at the beginning to set things up, as system messages do.
SETTING_ITEMS = frozenset({"additional_tools", "configuration_update"})
# Items of the provider's own compaction: whatever stands beside them does not belong to them.
COMPACTIONS = frozenset({"compaction", "compaction_trigger"})
# Calls whose results stay valid as plain text, the key of what they are called with, and how their results are typed.
CALLS: Mapping[str, str] = {"function_call": "arguments", "custom_tool_call": "input"}
RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
CACHE_MARK = "prompt_cache_breakpoint"


def split(body: Mapping[str, Any]) -> tuple[Frame, list[Any]]:
    """The frame of a body, and the input items that are history."""
    given = body.get(LIST)
    rest = {k: fresh(v) for k, v in body.items() if k != LIST}
    if isinstance(given, str):
        rest[LIST] = ""  # remembers that it was a string
        given = [{"role": "user", "content": given}]
    messages = as_list(given, LIST)
    lead = 0
    while lead < len(messages) and _sets_up(messages[lead]):
        lead += 1
    opening = tuple(fresh(m) for m in messages[:lead])
    system = [text_of(rest.get("instructions")), *(text_of(m.get("content")) for m in opening)]
    tools = [t for holder in (rest, *opening) for t in _list(holder.get("tools")) if isinstance(t, Mapping)]
    frame = Frame(NAME, string(rest.get("model")), opening, rest, "\n".join(filter(None, system)), tuple(tools))
    return frame, messages[lead:]


def join(frame: Frame, messages: Sequence[Block]) -> Block:
    """The body of a frame and its history."""
    body = fresh(frame.body)
    match list(messages):
        case [{"role": "user", "content": str(text), **more}] if LIST in body and not more and not frame.lead:
            return {**body, LIST: text}
    return {**body, LIST: [*fresh(frame.lead), *messages]}


def read(message: Any, where: str) -> list[Item]:
    """The items of one input item: several for a message, one for all else."""
    message = as_mapping(message, where)
    kind = message.get("type")
    if _is_message(message):
        return _read_message(message, where)
    if kind == "reasoning":
        text = "\n".join(filter(None, (text_of(message.get("summary")), text_of(message.get("content")))))
        return [Item("reasoning", "assistant", text, wire=fresh(message))]
    if isinstance(kind, str) and kind in CALLS:
        return [_call(message, CALLS[kind])]
    if isinstance(kind, str) and kind in RESULTS:
        return [_result(message)]
    return [_opaque(message)]


def write(items: Iterable[Item]) -> list[Block]:
    """The input items of items."""
    written: list[Block] = []
    for are_parts, found in groupby(items, _is_part):
        run = list(found)
        written += map(_message, grouped(run, _joins)) if are_parts else map(_alone, run)
    return written


def _sets_up(message: Any) -> bool:
    if not isinstance(message, Mapping):
        return False
    kind = message.get("type")
    return (_is_message(message) and message.get("role") in ("system", "developer")) or _is_one_of(kind, SETTING_ITEMS)


def _is_message(message: Mapping[str, Any]) -> bool:
    kind = message.get("type")
    return kind == "message" or (kind is None and ("role" in message or "content" in message))


def _is_one_of(kind: Any, kinds: frozenset[str]) -> bool:
    return isinstance(kind, str) and kind in kinds


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _read_message(message: Mapping[str, Any], where: str) -> list[Item]:
    role = role_of(message, ROLES, where)
    keys = {k: fresh(v) for k, v in message.items() if k != "content"}
    content = message.get("content")
    if isinstance(content, str):
        return opened([Item("text", role, content)], role, keys, bare=True)
    if not content:
        keys |= {k: fresh(message[k]) for k in ("content",) if k in message}
        return opened([], role, keys, bare=False)
    parts = [as_mapping(p, f"{where}.content[{i}]") for i, p in enumerate(as_list(content, f"{where}.content"))]
    if len(parts) == 1 and _says_only_text(parts[0], role):
        copy, mark = _unmarked(parts[0])
        text = copy.pop("text")
        if len(copy) > 1:
            keys["content"] = copy  # empty lists that the API puts beside each text it gives: how, not what
        return opened([Item("text", role, text, mark=mark)], role, keys, bare=False)
    return opened([_part(part, role) for part in parts], role, keys, bare=False)


def _says_only_text(part: Mapping[str, Any], role: Role) -> bool:
    if part.get("type") != _text_type(role) or not isinstance(part.get("text"), str):
        return False
    return all(
        k in ("type", "text") or v in (None, []) or (k == CACHE_MARK and isinstance(v, dict)) for k, v in part.items()
    )


def _text_type(role: Role) -> str:
    return "output_text" if role == "assistant" else "input_text"


def _part(part: Mapping[str, Any], role: Role) -> Item:
    copy, mark = _unmarked(part)
    kind = copy.get("type")
    if copy.keys() == {"type", "text"} and _says_only_text(copy, role):
        return Item("text", role, copy["text"], mark=mark)
    if _is_one_of(kind, TEXT) or kind == "refusal":
        return Item("text", role, text_of(copy), wire=copy, mark=mark)
    return Item("media" if _is_one_of(kind, MEDIA) else "opaque", role, text_of(copy), wire=copy, mark=mark)


def _unmarked(part: Mapping[str, Any]) -> tuple[Block, Mapping[str, Any] | None]:
    copy = fresh(part)
    return copy, copy.pop(CACHE_MARK) if isinstance(copy.get(CACHE_MARK), dict) else None


def _call(message: Mapping[str, Any], key: str) -> Item:
    copy = fresh(message)
    call_id, name, given = (string(copy.get(k)) for k in ("call_id", "name", key))
    plain = copy == {"type": "function_call", "call_id": call_id, "name": name, "arguments": given}
    return Item("call", "assistant", given, name, call_id, None if plain else copy)


def _result(message: Mapping[str, Any]) -> Item:
    copy = fresh(message)
    kind, call_id, output = copy["type"], string(copy.get("call_id")), copy.get("output")
    plain = isinstance(output, str) and copy == {"type": kind, "call_id": call_id, "output": output}
    # A stand-in must answer a call of the same sort: the sort stays when the rest goes.
    opens = None if kind == "function_call_output" else Opening({"type": kind})
    return Item("result", "tool", text_of(output), call_id=call_id, wire=None if plain else copy, opens=opens)


def _opaque(message: Mapping[str, Any]) -> Item:
    """An item that stays or goes as it is. Its name tells it from an unknown part of a message."""
    copy = fresh(message)
    name = string(copy.get("type")) or "item_reference"
    call_id = string(copy.get("call_id"))
    role: Role = "assistant"
    if name.endswith(("_output", "_response")):
        role = "tool"
        call_id = call_id or string(copy.get("approval_request_id")) or string(copy.get("id"))
    elif name in SETTING_ITEMS | COMPACTIONS:
        role = "system"
    elif name == "mcp_approval_request":
        call_id = string(copy.get("id"))
    # What a tool gave continues no other result: results that belong before it must not move behind it.
    opens = Opening({}) if role == "tool" else None
    return Item("opaque", role, text_of(copy.get("output")) or text_of(copy), name, call_id, copy, opens)


def _is_part(item: Item) -> bool:
    return item.kind in ("text", "media", "summary") or (item.kind == "opaque" and not item.name)


def _joins(first: Item, item: Item) -> bool:
    return item.role == first.role and first.kind != "summary"


def _alone(item: Item) -> Block:
    if item.wire is not None:
        return cast(Block, fresh(item.wire))
    if item.kind == "call":
        return {"type": "function_call", "call_id": item.call_id, "name": item.name, "arguments": item.text}
    if item.kind == "result":
        kind = item.opens.keys.get("type") if item.opens else None
        return {"type": kind or "function_call_output", "call_id": item.call_id, "output": item.text}
    return {"role": _side(item), "content": item.text}


def _side(item: Item) -> str:
    return "user" if item.role == "tool" else item.role


def _message(group: list[Item]) -> Block:
    first = group[0]
    opens = first.opens if first.opens and "role" in first.opens.keys else None
    message: Block = fresh(opens.keys) if opens else {"role": _side(first)}
    said = [item for item in group if not says_nothing(item)]
    if not said:
        return message
    beside = message.pop("content", None)
    bare = opens.bare if opens else True
    if len(said) == 1 and said[0].wire is None:
        part = {"type": _text_type(first.role), **(beside if isinstance(beside, dict) else {}), "text": said[0].text}
        message["content"] = said[0].text if bare and said[0].mark is None else [_marked(part, said[0])]
    else:
        message["content"] = [_write(item) for item in said]
    return message


def _write(item: Item) -> Block:
    block = {"type": _text_type(item.role), "text": item.text} if item.wire is None else fresh(item.wire)
    return _marked(block, item)


def _marked(block: Block, item: Item) -> Block:
    return block if item.mark is None else {**block, CACHE_MARK: fresh(item.mark)}
