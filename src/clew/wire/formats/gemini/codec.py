"""Gemini generateContent: contents to items and back, losing nothing."""

import re
from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clew.core import rawjson
from clew.core.items import Frame, Item, Role
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

NAME = "gemini"
LIST = "contents"  # the key of a body that holds its history

ROLES: Mapping[str, Role] = {"user": "user", "model": "assistant", "function": "tool"}
SIDES: Mapping[str, str] = {"assistant": "model"}  # everything else is the user's
# Every key may be spelled in two ways.
CALL = ("functionCall", "function_call")
RESPONSE = ("functionResponse", "function_response")
MEDIA = ("inlineData", "inline_data", "fileData", "file_data")
SERVED = ("toolCall", "tool_call", "toolResponse", "tool_response")
CODE_PARTS = ("executableCode", "executable_code", "codeExecutionResult", "code_execution_result")
# A call without an id is answered by its place: the nth call of a name by the nth response of that name.
MADE_UP = re.compile(r".*~\d+", re.DOTALL)


def split(body: Mapping[str, Any]) -> tuple[Frame, list[Any]]:
    """The frame of a body, and the contents that are history."""
    contents = as_list(body.get(LIST), LIST)
    rest = {k: fresh(v) for k, v in body.items() if k != LIST}
    system = _setting(rest, "systemInstruction", "system_instruction")
    tools = _setting(rest, "tools")
    declared = [
        _value(tool, "functionDeclarations", "function_declarations")
        for tool in (tools if isinstance(tools, list) else ())
        if isinstance(tool, dict)
    ]
    functions = tuple(f for some in declared if isinstance(some, list) for f in some if isinstance(f, dict))
    said = text_of(system.get("parts", system) if isinstance(system, dict) else system)
    return Frame(NAME, string(rest.get("model")), (), rest, said, functions), contents


def join(frame: Frame, messages: Sequence[Block]) -> Block:
    """The body of a frame and its history."""
    return {**fresh(frame.body), LIST: list(messages)}


def read(message: Any, where: str) -> list[Item]:
    """The items of one content."""
    message = as_mapping(message, where)
    role = role_of(message, ROLES, where) if message.get("role") else "user"
    keys = {k: fresh(v) for k, v in message.items() if k != "parts"}
    parts = message.get("parts")
    if not parts:
        keys |= {k: fresh(message[k]) for k in ("parts",) if k in message}
        return opened([], role, keys, bare=False)
    seen: Tally[str] = Tally()
    items = [
        _read(fresh(as_mapping(part, f"{where}.parts[{i}]")), role, seen)
        for i, part in enumerate(as_list(parts, f"{where}.parts"))
    ]
    return opened(items, role, keys, bare=False)


def write(items: Iterable[Item]) -> list[Block]:
    """The contents of items."""
    names: dict[str, str] = {}
    return [_content(group, names) for group in grouped(items, lambda first, item: _side(item) == _side(first))]


def _setting(body: Block, *keys: str) -> Any:
    """What a body says under one of these keys; Google's SDKs put it into a config."""
    config = body.get("config")
    return _value(body, *keys) or (_value(config, *keys) if isinstance(config, dict) else None)


def _value(holder: Block, *keys: str) -> Any:
    return next((holder[k] for k in keys if holder.get(k) is not None), None)


def _read(part: Block, role: Role, seen: Tally[str]) -> Item:
    if isinstance(called := _value(part, *CALL), dict):
        return _call(part, called, role, seen)
    if isinstance(given := _value(part, *RESPONSE), dict):
        return _result(part, given, role, seen)
    if any(key in part for key in MEDIA):
        return Item("media", role, wire=part)
    if isinstance(text := part.get("text"), str):
        if part.get("thought") is True:
            return Item("reasoning", role, text, wire=part)
        return Item("text", role, text, wire=None if part.keys() == {"text"} else part)
    if isinstance(tool := _value(part, *SERVED, *CODE_PARTS), dict):
        # Tools that the provider runs: call and result share an id and must stay together, verbatim.
        said = string(tool.get("code")) or string(tool.get("output"))
        return Item("opaque", role, said, call_id=string(tool.get("id")), wire=part)
    return Item("opaque", role, wire=part)


def _call(part: Block, called: Block, role: Role, seen: Tally[str]) -> Item:
    name, call_id = string(called.get("name")), id_of(called, seen)
    text = _json(called["args"]) if "args" in called else ""
    plain = bool(text) and part == _written_call(name, call_id, text)
    return Item("call", role, text, name, call_id, None if plain else part)


def _result(part: Block, given: Block, role: Role, seen: Tally[str]) -> Item:
    name, call_id = string(given.get("name")), id_of(given, seen)
    match given.get("response"):
        case {**values} if len(values) == 1 and isinstance(said := next(iter(values.values())), str):
            text = said
        case response:
            text = _json(response)
    if role == "assistant":  # no tool answers in the model's name: what this is must stay where it is
        return Item("opaque", role, text, name, call_id, part)
    plain = part == _written_result(name, call_id, text)
    return Item("result", "tool", text, name, call_id, None if plain else part)


def id_of(holder: Mapping[str, Any], seen: Tally[str]) -> str:
    """The id of a call or a response, or one made up of its name and its place among those `seen` without ids."""
    if call_id := string(holder.get("id")):
        return call_id
    name = string(holder.get("name"))
    seen[name] += 1
    return f"{name}~{seen[name] - 1}"


def _json(value: Any) -> str:
    try:
        return rawjson.dumps(value).decode()
    except BadRequest:
        return ""  # bytes, as Google's SDKs take them


def _side(item: Item) -> str:
    return SIDES.get(item.role, "user")


def _content(group: list[Item], names: dict[str, str]) -> Block:
    first = group[0]
    content: Block = fresh(first.opens.keys) if first.opens else {"role": _side(first)}
    parts = [_write(item, names) for item in group if not says_nothing(item)]
    if parts:
        content["parts"] = parts
    return content


def _write(item: Item, names: dict[str, str]) -> Block:
    if item.kind == "call":
        names[item.call_id] = item.name
    if item.wire is not None:
        return dict(fresh(item.wire))
    if item.kind == "call":
        return _written_call(item.name, item.call_id, item.text)
    if item.kind == "result":
        # A response must name its function; who made the item may not have known it.
        name = item.name or names.get(item.call_id) or item.call_id.rpartition("~")[0]
        return _written_result(name, item.call_id, item.text)
    return {"text": item.text}


def _written_call(name: str, call_id: str, text: str) -> Block:
    return {"functionCall": identified(call_id) | {"name": name, "args": rawjson.loads(text or "{}")}}


def _written_result(name: str, call_id: str, text: str) -> Block:
    return {"functionResponse": identified(call_id) | {"name": name, "response": {"result": text}}}


def identified(call_id: str) -> Block:
    """The id of a call or a response as it is sent: one that was made up is not."""
    return {} if MADE_UP.fullmatch(call_id) else {"id": call_id}
