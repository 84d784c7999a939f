"""Where the messages of a request lie in its bytes. Guesses are cheap; each is proved by parsing what is left."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clew.core import rawjson
from clew.errors import BadRequest

BLOCK = 1 << 18  # bytes compared at a time
TRIES = 64  # places looked at before giving up: the slow way is always right
BLANKS = 64  # bytes between two messages, where somebody indents them
LOOK_BACK = 1 << 20  # bytes looked back for a place between two messages

_CLOSES = re.compile(rb"\]\s*\}\s*\Z")


def edges(raw: bytes, body: Mapping[str, Any], key: str, lead: int) -> tuple[int, int]:
    """From where to where the history under `key` lies, after `lead` system messages; (0, 0) if not plain to see."""
    messages = body[key]
    if not isinstance(messages, list) or len(messages) <= lead:
        return 0, 0
    for start in _starts(raw, key, messages[:lead]):
        for end in _ends(raw, key, body):
            # Without its history the body must be the same body: that proves both places.
            rest = raw[:start].rstrip().removesuffix(b",") + raw[end:]
            if rawjson.attempt(rest) == {**body, key: messages[:lead]}:
                return start, _after_last(raw, end)
    return 0, 0


def last_boundary(raw: bytes, start: int, upto: int, end: int, messages: Sequence[Any]) -> tuple[int, int] | None:
    """The last place between two messages before `upto`: its offset, and how many messages come before it."""
    at = upto
    for _ in range(TRIES):
        at = _element_before(raw, max(start, upto - LOOK_BACK), at)
        if at <= start:
            return None
        comma = raw.rindex(b",", start, at)
        # What stands before it proves a place as well as what stands after it: the shorter of the two is parsed.
        if comma - start < end - at:
            known = _listed(raw[start:comma])
            if known and known == messages[: len(known)]:
                return comma, len(known)
        else:
            known = _listed(raw[at:end])
            if known and known == messages[-len(known) :] and len(known) < len(messages):
                return comma, len(messages) - len(known)
    return None


def _listed(raw: bytes) -> list[Any] | None:
    found = rawjson.attempt(b"[" + raw + b"]")
    return found if isinstance(found, list) else None


def parsed_list(raw: bytes) -> list[Any] | None:
    """The elements that stand there between commas; None if that is not what stands there."""
    try:
        found = rawjson.loads(b"[" + raw + b"]")
    except BadRequest:
        return None
    return found if isinstance(found, list) else None


def shared_bytes(old: bytes, start: int, new: bytes, begin: int) -> int:
    """How many bytes are the same from these two places on: equal blocks are skipped at the speed of memory."""
    least = min(len(old) - start, len(new) - begin)
    low = 0
    while low < least and old[start + low : start + low + BLOCK] == new[begin + low : begin + low + BLOCK]:
        low += BLOCK
    high = min(low + BLOCK, least)
    low = min(low, least)
    while low < high:
        middle = (low + high + 1) // 2
        if old[start + low : start + middle] == new[begin + low : begin + middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _after_last(raw: bytes, end: int) -> int:
    """Where the last message ends: blanks before the bracket belong to no message."""
    while raw[end - 1] in b" \t\r\n":
        end -= 1
    return end


def _element_before(raw: bytes, start: int, at: int) -> int:
    """The last object before `at` that follows a comma; -1 if there is none after `start`."""
    while (at := raw.rfind(b"{", start, at)) > start:
        if raw[max(start, at - BLANKS) : at].rstrip().endswith(b","):
            return at
    return -1


def _starts(raw: bytes, key: str, lead: Sequence[Any]) -> Iterator[int]:
    """Where the history may begin."""
    opens = re.compile(rb'"%b"\s*:\s*\[\s*' % key.encode())
    for found, _ in zip(opens.finditer(raw), range(TRIES), strict=False):
        first = found.end()
        if not lead:
            yield first
            continue
        for comma, _ in zip(re.finditer(rb",\s*(?=\{)", raw[first : first + LOOK_BACK]), range(TRIES), strict=False):
            if rawjson.attempt(b"[" + raw[first : first + comma.start()] + b"]") == lead:
                yield first + comma.end()
                break


def _ends(raw: bytes, key: str, body: Mapping[str, Any]) -> Iterator[int]:
    """Where the history may end: at the bracket before the next key, or before the last brace."""
    keys = list(body)
    after = keys[keys.index(key) + 1 :]
    if not after:
        found = _CLOSES.search(raw, max(0, len(raw) - 200))
        yield from [found.start()] if found else []
        return
    closes = re.compile(rb"\]\s*,\s*" + re.escape(rawjson.dumps(after[0])) + rb"\s*:")
    places = [found.start() for found in closes.finditer(raw)]
    yield from reversed(places[-TRIES:])
