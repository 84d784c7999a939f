"""What a fact is worth: how likely it is to be wanted again, by who said it, how often, how long ago, and its kind."""

from collections.abc import Mapping, Sequence
from math import log1p

from clew.facts.sheets import Sheet, Voice

SAID: Mapping[Voice, float] = {"user": 1.0, "said": 0.8, "call": 0.8, "result": 0.2}  # the best of its mentions counts
PAGES = 100  # of about a hundred tokens, after which a fact is worth half
PAGE = 400  # characters
OFTEN = 0.25  # how much more each doubling of its mentions makes it worth
# How much a fact must be kept as it is written, by kind: idioms of a language, dates and flags are said again from
# knowledge or by coincidence; an id never is.
UNGUESSABLE = {
    "command": 0.35,
    "date": 0.15,
    "dotted": 0.15,
    "email": 0.8,
    "error": 0.3,
    "flag": 0.05,
    "kebab": 0.1,
    "number": 0.1,
    "pair": 0.15,
    "path": 0.9,
    "private": 0.1,
}


class FactTrace:
    """The life of one fact in a history."""

    __slots__ = ("item", "kind", "last", "said", "times")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.item = 0  # the last to mention it
        self.last = 0  # the character at which that begins
        self.said = 0.0
        self.times = 0


def trace(sheets: Sequence[Sheet]) -> tuple[dict[str, FactTrace], int]:
    """Each fact's life, and the length of the history in characters."""
    traces: dict[str, FactTrace] = {}
    at = 0
    for item, page in enumerate(sheets):
        for key, kind in page.facts.items():
            life = traces.get(key)
            if life is None:
                life = traces[key] = FactTrace(kind)
            life.item, life.last = item, at
            life.said = max(life.said, SAID[page.voice])
            life.times += 1
        at += page.size
    return traces, at


def worths(traces: Mapping[str, FactTrace], now: int) -> dict[str, float]:
    """For each fact, between 0 and 1, how much it would be missed."""
    return {key: _worth(key, life, now) for key, life in traces.items()}


def _worth(key: str, life: FactTrace, now: int) -> float:
    age: float = 0.5 ** ((now - life.last) / (PAGE * PAGES))
    used = min(1.0, life.said * (1 + OFTEN * log1p(life.times - 1)) / 2)
    return unguessable(life.kind, key) * used * (0.3 + 0.7 * age)


def unguessable(kind: str, key: str) -> float:
    """How much a fact must be kept as it is written; a long name says more than a short one."""
    if kind == "symbol":
        return min(1.0, max(0.1, (len(key) - 7) / 14))
    return UNGUESSABLE.get(kind, 1.0)
