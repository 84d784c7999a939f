"""Which stretches of which lines to quote: most worth not yet covered, per character."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from clew.facts.sheets import Line, Mention, Sheet

LETTERS = re.compile(r"[a-z]{4,}")
MARGIN = 12  # characters quoted on either side of a fact, more up to the next word
SLIGHT = 0.4  # a fact worth less than this part of the best one in its line does not stretch the quotation
SHORT = 24  # characters that a quotation of a longer line takes at least: two margins and a name
FLOOR = 0.004  # lines worth less are not looked at
REACH = 100  # characters within which a word says something about a fact
OFTEN = 8  # mentions are enough to know them
ABOUT = 10  # words known about a fact
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


def profiles(pages: Sequence[Sheet], keys: Iterable[str]) -> dict[str, list[str]]:
    """For each of these facts the words that most often stand near it."""
    near: dict[str, Counter[str]] = {key: Counter() for key in keys}
    left = dict.fromkeys(near, OFTEN)
    said = ""
    for page in pages:
        if page.voice != "call":
            said = page.lines[-1].text if page.voice == "said" and page.lines else ""
        if not left.keys().isdisjoint(page.facts):
            for key, words in _neighbours(page.lines, left, said):
                near[key].update(words)
    return {key: _commonest(words) for key, words in near.items()}


def _neighbours(lines: Sequence[Line], left: dict[str, int], said: str) -> Iterator[tuple[str, set[str]]]:
    """Each of the facts still to look at, with the words around it; `said` is what led to a call."""
    for j, line in enumerate(lines):
        hits = {m.key: m for m in line.mentions if m.key in left}
        if hits:
            lead = lines[j - 1].text if j else said
            trail = lines[j + 1].text if j + 1 < len(lines) else ""
            for key, m in hits.items():
                yield key, _near(lead[-REACH:], line.text, trail[:REACH], m)
                left[key] -= 1
                if not left[key]:
                    del left[key]


def _near(lead: str, text: str, trail: str, m: Mention) -> set[str]:
    left = f"{lead} {text[: m.start]}"[-REACH:]
    right = f"{text[m.stop :]} {trail}"[:REACH]
    return set(LETTERS.findall(f"{left} {right}".lower())) - STOP


def _commonest(words: Counter[str]) -> list[str]:
    return sorted(words, key=lambda w: (-words[w], w))[:ABOUT]


def choose(pages: Sequence[Sheet], worth: Mapping[str, float], size: int, root: str = "") -> list[Quote]:
    """The best quotations, best first, in about `size` characters; `root` will be left out of paths."""
    chosen = asked(pages, int(size * ASKED))
    covered = {m.key for q in chosen for m in pages[q.item].lines[q.line].mentions}
    left = size - sum(_cost(q) for q in chosen)
    heap = [(-bound, -i, j) for i, j, bound in _candidates(pages, worth)]
    heapify(heap)
    while heap and left > MARGIN:
        _, i, j = heappop(heap)
        line = pages[-i].lines[j]
        start, stop, gain = stretch(line, worth, covered)
        quote = Quote(-i, j, start, stop)
        cost = _cost(quote) - (len(root) * line.text.count(root, start, stop) if root else 0)
        if gain <= 0 or cost > left:
            continue
        if heap and -gain / cost > heap[0][0]:
            heappush(heap, (-gain / cost, i, j))  # what was covered since made it worth less: back in the queue
            continue
        left -= cost
        chosen.append(quote)
        covered.update(m.key for m in line.mentions if start <= m.start and m.stop <= stop)
    return chosen


def _cost(quote: Quote) -> int:
    return quote.stop - quote.start + 4  # its mark, its end, its dots


def asked(pages: Sequence[Sheet], size: int) -> list[Quote]:
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


def _candidates(pages: Sequence[Sheet], worth: Mapping[str, float]) -> Iterator[tuple[int, int, float]]:
    """Each distinct line with facts of some worth, and a bound of that per character; of equal lines the newest."""
    seen: set[str] = set()
    for i in range(len(pages) - 1, -1, -1):
        for j, line in enumerate(pages[i].lines):
            if line.mentions and line.text not in seen:
                total = sum([worth[key] for key in {m.key for m in line.mentions}])
                if total > FLOOR:
                    seen.add(line.text)
                    yield i, j, total / (4 + min(SHORT, len(line.text)))


def stretch(line: Line, worth: Mapping[str, float], covered: set[str]) -> tuple[int, int, float]:
    """The part of a line that has its uncovered facts with a few words around them, and what it gains."""
    fresh = [(worth[m.key], m) for m in line.mentions if m.key not in covered]
    if not fresh:
        return 0, 0, 0.0
    text, floor = line.text, SLIGHT * max(w for w, _ in fresh)
    start = min(m.start for w, m in fresh if w >= floor) - MARGIN
    stop = max(m.stop for w, m in fresh if w >= floor) + MARGIN
    start = text.rfind(" ", 0, start) + 1 if start > MARGIN else 0
    stop = text.find(" ", stop) if stop < len(text) - MARGIN else -1
    stop = len(text) if stop < 0 else stop
    inside = {m.key: w for w, m in fresh if start <= m.start and m.stop <= stop}
    return start, stop, sum(inside.values())
