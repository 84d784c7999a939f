"""Which item of a re-sent history is which item of the log, when the client changed some on the way. Pure functions."""

from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import compress, count
from operator import ne
from typing import NamedTuple

SMALL = 200  # a gap up to this size is compared item by item
COMPARED = 4_000  # items in such gaps, of a whole history; of what comes then so few of a gap:
FEW = 16


class Match(NamedTuple):
    """The item at `old` in the log is the item at `new` in what was sent."""

    old: int
    new: int


class Patch(NamedTuple):
    """What was sent from `begin` to before `end` stands where the log has `start` to before `stop`."""

    start: int
    stop: int
    begin: int
    end: int


def shared(old: Sequence[object], new: Sequence[object]) -> int:
    """How many elements both begin with."""
    return next(compress(count(), map(ne, old, new)), min(len(old), len(new)))


def matches(old: Sequence[str], new: Sequence[str]) -> list[Match]:
    """Equal elements, in the order of both: those that occur once are anchors, the rest is compared between them."""
    first = shared(old, new)
    found = [Match(i, i) for i in range(first)]
    at, left = Match(first, first), COMPARED
    for anchor in [*_anchors(old, new, first), Match(len(old), len(new))]:
        most = SMALL if left > 0 else FEW
        found += _between(old, new, at, anchor, most)
        left -= min(most, anchor.old - at.old, anchor.new - at.new)
        if anchor.old < len(old):
            found.append(anchor)
        at = Match(anchor.old + 1, anchor.new + 1)
    return found


def patches(found: Sequence[Match], old: int, new: int) -> list[Patch]:
    """The gaps between matches; what comes after the last known item is no change but news."""
    gaps, at = [], Match(0, 0)
    for match in [*found, Match(old, new)]:
        last = match.old == old
        if match.old > at.old or (match.new > at.new and not last):
            gaps.append(Patch(at.old, match.old, at.new, match.new))
        at = Match(match.old + 1, match.new + 1)
    return gaps


def _anchors(old: Sequence[str], new: Sequence[str], first: int) -> list[Match]:
    """Elements that occur once on each side, as the longest run that is in order on both."""
    here, there = Tally(old[first:]), Tally(new[first:])
    place = {c: j for j, c in enumerate(new) if j >= first and there[c] == 1}
    once = [Match(i, place[c]) for i, c in enumerate(old) if i >= first and here[c] == 1 and c in place]
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for k, match in enumerate(once):
        at = bisect_left(tops, match.new)
        before.append(ends[at - 1] if at else -1)
        tops[at : at + 1] = [match.new]
        ends[at : at + 1] = [k]
    run, k = [], ends[-1] if ends else -1
    while k >= 0:
        run.append(once[k])
        k = before[k]
    return run[::-1]


def _between(old: Sequence[str], new: Sequence[str], start: Match, stop: Match, most: int) -> list[Match]:
    a, b = old[start.old : stop.old], new[start.new : stop.new]
    if not a or not b:
        return []
    if len(a) > most or len(b) > most:
        a, b = a[:most], b[:most]
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    return [Match(start.old + x + n, start.new + y + n) for x, y, size in blocks for n in range(size)]
