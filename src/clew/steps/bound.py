"""Thinking that is bound to what stood before it: where that changed, it leaves what is sent and stays in the log."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_

from clew.core.align import shared
from clew.core.cuts import is_by_assistant
from clew.core.items import Item, Node
from clew.core.view import Swap, View, shared_start
from clew.steps.lines import plain
from clew.steps.places import newest_turn
from clew.steps.sealed import COMPACTED, type_of
from clew.wire.rules.binding import binds_alike

WORDLESS = "[nothing was said]"  # where a message was thinking alone


@dataclass(frozen=True)
class Unbind:
    """Who left it out."""


def unbound(view: View, before: View) -> View:
    """The view without thinking that its provider would refuse, now that not all stands before it that stood there.

    `before` is what was sent last. Thinking is left out from the first change on, in open turns too: any that stayed
    would be refused, or be refused for what is missing before it. Pins do not hold it, for the same reason. A block of
    the provider's own, right before what followed all that it stands for, is no change.
    """
    swaps = list(_swaps(view, _changed(_carried(before, view), view)))
    if not swaps:
        return view
    after = with_(view, pinned=frozenset()).replace_all(swaps, by=Unbind())
    return with_(after, pinned=view.pinned)


def is_thinking(view: View) -> bool:
    """Whether the assistant is amid a turn in which it thought: what it waits for are results of its calls."""
    said = [n for n in view.nodes[newest_turn(view.nodes)[1] :] if n.item.role != "system"]
    return bool(said) and said[-1].item.role == "tool" and any(map(_thought, said))


def _thought(node: Node) -> bool:
    return node.item.kind == "reasoning"


def _carried(before: View, view: View) -> View:
    """What was sent last, as it would be with the block in it that its provider has written of it since."""
    first = view.nodes[0] if view.nodes else None
    edit = view.edits.made.get(first.id) if first and type_of(first.item) == COMPACTED else None
    if first is None or edit is None or edit.new != (first,):
        return before
    count = len(edit.old)
    if tuple(n.id for n in before.nodes[:count]) != edit.old:
        return before
    return with_(before, nodes=(first, *before.nodes[count:]))


def _changed(before: View, view: View) -> int:
    """The first thinking that is bound to something else, or lacks thinking that preceded it.

    Of that, only the oldest may be missing, and none may be there that had left.
    """
    if not binds_alike(before.frame, view.frame):
        return 0
    if shared_start(before.nodes, view.nodes) == len(before.nodes):
        return _first_late(before, view)
    was = [n.content for n in before.nodes if not _thought(n)]
    same = shared(was, [n.content for n in view.nodes if not _thought(n)])
    known = list(_ranked(before.nodes))
    place = {content: n for n, (_, content, _) in enumerate(known)}
    expected: int | None = None  # which of the known ones comes next
    for i, content, rank in _ranked(view.nodes):
        at = place.get(content, len(known))
        came_back = at == len(known) and rank < len(was)
        moved = at < len(known) and known[at][2] != rank
        if rank > same or came_back or moved or expected not in (None, at):
            return i
        expected = min(at + 1, len(known))
    return len(view.nodes)


def _first_late(before: View, view: View) -> int:
    """The same where something was only added: what was thought right after all the rest is bound to that."""
    for i in range(len(before.nodes), len(view.nodes)):
        node = view.nodes[i]
        if not _thought(node):
            later = (j for j in range(i, len(view.nodes)) if _thought(view.nodes[j]))
            return next(later, len(view.nodes))
        if any(_thought(n) and n.content == node.content for n in before.nodes):
            return i
    return len(view.nodes)


def _ranked(nodes: Sequence[Node]) -> Iterator[tuple[int, str, int]]:
    """Where each thinking stands, what it is, and how many other things stand before it."""
    rank = 0
    for i, node in enumerate(nodes):
        if _thought(node):
            yield i, node.content, rank
        else:
            rank += 1


def _swaps(view: View, since: int) -> Iterator[Swap]:
    """Each run of thinking from there on goes, and what it led to stays; it opens the message now."""
    nodes, at = view.nodes, since
    while at < len(nodes):
        first = at
        while at < len(nodes) and _thought(nodes[at]):
            at += 1
        if first < at:
            led = nodes[at] if at < len(nodes) and is_by_assistant(nodes[at]) else None
            if led is None:
                yield Swap(first, at, [plain(_opening(nodes[first].item, nodes[first].item), WORDLESS)])
            elif led.id in view.pinned or led.item.kind == "opaque":
                yield Swap(first, at + 1, [led])
            else:
                yield Swap(first, at + 1, [_opening(led.item, nodes[first].item)])
        at += 1


def _opening(item: Item, first: Item) -> Item:
    return with_(item, opens=item.opens or first.opens)
