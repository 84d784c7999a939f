"""What an event notes, as it lies in its column: mostly calls, so those without their keys and with raw digests."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from clew.core import rawjson
from clew.store.compressing import compress, decompress
from clew.store.packing import WIDTH, WORTH, pack

# How a note begins, if not with the brace of its JSON. Statements read the frame's digest of a call: it stands first.
_PACKED_CALL, _COMPRESSED, _PACKED_USAGE = b"\x01", b"\x02", b"\x03"

_PERHAPS = {"shadow": None, "due": None, "window": 0}  # what a call may be without
_CALL = ("model", "format", "predicted", "limit", "exact", "cached", *_PERHAPS)
_USAGE = ("input", "output", "cache_read", "cache_write")


def pack_note(kind: str, note: Mapping[str, Any] | None) -> bytes | None:
    """A note as it is stored."""
    if note is None:
        return None
    brief = _call(note) if kind == "call" else _usage(note) if kind == "usage" else None
    if brief is not None:
        return brief
    data = rawjson.dumps(note)
    # Statements read what was sent in a call: that of a strange one stays as it is.
    return data if kind == "call" or len(data) < WORTH else _COMPRESSED + compress(data)


def unpack_note(stored: bytes | str | None) -> dict[str, Any]:
    """A note as it was; notes of older versions are JSON."""
    found: dict[str, Any] = {}
    if not stored:
        return found
    if isinstance(stored, str) or stored[:1] == b"{":
        found = rawjson.loads(stored)
    elif stored[:1] == _COMPRESSED:
        found = rawjson.loads(decompress(stored[1:]))
    elif stored[:1] == _PACKED_USAGE:
        *tokens, cost = rawjson.loads(stored[1:])
        usage = {key: value for key, value in zip(_USAGE, tokens, strict=True) if value is not None}
        found = {"usage": usage, "cost": cost}
    elif stored[:1] == _PACKED_CALL:
        found = {**_PERHAPS, **dict(zip(_CALL, rawjson.loads(stored[1 + 2 * WIDTH :]), strict=False))}
        found |= {"frame": stored[1 : 1 + WIDTH].hex(), "digest": stored[1 + WIDTH : 1 + 2 * WIDTH].hex()}
        found["exact"] = bool(found["exact"])
        if isinstance(found["format"], int):
            found["format"] = _names()[found["format"]]
    else:
        raise ValueError(f"unknown form of note: {stored[:1]!r}")
    return found


@cache
def _numbers() -> Mapping[str, int]:
    """How formats are spelled here. Its own: what a package brings may be a kind of a format that has a number."""
    from clew.wire.formats import FORMATS  # takes long to load, and a list of sessions reads no call

    return {name: n for name, one in FORMATS.items() if (n := vars(type(one)).get("number")) is not None}


@cache
def _names() -> Mapping[int, str]:
    return {number: name for name, number in _numbers().items()}


def _call(note: Mapping[str, Any]) -> bytes | None:
    """A call without its keys, if it has those of every call and digests that are some."""
    if note.keys() != {"frame", "digest", *_CALL} or not isinstance(note["exact"], bool):
        return None
    rest = {key: note[key] for key in _CALL}
    rest["exact"] = int(rest["exact"])
    rest["format"] = _numbers().get(rest["format"], rest["format"])
    try:
        digests = pack((note["frame"], note["digest"]))
    except ValueError:
        return None
    if digests.hex() != note["frame"] + note["digest"] or len(note["frame"]) != 2 * WIDTH or len(digests) != 2 * WIDTH:
        return None
    for last, usual in reversed(_PERHAPS.items()):
        if rest[last] != usual:
            break
        del rest[last]
    return _PACKED_CALL + digests + rawjson.dumps(list(rest.values()))


def _usage(note: Mapping[str, Any]) -> bytes | None:
    usage = note["usage"]
    if note.keys() != {"usage", "cost"} or not usage.keys() <= set(_USAGE) or None in usage.values():
        return None
    return _PACKED_USAGE + rawjson.dumps([*(usage.get(key) for key in _USAGE), note["cost"]])
