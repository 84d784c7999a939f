"""JSON, with or without comments and commas at the end."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clew.config.setting import Key

SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
INDENTED = re.compile(r'\n([ \t]+)"')


@dataclass(frozen=True, slots=True)
class _Span:
    """A value and where it is."""

    start: int
    end: int
    value: Any
    members: "Sequence[_Pair] | None" = None  # of an object, or of a list, where they are named by their numbers

    def pair(self, name: str) -> "_Pair | None":
        """The member that counts: of two with one name, the last."""
        return next((m for m in reversed(self.members or ()) if m.name == name), None)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A member of an object or a list; `comma` is where the comma behind it is, or -1."""

    name: str
    start: int
    value: _Span
    comma: int

    @property
    def end(self) -> int:
        return self.value.end


def read(text: str) -> dict[str, Any]:
    """What the text says; an empty file says nothing."""
    if not text.strip():
        return {}
    value = _parsed(text).value
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object")
    return value


def put(text: str, key: Key, value: Any) -> str:
    """The text with a key set, in the indentation of the file."""
    if not text.strip():
        return json.dumps(_nested(key, value), indent=2) + "\n"
    root = owner = _parsed(text)
    for at, name in enumerate(key):
        if owner.members is None:
            raise ValueError(f"{'.'.join(key[:at])} is not an object")
        member = owner.pair(name)
        if member is None:
            return _with_new(text, root, owner, name, _nested(key[at + 1 :], value))
        owner = member.value
    told = json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, dict | list) else None)
    return text[: owner.start] + told + text[owner.end :]


def drop(text: str, key: Key) -> str:
    """The text without a key; comments stay."""
    owner = _parsed(text)
    for name in key[:-1]:
        around = owner.pair(name)
        assert around is not None, "only what is there is dropped"
        owner = around.value
    member = owner.pair(key[-1])
    assert member is not None, "only what is there is dropped"
    members = owner.members or ()
    before = members[members.index(member) - 1] if member is not members[0] else None
    start, end = member.start, member.comma + 1 if member.comma >= 0 else member.end
    line = text.rfind("\n", 0, start) + 1
    rest = re.compile(r"[ \t]*\r?\n").match(text, end)
    if not text[line:start].strip() and rest:
        start, end = line, rest.end()
    if member.comma < 0 and before is not None:  # JSON has no comma behind the last one
        return text[: before.comma] + text[before.comma + 1 : start] + text[end:]
    return text[:start] + text[end:]


def _nested(key: Key, value: Any) -> Any:
    for name in reversed(key):
        value = {name: value}
    return value


def _with_new(text: str, root: _Span, owner: _Span, name: str, value: Any) -> str:
    last = owner.members[-1] if owner.members else None
    inner = text[owner.start + 1 : owner.end - 1]
    head = "" if isinstance(owner.value, list) else f"{json.dumps(name, ensure_ascii=False)}: "
    if "\n" not in (inner if last else text[root.start : root.end]) and root.members:
        at = owner.start + 1 if last is None else last.comma + 1 if last.comma >= 0 else last.end
        lead = "" if last is None else " " if last.comma >= 0 else ", "
        return text[:at] + f"{lead}{head}{json.dumps(value, ensure_ascii=False)}" + text[at:]
    newline = "\r\n" if "\r\n" in text else "\n"
    first = INDENTED.search(text)
    step = first[1] if first else "  "
    outer = _indentation(text, owner.start)
    indent = _indentation(text, owner.members[0].start) if owner.members else ""
    indent = indent if len(indent) > len(outer) else outer + step
    told = json.dumps(value, ensure_ascii=False, indent=step).replace("\n", newline + indent)
    body = owner.start + 1 + len(inner.rstrip())
    close = text[body : owner.end - 1]
    above = text[:body]
    if last is not None and last.comma < 0:
        above = text[: last.end] + "," + text[last.end : body]
    comma = "," if last is not None and last.comma >= 0 else ""
    tail = close if "\n" in close else newline + outer
    return f"{above}{newline}{indent}{head}{told}{comma}{tail}{text[owner.end - 1 :]}"


def _indentation(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


# --- where everything is --------------------------------------------------------------------------------------------


def _parsed(text: str) -> _Span:
    try:
        whole = _value(text, _space(text, 0))
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if _space(text, whole.end) != len(text):
        raise _unexpected(text, _space(text, whole.end), "the end")
    return whole


def _space(text: str, at: int) -> int:
    match = SPACE.match(text, at)
    assert match is not None, "nothing is a match, too"
    return match.end()


def _value(text: str, at: int) -> _Span:
    match text[at : at + 1]:
        case "{":
            return _object(text, at)
        case "[":
            return _array(text, at)
        case '"':
            value, end = _string(text, at)
            return _Span(at, end, value)
    if scalar := SCALAR.match(text, at):
        return _Span(at, scalar.end(), json.loads(scalar[0]))
    raise _unexpected(text, at, "a value")


def _string(text: str, at: int) -> tuple[str, int]:
    try:
        value, end = json.JSONDecoder().raw_decode(text, at)
        return str(value), end
    except ValueError:
        raise _unexpected(text, at, "text in double quotes that ends on its line") from None


def _object(text: str, start: int) -> _Span:
    members: list[_Pair] = []
    at = _space(text, start + 1)
    while text[at : at + 1] != "}":
        if members and members[-1].comma < 0:
            raise _unexpected(text, at, "a comma or }")
        if text[at : at + 1] != '"':
            raise _unexpected(text, at, "a name in double quotes")
        name, end = _string(text, at)
        colon = _space(text, end)
        if text[colon : colon + 1] != ":":
            raise _unexpected(text, colon, "a colon")
        value = _value(text, _space(text, colon + 1))
        comma = _space(text, value.end)
        has_comma = text[comma : comma + 1] == ","
        members.append(_Pair(name, at, value, comma if has_comma else -1))
        at = _space(text, comma + 1) if has_comma else comma
    return _Span(start, at + 1, {m.name: m.value.value for m in members}, members)


def _array(text: str, start: int) -> _Span:
    members: list[_Pair] = []
    at = _space(text, start + 1)
    while text[at : at + 1] != "]":
        if members and members[-1].comma < 0:
            raise _unexpected(text, at, "a comma or ]")
        value = _value(text, at)
        comma = _space(text, value.end)
        has_comma = text[comma : comma + 1] == ","
        members.append(_Pair(str(len(members)), at, value, comma if has_comma else -1))
        at = _space(text, comma + 1) if has_comma else comma
    return _Span(start, at + 1, [m.value.value for m in members], members)


def _unexpected(text: str, at: int, expected: str) -> ValueError:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return ValueError(f"is not JSON: expected {expected} at line {line}, column {column}")
