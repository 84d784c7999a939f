"""The words of a text, as they are searched: a name is found whole (`src/clew/view.py`) and by its parts.

Those are `view.py`, `view`; `token` in `countTokens`; any two signs in a row where words have no spaces between them.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import log

from clew.core.caches import remembers

PIECE = 200  # characters of a line in one passage
QUESTION = 64_000  # characters read of a question, half of them its end
REMEMBERED_CHARACTERS = 64  # characters of a name whose parts are remembered: those of a long one take much room
PART_WEIGHT = 0.4  # what a part of a name is worth, tuned on real conversations

CHUNK = re.compile(r"\w+(?:[./:@-]+\w+)*")
JOINT = re.compile(r"[./:@-]+")
HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
SIGNS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]{2,}")  # no spaces between words
NAME_PATTERN = re.compile(r"(?<![~./])[~./]*\w+(?:[./@-]+\w+)*")
TELLING = re.compile(r"/|\w_\w|[a-z0-9][A-Z]|[A-Za-z]\d|\d[A-Za-z]|\w\.\w|[A-Z]{2}[a-z]|^\d{4}")
COMMON = frozenset(
    "a an and are as at be but by can do for from has have if in into is it its let ll me my no not now of on or so "
    "that the then this to was we what when will with you your".split()
)


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
    return tuple(sorted({t.lower() for t in found if t.strip("_") and (len(t) > 1 or t.isdigit())} - COMMON))


_known_parts = remembers(1 << 16)(_parts)


def is_name(word: str) -> bool:
    """Whether a word is a path, a symbol, an id or a number rather than a word of a language."""
    return len(word) > 3 and bool(TELLING.search(word))
