"""The words of a text as SQLite's `unicode61` finds them: letters, digits and `_`, without case and accents."""

import re
import unicodedata
from collections.abc import Iterator

from clew.store.signs import indexed

LONGEST_WORD = 500  # characters of a word; PostgreSQL takes some 2,000 bytes
MOST_BYTES = 400_000  # bytes of words together; it takes a million

_WORD = re.compile(r"\w+")
_ACCENT = re.compile("[\u0300-\u036f]")


def split(text: str) -> list[str]:
    """The words of a text, in order."""
    plain = _ACCENT.sub("", unicodedata.normalize("NFD", text.lower()))
    return [word[:LONGEST_WORD] for word in _WORD.findall(unicodedata.normalize("NFC", plain))]


def in_parts(text: str) -> Iterator[list[str]]:
    """The words of a text, each once, in parts that an index can take; an empty one if there are none."""
    part: list[str] = []
    room = MOST_BYTES
    for word in sorted(set(split(indexed(text)))):
        size = len(word.encode())
        if size > room:
            yield part
            part, room = [], MOST_BYTES
        part.append(word)
        room -= size
    yield part
