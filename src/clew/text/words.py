"""The words of a text, as they are searched: a name is found whole (`src/clew/view.py`) and by its parts.

Those are `view.py`, `view`; `token` in `countTokens`; any two signs in a row where words have no spaces between them.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import log
from typing import Any

from clew.core.caches import remembers

PIECE = 200  # characters of a line in one passage
QUESTION = 64_000  # characters read of a question, half of them its end
REMEMBERED_CHARACTERS = 64  # characters of a name whose parts are remembered: those of a long one take much room
PART_WEIGHT = 0.4  # what a part of a name is worth, tuned on real conversations

# Signs of languages that put no spaces between words, or that join endings to them: Thai, Lao, Burmese, Khmer, Chinese,
# Japanese, Korean. Vowel marks are among them, and no letters to `\w`: a word is not to be cut there.
SIGN = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109d\u1780-\u17d3\u17e0-\u17e9\u3005-\u3007"
    "\u3041-\u30fa\u30fc-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)


class Late:
    """A pattern that is compiled when it is first used: with signs of many languages that takes milliseconds."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def __getattr__(self, name: str) -> Any:
        return self.__dict__.setdefault(name, getattr(re.compile(self._pattern), name))


SIGNS = Late(f"[{SIGN}]+")
CHUNK = Late(rf"[\w{SIGN}]+(?:[./:@-]+[\w{SIGN}]+)*")
JOINT = re.compile(r"[./:@-]+")
HUMP = Late(rf"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[{SIGN}]+|\d+|[^\W\d_a-zA-Z{SIGN}]+")
NAME_PATTERN = re.compile(r"(?<![~./])[~./]*\w+(?:[./@-]+\w+)*")
TELLING = re.compile(r"/|\w_\w|[a-z0-9][A-Z]|[A-Za-z]\d|\d[A-Za-z]|\w\.\w|[A-Z]{2}[a-z]|^\d{4}")
COMMON = frozenset(
    "a an and are as at be but by can do for from has have if in into is it its let ll me my no not now of on or so "
    "that the then this to was we what when will with you your".split()
)


def width(text: str) -> int:
    """What a text takes, in letters of an alphabet: a sign of a language without spaces says about as much as three."""
    return len(text) if text.isascii() else len(text) + 2 * sum(map(len, SIGNS.findall(text)))


def leaves(value: object, *, joined: bool = False) -> Iterator[str]:
    """Each text and number in a JSON value; `joined`: a list of words, such as a command, first as one line."""
    match value:
        case str():
            yield value
        case Mapping():
            for part in value.values():
                yield from leaves(part, joined=joined)
        case list():
            if joined and value and all(isinstance(part, str) for part in value):
                yield " ".join(value)
            for part in value:
                yield from leaves(part, joined=joined)
        case None | bool():
            pass
        case _:
            yield str(value)


def terms(text: str) -> dict[str, float]:
    """The words of a question and what each is worth: names whole, their parts less, what is repeated a little more."""
    found: dict[str, float] = defaultdict(float)
    read = text if len(text) <= QUESTION else f"{text[: QUESTION // 2]} {text[-QUESTION // 2 :]}"
    for chunk in CHUNK.findall(read):
        for at in range(0, len(chunk), PIECE):  # as long lines are cut: no passage has a longer one
            name = chunk[at : at + PIECE]
            for part in parts(name):
                found[part] += 1 if part == name.lower() else PART_WEIGHT
    return {term: worth if worth <= 1 else 1 + log(worth) for term, worth in found.items()}


def parts(chunk: str) -> tuple[str, ...]:
    """A name whole, its ends, its neighbours (`clew/view`), the names in it and their humps; common words are none."""
    return _known_parts(chunk) if len(chunk) <= REMEMBERED_CHARACTERS else _parts(chunk)


def _parts(chunk: str) -> tuple[str, ...]:
    joints = [joint.span() for joint in JOINT.finditer(chunk)]
    starts, stops = [0, *(b for _, b in joints)], [*(a for a, _ in joints), len(chunk)]
    found = {chunk[start:] for start in starts}
    found.update(chunk[start:stop] for start, stop in zip(starts, stops[1:], strict=False))
    for start, stop in zip(starts, stops, strict=True):
        found.add(chunk[start:stop])
        found.update(HUMP.findall(chunk[start:stop]))
        for run in SIGNS.findall(chunk[start:stop]):  # any two in a row may be a word
            found.update(run[i : i + 2] for i in range(len(run) - 1))
    alone = is_lone_sign(chunk)
    return tuple(sorted({t.lower() for t in found if t.strip("_") and (len(t) > 1 or t.isdigit() or alone)} - COMMON))


_known_parts = remembers(1 << 16)(_parts)


def is_lone_sign(word: str) -> bool:
    """Whether this is one sign that somebody wrote alone: in these languages, that may be a word."""
    return len(word) == 1 and SIGNS.match(word) is not None


def is_name(word: str) -> bool:
    """Whether a word is a path, a symbol, an id or a number rather than a word of a language."""
    return len(word) > 3 and bool(TELLING.search(word))
