"""Strings that were searched and hold no secret: clients say the same again with every request."""

import os
from hashlib import blake2b

MOST_DIGESTS = 20_000  # then it begins anew

_KEY = os.urandom(32)  # of this process: a digest tells nobody what was said
_digests: set[bytes] = set()


def digest(text: str, depth: int, chosen: bool) -> bytes:
    """What a string is known by, as it was searched."""
    said = text.encode("utf-8", "surrogatepass")
    return blake2b(said, key=_KEY, person=bytes((depth, chosen)), digest_size=16).digest()


def is_harmless(known_by: bytes) -> bool:
    """Whether this string was searched before, and held nothing."""
    return known_by in _digests


def remember(known_by: bytes) -> None:
    """This string held nothing."""
    if len(_digests) >= MOST_DIGESTS:
        _digests.clear()
    _digests.add(known_by)
