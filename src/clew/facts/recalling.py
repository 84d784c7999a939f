"""One recall: the lines of a history that a query is about."""

import re
from collections import Counter
from collections.abc import Sequence
from math import log

from clew.facts.choosing import STOP
from clew.facts.finding import find
from clew.facts.sheets import Sheet, sheet
from clew.facts.worth import unguessable
from clew.items import Item

PART = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}(?![a-z])|\d{2,}")
SATURATION = 1.2
BESIDE = 0.3  # what a line counts for the lines next to it
EMPTY = 0.3  # what a line counts that has nothing to be forgotten
NEWER = 0.0002  # a tie-breaker

Place = tuple[int, int]  # item, line


def ranked(items: Sequence[Item], query: str, size: int = 8_000, sheets: Sequence[Sheet] | None = None) -> str:
    """The lines that best match a query (BM25; names count whole and in parts), in order, in at most `size`."""
    pages = [sheet(item) for item in items] if sheets is None else sheets
    terms = _terms(query)
    if not terms:
        return ""
    scores = _with_neighbours(pages, _scores(pages, terms))
    best = sorted(scores, key=lambda place: (-scores[place], place))
    return _quoted(pages, best, size)


def _terms(query: str) -> list[str]:
    """What to look for, longest first: names as they are, and the parts of names and words."""
    whole = {fact.text.lower() for fact in find(query)}
    parts = {part.lower() for part in PART.findall(query)} - STOP
    return sorted(whole | {p for p in parts if len(p) > 2}, key=lambda t: (-len(t), t))


def _scores(pages: Sequence[Sheet], terms: Sequence[str]) -> dict[Place, float]:
    look = re.compile("|".join(map(re.escape, terms))).findall
    hits = {
        (i, j): Counter(found)
        for i, page in enumerate(pages)
        for j, line in enumerate(page.lines)
        if (found := look(line.text.lower()))
    }
    spread = Counter(term for found in hits.values() for term in found)
    total = 1 + sum(len(page.lines) for page in pages)
    rarity = {term: log(1 + (total - n + 0.5) / (n + 0.5)) for term, n in spread.items()}
    return {
        place: sum(rarity[t] * n * (SATURATION + 1) / (n + SATURATION) for t, n in found.items())
        for place, found in hits.items()
    }


def _with_neighbours(pages: Sequence[Sheet], scores: dict[Place, float]) -> dict[Place, float]:
    """Scores that count what stands beside a line, that it has facts, and that it is new."""
    beside = {(i, j + d) for i, j in scores for d in (-1, 0, 1) if 0 <= j + d < len(pages[i].lines)}
    return {
        (i, j): NEWER * i
        + min(1.0, EMPTY + sum(unguessable(m.kind, m.key) for m in pages[i].lines[j].mentions))
        * (scores.get((i, j), 0.0) + BESIDE * max(scores.get((i, j - 1), 0.0), scores.get((i, j + 1), 0.0)))
        for i, j in beside
    }


def _quoted(pages: Sequence[Sheet], best: Sequence[Place], size: int) -> str:
    """The best lines that fit, oldest first, with a mark where lines between them were left out."""
    taken: set[Place] = set()
    seen: set[str] = set()
    left = size
    for i, j in best:
        text = pages[i].lines[j].text
        if text in seen:
            continue
        if len(text) + 3 > left:
            break
        seen.add(text)
        taken.add((i, j))
        left -= len(text) + 3
    out = ""
    for i, j in sorted(taken):
        gap = "" if (i, j - 1) in taken else "…\n"
        out += f"{gap}{pages[i].lines[j].text}\n"
    return out[:size]
