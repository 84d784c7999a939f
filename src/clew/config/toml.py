"""TOML as lines of text: on which line a key is, and how to set it with all the rest left as it is.

What is a key, a value or a comment is asked of `tomllib`, piece by piece; what was changed is read again and compared.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from clew.config.table import Key, quoted, write_key

LONGEST = 200  # lines of one value


@dataclass(frozen=True, slots=True)
class Statement:
    """A header or an assignment: its key in full, the table it stands in, the lines it takes."""

    key: Key
    table: Key
    first: int
    end: int
    header: bool


def line_of(text: str, key: Key) -> int | None:
    """The line a key is on, counted from 1; of what is in it or around it, if it is not found itself."""
    found = list(statements(text))
    for size in range(len(key), 0, -1):
        for statement in found:
            if statement.key[:size] == key[:size]:
                return statement.first + 1
    return None


def statements(text: str) -> Iterator[Statement]:
    """The statements of a file that can be read, in order."""
    lines, first = _lines(text), 0
    table: Key = ()
    while first < len(lines):
        ends = range(first + 1, min(first + LONGEST, len(lines)) + 1)
        end = next((end for end in ends if _parsed("".join(lines[first:end])) is not None), None)
        if end is None:
            return
        statement = "".join(lines[first:end])
        if statement.lstrip().startswith("["):
            table = _chain(_parsed(statement))
            yield Statement(table, (), first, end, header=True)
        elif _parsed(statement):
            own = _chain(_parsed(statement[: _value(statement)] + "0"))
            yield Statement((*table, *own), table, first, end, header=False)
        first = end


def changed(text: str, key: Key, value: Any) -> str:
    """The file with one key set, or `ValueError` if that takes more than a line."""
    lines, found = _lines(text), list(statements(text))
    new, newline = _written(value), "\r\n" if "\r\n" in text else "\n"
    same = [s for s in found if s.key == key and not s.header]
    beside = [s for s in found if s.key[:-1] == key[:-1] and not s.header]
    above = [s for s in found if s.key == key[:-1] and s.header]
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += newline
    if same:
        lines[same[0].first : same[0].end] = [_revalued("".join(lines[same[0].first : same[0].end]), new)]
    elif beside:
        indent = re.match(r"\s*", lines[beside[-1].first])
        rest = write_key(key[len(beside[-1].table) :])
        lines.insert(beside[-1].end, f"{indent[0] if indent else ''}{rest} = {new}{newline}")
    elif above:
        lines.insert(above[-1].end, f"{key[-1]} = {new}{newline}")
    elif len(key) == 1:
        at = next((s.first for s in found if s.header), len(lines))
        at -= len(list(takewhile(lambda line: line.lstrip().startswith("#"), reversed(lines[:at]))))
        lines[at:at] = [f"{key[0]} = {new}{newline}", *([newline] if lines[at:] else [])]
    else:
        lines += [*([newline] if lines else []), f"[{write_key(key[:-1])}]{newline}", f"{key[-1]} = {new}{newline}"]
    result = "".join(lines)
    if _parsed(result) != _with(tomllib.loads(text), key, value):
        raise ValueError(f"{write_key(key)} = {new}")
    return result


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def _chain(tree: Any) -> Key:
    """The one way down."""
    keys = []
    while isinstance(tree, dict) and tree:
        [(key, tree)] = tree.items()
        keys.append(key)
    return tuple(keys)


def _value(statement: str) -> int:
    """Where the value begins: behind the first = that is not part of a key."""
    ends = (m.end() for m in re.finditer(r"=[ \t]*", statement))
    return next(end for end in ends if _parsed(statement[:end] + "0"))


def _revalued(statement: str, value: str) -> str:
    """An assignment with another value and the comment it had."""
    marks = (m.start() for m in re.finditer(r"[ \t]*(#|\r?\n)", statement))
    end = next(mark for mark in marks if _parsed(statement[:mark]))
    return statement[: _value(statement)] + value + statement[end:]


def _written(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return quoted(value)
        case list():
            return f"[{', '.join(map(_written, value))}]"
        case _:
            return repr(value)


def _with(tree: dict[str, Any], key: Key, value: Any) -> dict[str, Any]:
    """What the file should hold afterwards."""
    if len(key) == 1:
        return {**tree, key[0]: value}
    inner = tree.get(key[0], {})
    return {**tree, key[0]: _with(inner if isinstance(inner, dict) else {}, key[1:], value)}
