"""What values must be like that somebody else wrote: a file, another version, a damaged store."""

import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from clew.errors import BadRequest

Fits = Callable[[Any], bool]
Fields = Mapping[str, Fits]

_MOST = 2**53  # what every reader of JSON takes for a whole number
_DEEPEST = 50  # lists and objects in each other; clew itself writes five

_ID = re.compile("[0-9a-f]{32}")
_NAME = re.compile("[0-9a-f]{16}")
_SURROGATE = re.compile("[\ud800-\udfff]")


def misfits(value: Mapping[str, Any], needed: Fields, maybe: Fields) -> list[str]:
    """The keys of an object under which something is wrong: it does not fit, or is `needed` and not there."""
    wrong = [key for key, fits in needed.items() if key not in value or not fits(value[key])]
    return wrong + [key for key, fits in maybe.items() if key in value and not fits(value[key])]


def expect(value: Any, what: str, needed: Fields, maybe: Fields | None = None) -> None:
    """Raise `BadRequest` unless a value is an object in which nothing is wrong."""
    if not isinstance(value, dict):
        raise BadRequest(f"{what} is not an object")
    if wrong := misfits(value, needed, maybe or {}):
        raise BadRequest(f"{what}: {wrong[0]} is not what clew writes there")


def text(value: Any) -> bool:
    """Text that a store takes for a name."""
    return isinstance(value, str) and not _SURROGATE.search(value)


def name(value: Any) -> bool:
    """The id of a branch or session."""
    return isinstance(value, str) and bool(_NAME.fullmatch(value))


def node_id(value: Any) -> bool:
    """The id of a node."""
    return isinstance(value, str) and bool(_ID.fullmatch(value))


def count(value: Any) -> bool:
    """A whole number of something."""
    return type(value) is int and 0 <= value < _MOST


def is_integer(value: Any) -> bool:
    """A whole number, which may be less than nothing."""
    return type(value) is int and abs(value) < _MOST


def number(value: Any) -> bool:
    """Any number of sensible size."""
    return is_integer(value) or (isinstance(value, float) and isfinite(value) and abs(value) < _MOST)


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


def strings(value: Any) -> bool:
    """A list of texts."""
    return isinstance(value, list) and {*map(type, value)} <= {str}


def row(*types: type, least: int = 0) -> Fits:
    """A list of as many entries, of these types; with `least`, the last ones may lack."""
    fewest = least or len(types)  # by their types alone, which takes a third of the time: there are thousands
    return lambda value: (
        isinstance(value, list) and len(value) >= fewest and (*map(type, value),) == types[: len(value)]
    )


def table_of(fits: Fits) -> Fits:
    """An object in which each value fits, under any key."""
    return lambda value: isinstance(value, dict) and all(map(fits, value.values()))


def shaped(needed: Fields, maybe: Fields | None = None, closed: bool = False) -> Fits:
    """An object in which nothing is wrong; with `closed`, it has no other keys."""
    more = maybe or {}
    known = needed.keys() | more.keys()
    return lambda value: (
        isinstance(value, dict) and not misfits(value, needed, more) and not (closed and value.keys() - known)
    )


def plain(value: Any, levels: int = _DEEPEST) -> bool:
    """Any JSON, but not nested so deep that somebody who goes through it would come to no end."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(plain(part, levels - 1) for part in parts)


anything: Fits = shaped({})  # an object
