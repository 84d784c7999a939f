"""Secrets in disguise: with colours, invisible characters or wide letters in them, or packed as base64 or hex."""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator, Sequence
from typing import NamedTuple

LONGEST_UNPACKED = 4_096  # characters of what is unpacked; a longer one is a picture or a document

# What a terminal takes for a colour, as it is or as it is escaped; what nobody sees.
_COLOUR = r"(?:\x1b|\\u001b|\\x1b|\\033|\\e)\[[0-9;:]{0,40}[A-Za-z]|\x9b[0-9;:]{0,40}[A-Za-z]|\x1b[()][A-Z0-9]"
_UNSEEN = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff"
_HIDES = re.compile(f"{_COLOUR}|[{_UNSEEN}]+")
_DISGUISED = re.compile(f"{_COLOUR}|[{_UNSEEN}\uff01-\uff5e]")
_SIGNS = ("\x1b", "\\u001b[", "\\x1b[", "\\033[", "\\e[")  # one of them must be there: most text has none
_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}

_RUN = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{24,}+={0,2}")
_HEX = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{2})+)")
_TEXT = re.compile(rb"[\t\n\r -~]+")


class Unpacked(NamedTuple):
    """A text as it reads, and where each of its characters stands in the text that it was."""

    text: str
    places: Sequence[int]

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """Where a part of it stands in the text that it was."""
        return self.places[start], self.places[stop - 1] + 1


def plain(text: str) -> Unpacked | None:
    """A text without what hides in it, in narrow letters; None where it is as it reads."""
    if (text.isascii() and not any(sign in text for sign in _SIGNS)) or not _DISGUISED.search(text):
        return None
    parts: list[str] = []
    places: list[int] = []
    end = 0
    for hidden in (*_HIDES.finditer(text), None):
        start = len(text) if hidden is None else hidden.start()
        parts.append(text[end:start])
        places += range(end, start)
        end = len(text) if hidden is None else hidden.end()
    return Unpacked("".join(parts).translate(_WIDE), places)


def packed(text: str) -> Iterator[tuple[int, int, str]]:
    """What is packed in a text, and unpacked is text again: where it stands, and what it says."""
    for match in _RUN.finditer(text):
        run = match[0]
        if len(run) > LONGEST_UNPACKED:
            continue
        digits = _HEX.fullmatch(run)
        data = bytes.fromhex(digits[1]) if digits else _unpacked(run)
        if _TEXT.fullmatch(data):
            yield *match.span(), data.decode("ascii")


def _unpacked(run: str) -> bytes:
    bare = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return b64decode(bare + "=" * (-len(bare) % 4))
    except Error:
        return b""
