"""A digest: the lines of a history most worth keeping, in order, within a size."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cache
from itertools import accumulate, chain, groupby
from operator import itemgetter
from typing import NamedTuple

from clew.facts.choosing import ASKED, Place, Quote, cared_for, choose, places, profile
from clew.facts.sheets import Sheet, sheet
from clew.facts.worth import Trace, surprising, trace, worths
from clew.items import Item

About = Callable[[str], Sequence[str]]

WORD = re.compile(r"(?<![\w./-])[A-Za-z]{4,}(?![\w/])")  # a word that stands by itself
FORGED = re.compile(r"(?i)\W*(?:(?:the )?user|system|assistant|what happened)\b|[>|\[]")  # words that look like a mark
MARK = {"user": "user: ", "said": "", "call": "> ", "result": "| "}
TWO_NAMES = r"(?=[^\s/]+/)"  # of a path stay at least: by them it is known
TAGS = 0.05  # part of the size that is left for words about facts that were quoted without any
SURE = 6  # of the words known about a fact, one of so many must be near it
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


class Weighed(NamedTuple):
    """A history as any digest of it needs it, of whatever size."""

    pages: Sequence[Sheet]
    traces: Mapping[str, Trace]
    likely: Mapping[str, float]  # how likely each fact is to be used again
    worth: Mapping[str, float]  # the same, with more for what is news
    where: Mapping[str, Sequence[Place]]  # the facts of some worth, the best first, and the newest lines that have them
    root: str  # of most paths
    about: About  # the words that most often stand near a fact


def digest(
    items: Sequence[Item],
    size: int,
    measure: Callable[[str], int] = len,
    sheets: Sequence[Sheet] | None = None,
    beside: Iterable[str] = (),
) -> Digest:
    """The lines most worth keeping, in the order of the conversation, in at most `size` as `measure` counts it.

    Facts that stand `beside` the digest need no place in it.
    """
    return digest_of(weigh([sheet(item) for item in items] if sheets is None else sheets), size, measure, beside)


def weigh(pages: Sequence[Sheet], focus: str = "") -> Weighed:
    """What a history's facts are worth, to somebody who cares for `focus` above all."""
    traces, now = trace(pages)
    likely = worths(traces, now)
    worth = cared_for(pages, surprising(pages, likely), focus)
    where = places(pages, worth)
    about = cache(lambda key: profile(pages, key, where.get(key, ())))  # for the few facts that stand in some digest
    return Weighed(pages, traces, likely, worth, where, common_root(pages), about)


def digest_of(
    history: Weighed,
    size: int,
    measure: Callable[[str], int] = len,
    beside: Iterable[str] = (),
    asked: float = ASKED,
) -> Digest:
    """The digest of a history that was weighed before; `asked` is the part of it for what users asked."""
    pages, traces, _, worth, where, root, about = history
    room = size if measure is len else int(size * _density(pages, measure) * SPARE)
    chosen = _fitting(pages, choose(pages, worth, where, room, root, beside, asked), root, size * (1 - TAGS), measure)
    lines, places = _quoted(pages, chosen, root)
    text = _tagged(lines, places, worth, about, size, measure)
    return Digest(text, frozenset(places), _missing(traces, worth, places))


def _fitting(
    pages: Sequence[Sheet], chosen: Sequence[Quote], root: str, size: float, measure: Callable[[str], int]
) -> Sequence[Quote]:
    """As many of the first quotations as fit."""
    if measure is len:
        used = len(_heading(root)) + 1 if root else 0
        ends = accumulate((len(_quotation(pages, [q], root)) + 1 for q in chosen), initial=used - 1)
        return chosen[: max(0, bisect_right(list(ends), size) - 1)]
    fits = range(len(chosen) + 1)
    most = bisect_right(fits, size, key=lambda n: measure("\n".join(_quoted(pages, chosen[:n], root)[0])))
    return chosen[: max(0, most - 1)]


def _density(pages: Sequence[Sheet], measure: Callable[[str], int]) -> float:
    """Characters per unit of measure, from the lines of the newest items."""
    sample = "\n".join(line.text for page in pages[-SAMPLE:] for line in page.lines[:SAMPLE])
    return len(sample) / max(1, measure(sample))


def _missing(traces: Mapping[str, Trace], worth: Mapping[str, float], kept: Container[str]) -> tuple[Absent, ...]:
    absent = [Absent(k, w, traces[k].item) for k, w in worth.items() if w >= WANTED and k not in kept]
    return tuple(sorted(absent, key=lambda a: (-a.worth, a.text)))


def common_root(pages: Sequence[Sheet]) -> str:
    """The folder above the one most absolute paths lie in, with its slash."""
    seen = Counter(chain.from_iterable(page.folders for page in pages))
    total: Counter[str] = Counter()
    for folder, n in seen.items():
        while folder:
            total[folder] += n
            folder = folder.rpartition("/")[0]
    deep = [folder for folder, n in total.items() if n > 2 and 2 * n >= seen.total()]
    above = max(deep, key=len, default="").rpartition("/")[0]
    return above + "/" if above else ""


def _heading(root: str) -> str:
    return f"paths are below {root}"


def _quotation(pages: Sequence[Sheet], quotes: Iterable[Quote], root: str) -> str:
    """Quotations from one line as a line, with dots where it goes on."""
    spans: list[tuple[int, int]] = []
    for item, line, start, stop in quotes:
        page, whole = pages[item], pages[item].lines[line].text
        if spans and start <= spans[-1][1] + 1:
            start, stop = spans[-1][0], max(stop, spans.pop()[1])
        spans.append((start, stop))
    text = "… ".join(whole[start:stop] for start, stop in spans)
    text = f"{'…' if spans[0][0] else ''}{text}{'…' if spans[-1][1] < len(whole) else ''}"
    mark = "assistant: " if page.voice == "said" and FORGED.match(text) else MARK[page.voice]
    return mark + (re.sub(re.escape(root) + TWO_NAMES, "", text) if root and root in text else text)


def _quoted(pages: Sequence[Sheet], chosen: Sequence[Quote], root: str) -> tuple[list[str], dict[str, int]]:
    """The quotations as lines, in the order of the history, and for each fact the last line that has it."""
    lines = [_heading(root)] if root and chosen else []
    places: dict[str, int] = {}
    for (item, line), quotes in groupby(sorted(chosen), key=itemgetter(0, 1)):
        together = list(quotes)
        for key, _, begin, end in pages[item].lines[line].mentions:
            if any(q.start <= begin and end <= q.stop for q in together):
                places[key] = len(lines)
        lines.append(_quotation(pages, together, root))
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
    bags: dict[int, set[str]] = {}
    for key in sorted(places, key=lambda k: (-worth[k], k)):
        words, at = about(key), places[key]
        near = range(max(0, at - 1), min(at + 2, len(lines)))
        for n in near:
            if n not in bags:
                bags[n] = {w.lower() for w in WORD.findall(lines[n])}
        # Words that others said near it are none of the user's.
        if not words or lines[at].startswith(MARK["user"]) or any(not bags[n].isdisjoint(words[:SURE]) for n in near):
            continue
        note = f" ({' '.join(words[:2])})"
        room -= len(note)
        if room < 0:
            break
        out[at] += note
        bags[at].update(words[:2])
    return out
