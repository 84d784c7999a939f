"""Files that people write, changed key by key with all the rest left as it is; a module a format."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from clew.config.setting import Key

ABSENT = object()
EACH = "[]"  # as the last part of a key: the value is one element of a list that others may have elements in


class TextFormat(Protocol):
    """What each module here is. All raise `ValueError` for a text that they cannot read, or change safely."""

    def read(self, text: str) -> Mapping[str, Any]:
        """What the text says."""
        ...

    def put(self, text: str, key: Key, value: Any) -> str:
        """The text with a key set."""
        ...

    def drop(self, text: str, key: Key) -> str:
        """The text without a key that is there."""
        ...


def found(data: Any, key: Key) -> Any:
    """The value of a key, or `ABSENT`; the elements of a list have their numbers for names."""
    for name in key:
        if isinstance(data, list) and name.isdecimal() and int(name) < len(data):
            data = data[int(name)]
        elif isinstance(data, Mapping) and name in data:
            data = data[name]
        else:
            return ABSENT
    return data


def says(data: Any, key: Key, value: Any) -> bool:
    """Whether a key has a value, or a list has it as an element."""
    if key[-1] != EACH:
        return bool(found(data, key) == value)
    elements = found(data, key[:-1])
    return isinstance(elements, list) and value in elements


def place(data: Any, key: Key, value: Any) -> Key:
    """The key itself; that of an element of a list is where it is, or would be."""
    if key[-1] != EACH:
        return key
    elements = found(data, key[:-1])
    if not isinstance(elements, Sequence) or isinstance(elements, str):
        return (*key[:-1], "0")
    return (*key[:-1], str(elements.index(value) if value in elements else len(elements)))


def depth(data: Any, key: Key) -> int:
    """How many parts of a key are there."""
    return next(n for n in range(len(key), -1, -1) if found(data, key[:n]) is not ABSENT)


def with_key(format: TextFormat, text: str, key: Key, value: Any) -> str:
    """The text with a key set; raises `ValueError` if anything else would be another thereafter."""
    data = format.read(text)
    at = place(data, key, value)
    if key[-1] == EACH and found(data, key[:-1]) is ABSENT:
        new = format.put(text, key[:-1], [value])
    else:
        new = format.put(text, at, value)
    if format.read(new) != _with(data, at, value, key[-1] == EACH):
        raise ValueError(f"{'.'.join(key)} cannot be set without changing more")
    return new


def without_key(format: TextFormat, text: str, key: Key, keep: int) -> str:
    """The text without a key, and without the tables around it that are empty then, but for the outer `keep`."""
    new = format.drop(text, key)
    if not isinstance(found(format.read(text), key[:-1]), list) and found(format.read(new), key) is not ABSENT:
        raise ValueError(f"{'.'.join(key)} is there twice")
    for end in range(len(key) - 1, keep, -1):
        if found(format.read(new), key[:end]) in ({}, []):
            new = format.drop(new, key[:end])
    return new


def _with(data: Any, key: Key, value: Any, in_list: bool) -> Any:
    name, *rest = key
    if in_list and not rest:
        return [*(data or []), value] if not data or int(name) == len(data) else data
    inner = data.get(name, {}) if isinstance(data, Mapping) else ABSENT
    if inner is ABSENT:
        raise ValueError(f"{name} has no place in what is there")
    return {**data, name: _with(inner, tuple(rest), value, in_list) if rest else value}
