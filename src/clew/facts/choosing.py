"""Which stretches of which lines to quote: most worth not yet covered, per character."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
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


class Part(NamedTuple):
    """A stretch that may be quoted: its cost, and what it gains while its fresh facts are not covered."""

    start: int
    stop: int
    cost: int
    gain: float
    inside: Collection[str]
    fresh: Collection[str]


class Sighting(NamedTuple):
    """A line that has a fact, among those of its item; `said` is what led to a call."""

    lines: Sequence[Line]
    at: int
    said: str


def sightings(pages: Sequence[Sheet], keys: Iterable[str]) -> dict[str, list[Sighting]]:
    """For each of these facts the first lines that have it, as many as tell what it is about."""
    found: dict[str, list[Sighting]] = {key: [] for key in keys}
    left = set(found)
    said = ""
    for page in pages:
        if page.voice != "call":
            said = page.lines[-1].text if page.voice == "said" and page.lines else ""
        if left.isdisjoint(page.facts):
            continue
        for j, line in enumerate(page.lines):
            for key in line.keys:
                if key in left:
                    found[key].append(Sighting(page.lines, j, said))
                    if len(found[key]) == OFTEN:
                        left.remove(key)
    return found


def profile(key: str, seen: Iterable[Sighting]) -> list[str]:
    """The words that most often stand near a fact, where it was seen."""
    words: list[str] = []
    for lines, j, said in seen:
        lead = lines[j - 1].text if j else said
        trail = lines[j + 1].text if j + 1 < len(lines) else ""
        last = next(m for m in reversed(lines[j].mentions) if m.key == key)
        words += _near(lead[-REACH:], lines[j].text, trail[:REACH], last)
    times = Counter(words)
    return sorted(sorted(times.keys() - STOP), key=times.__getitem__, reverse=True)[:ABOUT]  # a tie: by the alphabet


def _near(lead: str, text: str, trail: str, m: Mention) -> set[str]:
    left = f"{lead} {text[: m.start]}"[-REACH:]
    right = f"{text[m.stop :]} {trail}"[:REACH]
    return set(LETTERS.findall(f"{left} {right}".lower()))


def choose(pages: Sequence[Sheet], worth: Mapping[str, float], size: int, root: str = "") -> list[Quote]:
    """The best quotations, best first, in about `size` characters; `root` will be left out of paths."""
    chosen = asked(pages, int(size * ASKED))
    covered = {key for q in chosen for key in pages[q.item].lines[q.line].keys}
    left = size - sum(_cost(q) for q in chosen)
    heap: list[tuple[float, int, int, Part | None]] = [
        (-bound, -i, j, None) for i, j, bound in _candidates(pages, worth)
    ]
    heapify(heap)
    while heap and left > MARGIN:
        _, i, j, part = heap[0]
        line = pages[-i].lines[j]
        if part is None or not covered.isdisjoint(part.fresh):
            part = None if covered.issuperset(line.keys) else stretch(line, worth, covered, root)
        if part is None or part.gain <= 0 or part.cost > left:
            heappop(heap)
            continue
        rate = -part.gain / part.cost
        if len(heap) > 1 and rate > min(heap[1:3])[0]:
            heapreplace(heap, (rate, i, j, part))  # what was covered since made it worth less than the next
            continue
        heappop(heap)
        left -= part.cost
        chosen.append(Quote(-i, j, part.start, part.stop))
        covered.update(part.inside)
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
    worth_of = worth.__getitem__
    for i in range(len(pages) - 1, -1, -1):
        for j, (text, _, keys, _) in enumerate(pages[i].lines):
            if keys and text not in seen:
                total = sum(map(worth_of, keys))
                if total > FLOOR:
                    seen.add(text)
                    yield i, j, total / (4 + min(SHORT, len(text)))


def stretch(line: Line, worth: Mapping[str, float], covered: set[str], root: str) -> Part:
    """The part of a line that has its uncovered facts, of which there are some, with a few words around them."""
    text = line.text
    fresh = [(worth[key], key, start, stop) for key, _, start, stop in line.mentions if key not in covered]
    floor = SLIGHT * max(fresh)[0]
    start = min([begin for w, _, begin, _ in fresh if w >= floor]) - MARGIN
    stop = max([end for w, _, _, end in fresh if w >= floor]) + MARGIN
    start = text.rfind(" ", 0, start) + 1 if start > MARGIN else 0
    stop = text.find(" ", stop) if stop < len(text) - MARGIN else -1
    stop = len(text) if stop < 0 else stop
    inside = {key: w for w, key, begin, end in fresh if start <= begin and end <= stop}
    cost = stop - start + 4 - (len(root) * text.count(root, start, stop) if root else 0)
    return Part(start, stop, cost, sum(inside.values()), inside, [key for _, key, _, _ in fresh])
