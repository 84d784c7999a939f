"""A digest: the lines of a history most worth keeping, in order, within a size."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from clew.facts.choosing import Quote, choose, profiles
from clew.facts.sheets import Sheet, sheet
from clew.facts.worth import Trace, surprising, trace, worths
from clew.items import Item

About = Mapping[str, Sequence[str]]

WORD = re.compile(r"(?<![\w./-])[A-Za-z]{4,}(?![\w/])")  # a word that stands by itself
MARK = {"user": "user: ", "said": "", "call": "> ", "result": "| "}
TAGS = 0.08  # part of the size that is left for words about facts that were quoted without any
SURE = 6  # of the words known about a fact, one of so many must be near it
BESIDE = 0.3  # of its worth: a fact that stands elsewhere has fewer words around it there
WANTED = 0.02  # a fact worth this much is missed when it is absent
SPARE = 1.2  # how much more is chosen than may fit, where size is not in characters
SAMPLE = 40  # items and lines by which the measure is known


class Absent(NamedTuple):
    """A fact that a digest does not hold, what it is worth, and the index of the item that last had it."""

    text: str
    worth: float
    item: int


class Digest(NamedTuple):
    """What is kept of a history, and what of worth is not."""

    text: str
    kept: frozenset[str]
    missing: tuple[Absent, ...]


def digest(
    items: Sequence[Item],
    size: int,
    measure: Callable[[str], int] = len,
    sheets: Sequence[Sheet] | None = None,
    beside: Container[str] = (),
) -> Digest:
    """The lines most worth keeping, in the order of the conversation, in at most `size` as `measure` counts it.

    Facts that stand `beside` the digest need no place in it.
    """
    pages = [sheet(item) for item in items] if sheets is None else sheets
    traces, now = trace(pages)
    worth = surprising(pages, worths(traces, now))
    worth = {key: BESIDE * w if key in beside else w for key, w in worth.items()} if beside else worth
    root = common_root(pages)
    room = size if measure is len else int(size * _density(pages, measure) * SPARE)
    chosen = choose(pages, worth, room, root)
    fits = range(len(chosen) + 1)
    most = (
        bisect_right(fits, size * (1 - TAGS), key=lambda n: measure("\n".join(_quoted(pages, chosen[:n], root)[0]))) - 1
    )
    lines, places = _quoted(pages, chosen[: max(0, most)], root)
    text = _tagged(lines, places, worth, profiles(pages, places), size, measure)
    return Digest(text, frozenset(places), _missing(traces, worth, places))


def _density(pages: Sequence[Sheet], measure: Callable[[str], int]) -> float:
    """Characters per unit of measure, from the lines of the newest items."""
    sample = "\n".join(line.text for page in pages[-SAMPLE:] for line in page.lines[:SAMPLE])
    return len(sample) / max(1, measure(sample))


def _missing(traces: Mapping[str, Trace], worth: Mapping[str, float], kept: Container[str]) -> tuple[Absent, ...]:
    absent = [Absent(k, w, traces[k].item) for k, w in worth.items() if w >= WANTED and k not in kept]
    return tuple(sorted(absent, key=lambda a: (-a.worth, a.text)))


def common_root(pages: Sequence[Sheet]) -> str:
    """The folder above the one most absolute paths lie in, with its slash: so two names of a path always stay."""
    seen: Counter[str] = Counter()
    for page in pages:
        if "path" in page.facts.values():
            for line in page.lines:
                for m in line.mentions:
                    if m.kind == "path" and line.text[m.start] == "/":
                        seen[line.text[m.start : m.stop].rpartition("/")[0]] += 1
    total: Counter[str] = Counter()
    for folder, n in seen.items():
        while folder:
            total[folder] += n
            folder = folder.rpartition("/")[0]
    deep = [folder for folder, n in total.items() if n > 2 and 2 * n >= seen.total()]
    above = max(deep, key=len, default="").rpartition("/")[0]
    return above + "/" if above else ""


def _quoted(pages: Sequence[Sheet], chosen: Sequence[Quote], root: str) -> tuple[list[str], dict[str, int]]:
    """The quotations as lines, and for each fact the last line that has it."""
    lines = [f"paths are below {root}"] if root and chosen else []
    places: dict[str, int] = {}
    for (i, j), group in groupby(sorted(chosen), key=lambda q: (q.item, q.line)):
        line = pages[i].lines[j]
        text, end = "", 0
        for q in group:
            start = max(q.start, end)
            text += ("…" if start > end else "") + line.text[start : q.stop]
            end = max(end, q.stop)
            places.update((m.key, len(lines)) for m in line.mentions if q.start <= m.start and m.stop <= q.stop)
        text += "…" if end < len(line.text) else ""
        lines.append(MARK[pages[i].voice] + (text.replace(root, "") if root else text))
    return lines, places


def _tagged(
    lines: Sequence[str],
    places: Mapping[str, int],
    worth: Mapping[str, float],
    about: About,
    size: int,
    measure: Callable[[str], int],
) -> str:
    """The text of the lines, with words about the facts that stand without any, as far as they fit."""
    text = "\n".join(lines)
    used = measure(text)
    room = (size - used) * len(text) // max(1, used)
    while room > 0:
        tagged = "\n".join(tag(lines, places, worth, about, room))
        if measure(tagged) <= size:
            return tagged
        room //= 2
    return text


def tag(
    lines: Sequence[str], places: Mapping[str, int], worth: Mapping[str, float], about: About, room: int
) -> list[str]:
    """Where no word near a fact says what it is about, the two that most often stood near it are added."""
    out = list(lines)
    bags = [{w.lower() for w in WORD.findall(line)} for line in lines]
    for key in sorted(places, key=lambda k: (-worth[k], k)):
        words, at = about.get(key, ()), places[key]
        near = bags[max(0, at - 1) : at + 2]
        if not words or any(not bag.isdisjoint(words[:SURE]) for bag in near):
            continue
        note = f" ({' '.join(words[:2])})"
        room -= len(note)
        if room < 0:
            break
        out[at] += note
        bags[at].update(words[:2])
    return out
