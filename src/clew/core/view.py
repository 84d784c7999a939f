"""What the model will see, and how we got there.

A view changes by `replace` alone: some consecutive nodes get a stand-in, and an `Edit` remembers it. Where a span may
begin and end is `cuts()`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from dataclasses import replace as with_
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from clew.core.caches import per_object
from clew.core.cuts import Stretch, cuts, is_by_assistant, loose_ends, pairs
from clew.core.edits import NO_EDITS, Edits
from clew.core.items import ASKING, BESIDE, PINS, SHORT, Digests, Edit, Frame, Item, Node, Scope
from clew.errors import BrokenHistory, Pinned

CHUNK = 256  # nodes that are compared at once


class Swap(NamedTuple):
    """One replacement: `items` stand in for the nodes from `start` to before `stop`; a node among them only moved."""

    start: int
    stop: int
    items: Sequence[Item | Node]
    evidence: Mapping[str, Any] = {}
    spent: int = 0  # tokens it took to write them


@dataclass(frozen=True, slots=True, weakref_slot=True)
class View:
    """A history as it will be sent, and the edits that led there."""

    frame: Frame
    nodes: tuple[Node, ...]
    digests: Digests = field(repr=False, compare=False)
    edits: Edits = NO_EDITS
    pinned: frozenset[str] = frozenset()
    scope: Scope = ""
    branch: str = ""
    seq: int = 0  # of the call it was made for
    behind: Mapping[str, Node] = field(default_factory=dict, repr=False)  # what is out of view, if somebody read it

    def cuts(self) -> list[int]:
        """Where a span may begin or end."""
        return list(_cuts(self))

    def groups(self) -> Iterator[Stretch]:
        """The history as stretches that stay or go as a whole."""
        return pairwise(_cuts(self))

    def stand_ins(self) -> AbstractSet[str]:
        """The ids of nodes that an edit made: there is nothing behind them that is not already recalled."""
        return self.edits.made.keys()

    def originals(self, start: int, stop: int) -> list[Node]:
        """What was said behind these nodes, under any number of stand-ins; a stand-in itself where it is not known."""
        found: dict[str, Node] = {}
        made = self.edits.made
        for node in self.nodes[start:stop]:
            for id in originals((node.id,), made) if node.id in made else (node.id,):
                said = node if id == node.id else self.behind.get(id, node)
                found[said.id] = said
        return list(found.values())

    def short(self, start: int, stop: int) -> str:
        """The id to write in a stand-in for these nodes: whoever reads it can recall them by it."""
        return self.digests.handle([n.id for n in self.nodes[start:stop]])[:SHORT]

    def replace(self, start: int, stop: int, *items: Item, by: object, spent: int = 0) -> "View":
        """The view with `items` in place of a span. Raises `Pinned` or `BrokenHistory`."""
        return self.replace_all([Swap(start, stop, items)], by=by, spent=spent)

    def replace_all(self, swaps: Iterable[Swap], *, by: object, spent: int = 0) -> "View":
        """Many replacements at the cost of one; positions are those of this view, spans do not overlap."""
        out: list[Node] = []
        edits: list[Edit] = []
        behind = dict(self.behind)
        partners: Mapping[int, Sequence[int]] | None = None
        at = 0
        for swap in sorted(swaps, key=itemgetter(0)):
            old = self.nodes[swap.start : swap.stop]
            if not old or not swap.items or swap.start < at:
                raise BrokenHistory(
                    "an edit must replace at least one node with at least one item, and spans must not overlap"
                )
            if self._allow(swap):
                partners = partners if partners is not None else _partners(self.nodes)
                _keep_pairs(swap, partners)
            ids = tuple(n.id for n in old)
            new = tuple(self._stand_ins(ids, swap.items))
            behind |= {n.id: n for n in old}
            out += self.nodes[at : swap.start]
            out += new
            at = swap.stop
            edits.append(Edit(repr(by), ids, new, swap.evidence, swap.spent or spent))
        if not edits:
            return self
        out += self.nodes[at:]
        return with_(self, nodes=tuple(out), edits=self.edits.plus(edits), behind=behind)

    def _stand_ins(self, ids: tuple[str, ...], items: Sequence[Item | Node]) -> Iterator[Node]:
        for n, item in enumerate(items):
            if isinstance(item, Node):
                yield item
            else:
                content = self.digests.content(item)
                yield Node(self.digests.link(content, (*ids, str(n))), content, item)

    def _allow(self, swap: Swap) -> bool:
        """Refuse what no provider takes; True if calls or results go whose partners may stand outside the span."""
        old = self.nodes[swap.start : swap.stop]
        stays = {i.id for i in swap.items if isinstance(i, Node)}
        if hit := [n.id[:SHORT] for n in old if n.id in self.pinned and n.id not in stays]:
            raise Pinned(f"pinned: {', '.join(hit)}; unpin first")
        items = [i.item if isinstance(i, Node) else i for i in swap.items]
        before, after = loose_ends(n.item for n in old), loose_ends(items)
        if after - before:
            raise BrokenHistory(f"a stand-in must not add calls or results: {sorted(after - before)}")
        led = swap.stop < len(self.nodes) and is_by_assistant(self.nodes[swap.stop])
        if led and old[-1].item.kind == "reasoning" and items[-1].kind != "reasoning":
            raise BrokenHistory("the edit would separate reasoning from the items that follow from it")
        return bool(before - after)


@per_object
def _cuts(view: View) -> tuple[int, ...]:
    return tuple(cuts(view.nodes))


def _partners(nodes: Sequence[Node]) -> dict[int, list[int]]:
    """For the places of calls and of results, those of what belongs to them."""
    found: dict[int, list[int]] = {}
    for start, stop in pairs(nodes):
        found.setdefault(start, []).append(stop - 1)
        found.setdefault(stop - 1, []).append(start)
    return found


def _keep_pairs(swap: Swap, partners: Mapping[int, Sequence[int]]) -> None:
    span = range(swap.start, swap.stop)
    if any(other not in span for at in span for other in partners.get(at, ())):
        raise BrokenHistory("the edit would separate a call from its result")


def shared_start(before: Sequence[Node], now: Sequence[Node]) -> int:
    """How many nodes both begin with."""
    least = min(len(before), len(now))
    for start in range(0, least, CHUNK):
        old, new = before[start : min(start + CHUNK, least)], now[start : min(start + CHUNK, least)]
        if old != new:  # mostly they are the very same objects: then this takes no time
            for n, (was, is_) in enumerate(zip(old, new, strict=True)):
                if was.id != is_.id:
                    return start + n
    return least


# --- replay ---------------------------------------------------------------------------------------------------------


def fold(
    nodes: Sequence[Node],
    edits: Iterable[Edit],
    alias: Mapping[str, str] | None = None,
    gone: Collection[str] = (),
    loose: Collection[str] = (),
    changed: bool = False,
) -> tuple[Node, ...]:
    """Replay edits over a history. An edit whose nodes do not all stand there, in a row, does not apply.

    `alias` names nodes that a client rewrote in place: an edit of the old one covers the new one. An edit still holds
    where some of its nodes are `gone`, and covers `loose` ones that stand between the others. `changed` says that a
    client edited the history.
    """
    alias = _sound(alias, nodes) if alias else {}
    known: dict[str, Node] = {}
    after: dict[str, str] = {}
    before: dict[str, str] = {}
    at = "^"
    for node in nodes:
        key = alias.get(node.id, node.id)
        known[key] = node
        after[at], before[key] = key, at
        at = key
    after[at], before["$"] = "$", at
    for edit in edits:
        if not _quotes_stand(edit, known, alias) or (changed and _is_vague(edit)):
            continue
        old: Sequence[str] = [alias.get(id, id) for id in edit.old] if alias else edit.old
        if gone or loose:
            old = _span([id for id in old if id not in gone], after, loose)
        if not old or not _is_in_order(old, after):
            continue
        new = [alias.get(n.id, n.id) for n in edit.new]
        # Two in one place, or one in two, as no clew writes them: the history would have no end.
        if len({*new}) < len(new) or any(key in after and key not in old for key in new):
            continue
        moved = {key: known[key] for n in edit.new if n.id in edit.old and (key := alias.get(n.id, n.id)) in known}
        left, right = before[old[0]], after[old[-1]]
        for id in old:
            del after[id], before[id]
        for node, key in zip(edit.new, new, strict=True):
            if key in gone:
                continue
            known[key] = moved.get(key, node)
            after[left], before[key] = key, left
            left = key
        after[left], before[right] = right, left
    out, at = [], after["^"]
    while at != "$":
        out.append(known[at])
        at = after[at]
    return tuple(out)


def _quotes_stand(edit: Edit, known: Collection[str], alias: Mapping[str, str]) -> bool:
    """Whether all that an edit quotes, without standing for it, is there still: else the words would be old.

    It may be a stand-in itself, as a long message that was cut: that is there if its own edit applied.
    """
    quoted = *edit.evidence.get(BESIDE, ()), *edit.evidence.get(PINS, ())
    return all(alias.get(id, id) in known for id in quoted)


def _is_vague(edit: Edit) -> bool:
    """Whether it quotes and does not say whom, as those of earlier versions."""
    return ASKING in edit.evidence and BESIDE not in edit.evidence


def _sound(alias: Mapping[str, str], nodes: Sequence[Node]) -> Mapping[str, str]:
    """Without nodes that are said to be a rewrite of one that stands there itself, or has a rewrite already."""
    taken, wrong = {node.id for node in nodes}, set[str]()
    for node in nodes:
        old = alias.get(node.id)
        if old in taken:
            wrong.add(node.id)
        elif old is not None:
            taken.add(old)
    return {new: old for new, old in alias.items() if new not in wrong} if wrong else alias


def originals(ids: Sequence[str], by_id: Mapping[str, Edit]) -> list[str]:
    """The nodes that were said, under any number of stand-ins; each once."""
    return behind(ids, lambda at: by_id[at].sources if at in by_id else None)


def behind(ids: Sequence[str], sources: Callable[[str], Sequence[str] | None]) -> list[str]:
    """The same, where `sources` says what an id stands for, and None if it was said itself."""
    said: dict[str, bool] = {}
    stack = list(reversed(ids))
    while stack:
        if (id := stack.pop()) not in said:
            older = sources(id)
            said[id] = older is None
            stack += reversed(older or ())
    return [id for id in said if said[id]]


def _span(old: Sequence[str], after: Mapping[str, str], loose: Collection[str]) -> list[str]:
    """These nodes and the loose ones between them."""
    span: list[str] = []
    for id in old:
        while span and (between := after.get(span[-1], "$")) != id and between in loose:
            span.append(between)
        span.append(id)
    return span


def _is_in_order(old: Sequence[str], after: Mapping[str, str]) -> bool:
    return old[-1] in after and all(after.get(a) == b for a, b in pairwise(old))
