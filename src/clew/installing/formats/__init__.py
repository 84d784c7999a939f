"""Files that people write, changed key by key with all the rest left as it is; a module a format."""

from collections.abc import Mapping
from typing import Any, Protocol

from clew.config.setting import Key

ABSENT = object()


class TextFormat(Protocol):
    """What each module here is. All raise `ValueError` for a text that they cannot read, or change safely."""

    def read(self, text: str) -> Mapping[str, Any]:
        """What the text says."""
        ...

    def put(self, text: str, key: Key, value: str) -> str:
        """The text with a key set."""
        ...

    def drop(self, text: str, key: Key) -> str:
        """The text without a key that is there."""
        ...


def found(data: Any, key: Key) -> Any:
    """The value of a key, or `ABSENT`."""
    for name in key:
        if not isinstance(data, Mapping) or name not in data:
            return ABSENT
        data = data[name]
    return data


def depth(data: Any, key: Key) -> int:
    """How many parts of a key are there."""
    return next(n for n in range(len(key), -1, -1) if found(data, key[:n]) is not ABSENT)


def with_key(format: TextFormat, text: str, key: Key, value: str) -> str:
    """The text with a key set; raises `ValueError` if anything else would be another thereafter."""
    new = format.put(text, key, value)
    if format.read(new) != _with(format.read(text), key, value):
        raise ValueError(f"{'.'.join(key)} cannot be set without changing more")
    return new


def without_key(format: TextFormat, text: str, key: Key, keep: int) -> str:
    """The text without a key, and without the tables around it that are empty then, but for the outer `keep`."""
    new = format.drop(text, key)
    if found(format.read(new), key) is not ABSENT:
        raise ValueError(f"{'.'.join(key)} is there twice")
    for end in range(len(key) - 1, keep, -1):
        if found(format.read(new), key[:end]) == {}:
            new = format.drop(new, key[:end])
    return new


def _with(data: Mapping[str, Any], key: Key, value: str) -> dict[str, Any]:
    name, *rest = key
    return {**data, name: _with(data.get(name, {}), tuple(rest), value) if rest else value}
