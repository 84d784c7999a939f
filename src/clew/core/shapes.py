"""What values must be like that somebody else wrote: a file, another version, a damaged store."""

import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from clew.errors import BadRequest

Fits = Callable[[Any], bool]
Fields = Mapping[str, Fits]

_MOST = 2**53  # what every reader of JSON takes for a whole number

_ID = re.compile("[0-9a-f]{32}")
_NAME = re.compile("[0-9a-f]{16}")


def expect(value: Any, shape: Fields, what: str) -> None:
    """Raise `BadRequest` unless a value is an object in which each of these keys fits, or lacks where None fits."""
    if not isinstance(value, dict):
        raise BadRequest(f"{what}: not an object")
    if wrong := next((key for key, fits in shape.items() if not fits(value.get(key))), None):
        raise BadRequest(f"{what}: {wrong} is not what clew writes there")


def text(value: Any) -> bool:
    """Text that a store takes for a name."""
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


def name(value: Any) -> bool:
    """The id of a branch or session."""
    return isinstance(value, str) and bool(_NAME.fullmatch(value))


def node_id(value: Any) -> bool:
    """The id of a node."""
    return isinstance(value, str) and bool(_ID.fullmatch(value))


def count(value: Any) -> bool:
    """A whole number of something."""
    return type(value) is int and 0 <= value < _MOST


def whole(value: Any) -> bool:
    """A whole number, which may be less than nothing."""
    return type(value) is int and abs(value) < _MOST


def number(value: Any) -> bool:
    """Any number of sensible size."""
    return whole(value) or (isinstance(value, float) and isfinite(value) and abs(value) < _MOST)


def string(value: Any) -> bool:
    """Any text."""
    return isinstance(value, str)


def flag(value: Any) -> bool:
    """Yes or no."""
    return isinstance(value, bool)


def perhaps(fits: Fits) -> Fits:
    """Nothing will do, too."""
    return lambda value: value is None or fits(value)


def one_of(*values: Any) -> Fits:
    """One of a few."""
    return lambda value: isinstance(value, str) and value in values


def list_of(fits: Fits) -> Fits:
    """A list in which each entry fits."""
    return lambda value: isinstance(value, list) and all(map(fits, value))


def row(*parts: Fits, least: int = 0) -> Fits:
    """A list of as many entries, each of its own kind; with `least`, the last ones may lack."""
    return lambda value: (
        isinstance(value, list)
        and (least or len(parts)) <= len(value) <= len(parts)
        and all(fits(part) for fits, part in zip(parts, value, strict=False))
    )


def table_of(fits: Fits) -> Fits:
    """An object in which each value fits, under any key."""
    return lambda value: isinstance(value, dict) and all(map(fits, value.values()))


def shaped(shape: Fields, closed: bool = False) -> Fits:
    """An object in which each of these keys fits; with `closed`, it has no others."""

    def fits(value: Any) -> bool:
        if not isinstance(value, dict) or (closed and value.keys() - shape.keys()):
            return False
        return all(fits(value.get(key)) for key, fits in shape.items())

    return fits


anything: Fits = shaped({})  # an object
