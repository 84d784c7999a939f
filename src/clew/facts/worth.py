"""How likely the assistant is to use a fact again: a small logistic model over how the fact was met and handled."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain
from math import exp, log
from operator import mul

from clew.facts.sheets import Sheet, Voice

VOICES: tuple[Voice, ...] = ("user", "said", "call", "result")
FEATURES = (
    *(f"times {v}" for v in VOICES),  # log of the items that mention it
    *(f"first {v}" for v in VOICES),
    *(f"last {v}" for v in VOICES),
    "age",  # log of the distance to its last mention
    "span",  # to its first
    "rate",  # mentions for its span: what is met often stays in use
    "age used",  # log of the distance to the assistant's last use
    "never used",
    "focus",  # log of its share of the items that mention it: one of 500 in a listing is a cheap one
    "length",
    "history",
)
ONE_OF = tuple(tuple(float(i == j) for j in range(len(VOICES))) for i in range(len(VOICES)))
PAGE = 400  # characters, about a hundred tokens: the unit of distance

# How much of a fact's reuse asks for keeping it, by kind: idioms of a language, dates and flags are said again from
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


class Trace:
    """The life of one fact in a history."""

    __slots__ = ("first", "first_voice", "focus", "item", "kind", "last", "last_used", "last_voice", "times")

    def __init__(self, kind: str, at: int, voice: int) -> None:
        self.kind = kind
        self.first = self.last = at
        self.first_voice = self.last_voice = voice
        self.item = 0  # the last to mention it
        self.last_used = -1
        self.times = [0, 0, 0, 0]
        self.focus = 0.0


def trace(sheets: Sequence[Sheet]) -> tuple[dict[str, Trace], int]:
    """Each fact's life, and the length of the history in characters."""
    traces: dict[str, Trace] = {}
    at = 0
    for item, page in enumerate(sheets):
        follow(traces, page, item, at)
        at += page.size
    return traces, at


def follow(traces: dict[str, Trace], page: Sheet, item: int, at: int) -> None:
    """Add one item, which begins at this character of the history."""
    voice = VOICES.index(page.voice)
    used = page.voice in ("said", "call")
    share = 1 / (len(page.facts) + 3)
    for key, kind in page.facts.items():
        life = traces.get(key)
        if life is None:
            life = traces[key] = Trace(kind, at, voice)
        life.item = item
        life.last = at
        life.last_voice = voice
        life.times[voice] += 1
        life.focus += share
        if used:
            life.last_used = at


def features(key: str, life: Trace, now: int) -> list[float]:
    """What the model looks at, in the order of FEATURES."""
    asked, said, called, shown = life.times
    span = log(1 + (now - life.first) / PAGE)
    used = life.last_used >= 0
    return [
        log(1 + asked),
        log(1 + said),
        log(1 + called),
        log(1 + shown),
        *ONE_OF[life.first_voice],
        *ONE_OF[life.last_voice],
        log(1 + (now - life.last) / PAGE),
        span,
        log(1 + asked + said + called + shown) - span / 2,
        log(1 + (now - life.last_used) / PAGE) if used else 0.0,
        0.0 if used else 1.0,
        log(life.focus),
        log(len(key)),
        log(1 + now / (10 * PAGE)),
    ]


@cache
def weights() -> Mapping[str, float]:
    """The fitted weights, by feature and by kind of fact; bench/fit_worth.py writes them."""
    table: dict[str, float] = json.loads(files("clew.facts").joinpath("weights.json").read_text(encoding="utf-8"))
    return table


def worths(traces: Mapping[str, Trace], now: int) -> dict[str, float]:
    """For each fact, how likely it is that the assistant will want it and could not say it by itself."""
    table = weights()
    line = [table[name] for name in FEATURES]
    base = table["base"]
    found = {}
    for key, life in traces.items():
        score = base + table.get(life.kind, 0.0) + sum(map(mul, line, features(key, life, now)))
        found[key] = unguessable(life.kind, key) / (1 + exp(-score))
    return found


def surprising(pages: Sequence[Sheet], worth: Mapping[str, float]) -> dict[str, float]:
    """The same, with more for facts that stand beside a word nobody says elsewhere, the more the rarer that is here.

    In a log that says the same thing ten thousand times, the one line that says something else is the news.
    """
    lines = [line for page in pages for line in page.lines if line.mentions]
    heard = Counter(chain.from_iterable(line.words for line in lines))
    seldom = {word for word, n in heard.items() if n <= RARE}
    rare = [line for line in lines if not seldom.isdisjoint(line.words)]
    factor = 1 + min((NEWS * len(lines) / (len(rare) + 1)) ** 2, MOST)
    news = {key for line in rare for key in line.keys}
    return {key: w * factor if key in news else w for key, w in worth.items()}


RARE = 1  # lines in which a word is heard that is news
NEWS = 0.06  # so rare that it is news: below, a fact in such a line is worth more by the square
MOST = 30.0


def unguessable(kind: str, key: str) -> float:
    """How much a fact must be kept as it is written; a long name says more than a short one."""
    if kind == "symbol":
        return min(1.0, max(0.1, (len(key) - 7) / 14))
    return UNGUESSABLE.get(kind, 1.0)
