"""What the lines of an export must be like: a file is anybody's, and what is in the log once stays there."""

import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, get_args

from clew.core.items import Kind, Role
from clew.errors import BadRequest
from clew.store.records import Cause
from clew.wire.formats import FORMATS

Fits = Callable[[Any], bool]
Fields = Mapping[str, Fits]

_MOST = 2**53  # what every reader of JSON takes for a whole number

_ID = re.compile("[0-9a-f]{32}")
_NAME = re.compile("[0-9a-f]{16}")


def expect(value: Any, shape: Fields, what: str) -> None:
    """Raise `BadRequest` unless a value is an object in which each of these keys fits, if it is there."""
    if not isinstance(value, dict):
        raise BadRequest(f"{what}: not an object")
    if wrong := next((key for key, fits in shape.items() if not fits(value.get(key))), None):
        raise BadRequest(f"{what}: {wrong} is not part of a clew export")


def text(value: Any) -> bool:
    """Text that a store takes for a name."""
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


def name(value: Any) -> bool:
    """The id of a branch or session."""
    return isinstance(value, str) and bool(_NAME.fullmatch(value))


def ids(value: Any) -> bool:
    """Ids of nodes, or none."""
    return value is None or (isinstance(value, list) and all(map(_id, value)))


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


def perhaps(fits: Fits) -> Fits:
    """Nothing will do, too."""
    return lambda value: value is None or fits(value)


def one_of(*values: Any) -> Fits:
    """One of a few."""
    return lambda value: isinstance(value, str) and value in values


def shaped(shape: Fields, closed: bool = False) -> Fits:
    """An object in which each of these keys fits; with `closed`, it has no others."""

    def fits(value: Any) -> bool:
        if not isinstance(value, dict) or (closed and value.keys() - shape.keys()):
            return False
        return all(fits(value.get(key)) for key, fits in shape.items())

    return fits


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(map(string, value))


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(map(name, value))


def _list(value: Any) -> bool:
    return isinstance(value, list)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _id(value: Any) -> bool:
    return isinstance(value, str) and bool(_ID.fullmatch(value))


def _aliases(value: Any) -> bool:
    return isinstance(value, dict) and ids([*value, *value.values()])


_OBJECT = shaped({})
_FORMAT = one_of(*FORMATS)
_CAUSE = one_of(*get_args(Cause))
_SWITCH = shaped({"format": _FORMAT, "gone": ids, "loose": ids}, closed=True)
_EVIDENCE = shaped({"handle": perhaps(_id), "call": perhaps(string), "cost": perhaps(number)})
_SPENT = shaped(dict.fromkeys(("input", "output", "cache_read", "cache_write"), perhaps(count)))
_CALL: Fields = {
    "frame": count,
    "model": text,
    "format": _FORMAT,
    "digest": string,
    "predicted": whole,
    "limit": whole,
    "exact": _flag,
    "cached": whole,
    "shadow": perhaps(_OBJECT),
}

BRANCH: Fields = {
    "branch": name,
    "name": perhaps(text),
    "cause": _CAUSE,
    "at": number,
    "parent": perhaps(name),
    "parent_seq": perhaps(whole),
    "after": perhaps(name),
    "tags": _strings,
    "archived": _flag,
}
ITEM: Fields = {
    "kind": one_of(*get_args(Kind)),
    "role": one_of(*get_args(Role)),
    "text": string,
    "name": perhaps(string),
    "call_id": perhaps(string),
}
NODE: Fields = {"node": _id, "item": count, "opens": perhaps(string)}
FRAME_FIELDS: Fields = {
    "format": _FORMAT,
    "model": string,
    "lead": _list,
    "tools": _list,
    "body": _OBJECT,
    "system": string,
}
EVENT: Fields = {"at": number, "start": perhaps(count), "stop": perhaps(count), "old": ids, "new": ids}
NOTE_FIELDS: Mapping[str, Fits] = {
    "said": perhaps(_OBJECT),
    "pin": perhaps(_OBJECT),
    "unpin": perhaps(_OBJECT),
    "client": perhaps(shaped({"alias": _aliases, "switch": perhaps(_SWITCH)})),
    "edit": shaped({"by": string, "evidence": _EVIDENCE, "spent": whole}),
    "session": shaped({"session": name, "cause": _CAUSE, "method": text}, closed=True),
    "revert": perhaps(shaped({"sessions": _names})),
    "usage": shaped({"usage": _SPENT, "cost": perhaps(number)}),
    "call": shaped(_CALL, closed=True),
}
