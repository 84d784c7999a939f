"""Which stretches of which lines to quote: the facts of most worth, each where most of it stands together."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import fsum
from typing import NamedTuple

from clew.facts.sheets import Line, Mention, Sheet

LETTERS = re.compile(r"[a-z]{4,}")
LEAD = 4  # characters quoted before a fact, more up to the next word: most often the word before it
REST = 12  # characters: as much as is left of a line is quoted too
SHORT = 12  # characters: with less room nothing is quoted
FLOOR = 0.001  # facts worth less are not looked at
REACH = 100  # characters within which a word says something about a fact
OFTEN = 4  # lines that have a fact, the newest: by them it is known, and one of them is quoted
ABOUT = 10  # words known about a fact
NAMES = re.compile(r"[\w./-]{3,}")
CARED = 50  # times its worth more: a fact near all words that are cared for
ASKED = 0.08  # part of the size for what users asked, in their own words
ASK = re.compile(
    r"\b(?:must|never|always|don'?t|do not|should|shouldn'?t|only|instead|please|make sure|ensure|need|want|prefer|"
    r"avoid|use|keep|let'?s|remember|without|can you|could you)\b",
    re.IGNORECASE,
)
PASTED = 30  # lines of a user's message that was not typed
STOP = frozenset(
    "about after also because been before being could does done each from have here into just like more only other "
    "over should some such than that their them then there these they this those very were what when where which while "
    "will with would your".split()
)


class Quote(NamedTuple):
    """A stretch of a line."""

    item: int
    line: int
    start: int
    stop: int


class Part(NamedTuple):
    """A quotation, what it costs, what it is worth per character, and the facts that are news in it."""

    quote: Quote
    cost: int
    rate: float
    news: Collection[str]


Place = tuple[int, int]  # the item and the line of it that has a fact


def places(pages: Sequence[Sheet], worth: Mapping[str, float]) -> dict[str, list[Place]]:
    """For each fact of some worth, the best first, the newest lines that have it."""
    found: dict[str, list[Place]] = {
        key: [] for key in sorted(worth, key=worth.__getitem__, reverse=True) if worth[key] >= FLOOR
    }
    left = set(found)
    for i in range(len(pages) - 1, -1, -1):
        if left.isdisjoint(pages[i].facts):
            continue
        for j, line in enumerate(pages[i].lines):
            for key in line.keys:
                if key in left:
                    found[key].append((i, j))
                    if len(found[key]) == OFTEN:
                        left.remove(key)
    return found


def profile(pages: Sequence[Sheet], key: str, seen: Iterable[Place]) -> list[str]:
    """The words that most often stand near a fact and are no part of its name."""
    words: list[str] = []
    for i, j in seen:
        lines = pages[i].lines
        lead = lines[j - 1].text if j else _led_to(pages, i)
        trail = lines[j + 1].text if j + 1 < len(lines) else ""
        words += _near(lead[-REACH:], lines[j].text, trail[:REACH], _mention(lines[j], key))
    times = Counter(words)
    name = key.lower()
    known = sorted(word for word in times.keys() - STOP if word not in name)
    return sorted(known, key=times.__getitem__, reverse=True)[:ABOUT]  # a tie: by the alphabet


def cared_for(pages: Sequence[Sheet], worth: Mapping[str, float], focus: str) -> Mapping[str, float]:
    """What facts are worth to somebody who cares for some words: more near them, and most near the rare ones."""
    words = set(NAMES.findall(focus.lower())) - STOP
    if not words:
        return worth
    pattern = re.compile("|".join(map(re.escape, sorted(words, reverse=True))), re.IGNORECASE)
    lines = [line for page in pages for line in page.lines if pattern.search(line.text)]
    spots = [[(m[0].lower(), m.start()) for m in pattern.finditer(line.text)] for line in lines]
    often = Counter(word for found in spots for word in {word for word, _ in found})
    whole = fsum(1 / n for n in often.values())
    near: dict[str, float] = {}
    for line, found in zip(lines, spots, strict=True):
        for mention in line.mentions:
            beside = {word for word, at in found if abs(at - mention.start) < REACH}
            near[mention.key] = max(near.get(mention.key, 0), fsum(1 / often[word] for word in beside) / whole)
    return {key: w * (1 + CARED * near.get(key, 0)) for key, w in worth.items()}


def _led_to(pages: Sequence[Sheet], i: int) -> str:
    """What was said before a call."""
    while i and pages[i].voice == "call":
        i -= 1
        if pages[i].voice == "said" and pages[i].lines:
            return pages[i].lines[-1].text
    return ""


def _mention(line: Line, key: str) -> Mention:
    return next(m for m in reversed(line.mentions) if m.key == key)


def _near(lead: str, text: str, trail: str, m: Mention) -> set[str]:
    left = f"{lead} {text[: m.start]}"[-REACH:]
    right = f"{text[m.stop :]} {trail}"[:REACH]
    return set(LETTERS.findall(f"{left} {right}".lower()))


def choose(
    pages: Sequence[Sheet],
    worth: Mapping[str, float],
    where: Mapping[str, Sequence[Place]],
    size: int,
    root: str = "",
    covered: Iterable[str] = (),
    asked: float = ASKED,
) -> list[Quote]:
    """Quotations of the facts in `where`, the first first, in about `size` characters; `root` is left out of paths."""
    chosen = asks(pages, int(size * asked))
    covered = {key for q in chosen for key in pages[q.item].lines[q.line].keys}.union(covered)
    left = size - sum(_cost(q) for q in chosen)
    for key, seen in where.items():
        if left <= SHORT:
            break
        if key not in covered:
            parts = [_around(pages, place, key, worth, covered, root) for place in seen]
            best = max(parts, key=lambda part: part.rate)
            if best.cost <= left:
                left -= best.cost
                chosen.append(best.quote)
                covered.update(best.news)
    return chosen


def _cost(quote: Quote) -> int:
    return quote.stop - quote.start + 4  # its mark, its end, its dots


def _around(
    pages: Sequence[Sheet], place: Place, key: str, worth: Mapping[str, float], covered: Collection[str], root: str
) -> Part:
    """The words around a fact, and what else they say that is not covered."""
    i, j = place
    line = pages[i].lines[j]
    text = line.text
    start, stop = next([m.start, m.stop] for m in line.mentions if m.key == key)
    start = text.rfind(" ", 0, start - LEAD) + 1 if start > REST else 0
    stop = text.find(" ", stop) if stop < len(text) - REST else -1
    quote = Quote(i, j, start, len(text) if stop < 0 else stop)
    inside = [m.key for m in line.mentions if quote.start <= m.start and m.stop <= quote.stop]
    news = dict.fromkeys(k for k in inside if k not in covered)  # in order: a sum must not depend on a hash
    cost = _cost(quote) - (len(root) * text.count(root, quote.start, quote.stop) if root else 0)
    return Part(quote, cost, sum([worth[k] for k in news]) / cost, news)


def asks(pages: Sequence[Sheet], size: int) -> list[Quote]:
    """What users asked for in their own words: the newest first."""
    found: list[Quote] = []
    for i in range(len(pages) - 1, -1, -1):
        page = pages[i]
        if page.voice != "user" or len(page.lines) > PASTED:
            continue
        for j, line in enumerate(page.lines):
            cost = len(line.text) + 4
            if cost <= size and line.text[0] not in "<{[|`" and "</" not in line.text and ASK.search(line.text):
                found.append(Quote(i, j, 0, len(line.text)))
                size -= cost
    return found
