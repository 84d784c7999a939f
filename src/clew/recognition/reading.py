"""How an incoming history relates to the log of a branch: what it repeats, what it changes, what it adds."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from clew.core.align import Match, Patch, matches, patches, shared
from clew.core.items import QUOTED_FOR, Digests, Edit, Item, Node
from clew.core.view import originals
from clew.recognition.sameness import is_moved, likeness, with_their_calls, without_trailing
from clew.store.records import ABSENT, Place
from clew.store.trace import PINS, Trace

LOOK_AHEAD = 16  # items further on that one is compared with: rewriting keeps the order


class Entry(NamedTuple):
    """One item of an incoming history; no item: it was sent as a stand-in and stands for this place of the log."""

    content: str
    item: Item | None
    id: str = ""


def unfold(trace: Trace, contents: Sequence[str], items: Sequence[Item], offset: int = 0) -> list[Entry]:
    """The history that was sent, our own stand-ins in it replaced by what they stand for.

    A stand-in is one only where its originals would stand next: the same words said elsewhere are just words.
    """
    if not any(c in trace.made for c in contents):
        return [Entry(c, i) for c, i in zip(contents, items, strict=True)]
    by_id = {node.id: edit for edit in (*trace.edits, *trace.undone) for node in edit.stand_ins}
    place = {trace.alias.get(p.id, p.id): i for i, p in enumerate(trace.said)}
    where: dict[str, list[int]] = {}
    for i, p in enumerate(trace.said):
        where.setdefault(p.content, []).append(i)
    entries: list[Entry] = []
    at = offset
    used: set[int] = set()
    for content, item in zip(contents, items, strict=True):
        if at < len(trace.said) and trace.said[at].content == content:
            at += 1
            entries.append(Entry(content, item))
            continue
        behind = _behind(trace, content, by_id, place, at, used)
        if behind is not None:
            entries += [Entry(trace.said[i].content, None, trace.said[i].id) for i in behind]
            at = behind[-1] + 1 if behind else at
            continue
        later = where.get(content, [])
        found = bisect_left(later, at)
        at = later[found] + 1 if found < len(later) else at
        entries.append(Entry(content, item))
    return entries


def _behind(
    trace: Trace, content: str, by_id: dict[str, Edit], place: dict[str, int], at: int, used: set[int]
) -> list[int] | None:
    """The places a stand-in of this content stands for, from `at` on and in order; None if it is no stand-in here."""
    for edit, n in trace.made.get(content, ()):
        if n and id(edit) in used:
            return []  # an edit with several stand-ins: the first one brought back all it stood for
        beside = [place[key] for id in originals(edit.old, by_id) if (key := trace.alias.get(id, id)) in place]
        if not edit.evidence.keys().isdisjoint((PINS, QUOTED_FOR)) and beside and at in (beside[0], beside[-1] + 1):
            return []  # it stands for nothing: it quotes what is behind another one
        if n or id(edit) in used:
            continue
        behind = (trace.alias.get(id, id) for id in originals(edit.sources, by_id))
        found = [place[id] for id in behind if id in place]
        if found and found[0] >= at and all(a < b for a, b in pairwise(found)):
            used.add(id(edit))
            return found
    return None


class Reading(NamedTuple):
    """How an incoming history relates to a branch."""

    prefix: int  # items both begin with
    found: list[Match]
    gaps: list[Patch]  # where the client changed what the log has
    news: int  # entries from here on are new

    def is_extension(self) -> bool:
        return not self.gaps


def compare(said: Sequence[Place], entries: Sequence[Entry], offset: int = 0) -> Reading:
    """Align what was sent with what the log has; the first `offset` items are known to be equal."""
    old = [p.content for p in said[offset:]]
    new = [e.content for e in entries]
    first = shared(old, new)
    if first == len(old):
        return Reading(offset + first, [], [], first)
    items = [e.item for e in entries]
    still = _still(old, new, items, first)
    found = with_their_calls(without_trailing(matches(still, new), items, len(old)), items)
    gaps = patches(found, len(old), len(new))
    news = found[-1].new + 1 if found else 0
    if gaps and gaps[-1].stop == len(old):
        # The log's end was changed too; what the client put there begins where its last known item ended.
        gaps[-1] = gaps[-1]._replace(end=gaps[-1].begin)
        news = gaps[-1].begin
    return Reading(offset + first, found, gaps, news)


def _still(old: Sequence[str], new: Sequence[str], items: Sequence[Item | None], first: int) -> Sequence[str]:
    """What the log has, without what a client moves before each of its questions: by that nothing is aligned."""
    moved = {c for c, item in zip(new, items, strict=True) if item is not None and is_moved(item)}
    return [*old[:first], *("" if c in moved else c for c in old[first:])] if moved else old


def rewritten(gaps: Sequence[Patch], old: dict[int, Item], new: Sequence[Entry], said: int) -> list[Match]:
    """Items in the gaps that are the same under another coat; beyond the log's end only its last items can be."""
    pairs: list[Match] = []
    for gap in gaps:
        # Twice as many: some clients say each result twice.
        end = gap.end if gap.stop < said else min(len(new), gap.begin + 2 * (gap.stop - gap.start) + 4)
        was = {i: old[i] for i in range(gap.start, gap.stop) if i in old}
        now = {j: item for j in range(gap.begin, end) if (item := new[j].item) is not None}
        if was and now and len(was) * len(now) <= 1_000_000:
            pairs += likeness(was, now, LOOK_AHEAD)
    return pairs


def chained(digests: Digests, parent: str, entries: Sequence[Entry], taken: set[str] | None = None) -> list[Node]:
    """Nodes for entries; those that came as stand-ins keep the ids they have. No id that is `taken` is given twice."""
    nodes = []
    for entry in entries:
        id = entry.id or digests.link(entry.content, (parent,))
        while taken is not None and id in taken:
            id = digests.link(entry.content, (id, "again"))
        if taken is not None:
            taken.add(id)
        parent = id
        nodes.append(Node(parent, entry.content, entry.item or ABSENT))
    return nodes
