"""Lines in the middle of a long text that somebody asked for: by a name in a call or a question, or for an error."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from clew.steps.outcome import ERROR
from clew.steps.shorten import parsed

TERMS = 32  # looked for in one text
COMMON = 20  # a word on more lines than this says nothing about any of them
WIDTH = 160  # characters of a matching line
LABEL = "; lines that match:"

_WORD = re.compile(r"[A-Za-z_][\w./-]*\w")
_NAME = re.compile(r"[_/.\d]\w|[a-z][A-Z]")  # no ordinary word: a path, snake_case, camelCase, v2


class MatchedLine(NamedTuple):
    """A line worth showing; of two, that with the lower rank."""

    rank: int  # on how many lines its word stands
    number: int  # of the line, from 1
    start: int  # of the line in the text
    stop: int
    shown: str


def terms(arguments: str, asked: str) -> list[str]:
    """What a call and a question are about: every word of the call's arguments, the names in the question."""
    value = parsed(arguments)
    said = " ".join(_strings(arguments if value is None else value))
    words = [w for w in _WORD.findall(said) if len(w) > 3]
    words += [w for w in _WORD.findall(asked) if len(w) > 3 and _NAME.search(w)]
    # A path is written in many ways; the name of its file in one.
    return list(dict.fromkeys(part for w in words for part in (w, w.rpartition("/")[2]) if len(part) > 3))[:TERMS]


def matches(text: str, words: Iterable[str]) -> list[MatchedLine]:
    """The lines that hold one of these words or speak of an error, those with the rarest words first."""
    starts = [0, *(m.end() for m in re.finditer("\n", text))]
    best: dict[int, tuple[int, int]] = {}  # of each line: its rank, and where the word stands
    for places in (*(_places(text, word) for word in words), _errors(text)):
        rank = len({bisect_right(starts, p) for p in places})
        for place in places if rank <= COMMON else ():
            line = bisect_right(starts, place)
            if line not in best or rank < best[line][0]:
                best[line] = rank, place
    ends = [*(s - 1 for s in starts[1:]), len(text)]
    found = [
        MatchedLine(
            rank, line, starts[line - 1], ends[line - 1], _around(text, starts[line - 1], ends[line - 1], place)
        )
        for line, (rank, place) in best.items()
    ]
    return sorted(found)


def listing(found: Sequence[MatchedLine], start: int, stop: int, room: int) -> str:
    """As many of the matches between two places as there is room for, in the order of the text."""
    room -= len(LABEL) + 8  # the count before it may need a digit more
    chosen = []
    for match in found:
        cost = len(match.shown) + len(str(match.number)) + 3
        if start <= match.start and match.stop <= stop and cost <= room:
            room -= cost
            chosen.append(match)
    lines = [f"\n{m.number}: {m.shown}" for m in sorted(chosen, key=lambda m: m.number)]
    return LABEL + "".join(lines) + "\n" if lines else ""


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


def _places(text: str, word: str) -> list[int]:
    """Where a word stands by itself; a few more places than are common is enough to know that it is."""
    found: list[int] = []
    at = text.find(word)
    while at >= 0 and len(found) <= 2 * COMMON:
        before, after = text[at - 1 : at], text[at + len(word) : at + len(word) + 1]
        if not (before.isalnum() or before == "_" or after.isalnum() or after == "_"):
            found.append(at)
        at = text.find(word, at + len(word))
    return found


def _errors(text: str) -> list[int]:
    """Where errors are first and last spoken of."""
    found = [m.start() for m in ERROR.finditer(text)]
    return found if len(found) <= COMMON else [*found[: COMMON // 2], *found[-COMMON // 2 :]]


def _around(text: str, start: int, stop: int, place: int) -> str:
    """A line, or of a long one what stands around a place."""
    if stop - start > WIDTH:
        start = max(start, place - WIDTH // 2)
        stop = min(stop, start + WIDTH)
    return text[start:stop].strip()
