"""Thinking that is bound to what stood before it: where that changed, it leaves what is sent and stays in the log."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_

from clew.items import Item, Node
from clew.steps.lines import plain
from clew.steps.places import newest_turn
from clew.view import Swap, View, is_said_by_assistant
from clew.wire.binding import prefix_of

WORDLESS = "[nothing was said]"  # where a message was thinking alone


@dataclass(frozen=True)
class Unbind:
    """Who left it out."""


def unbound(view: View, before: View) -> View:
    """The view without thinking that its provider would refuse, now that not all stands before it that stood there.

    `before` is what was sent last. Thinking is left out from the first change on, in open turns too: any that stayed
    would be refused, or be refused for what is missing before it. Pins do not hold it, for the same reason.
    """
    swaps = list(_swaps(view, _changed(before, view)))
    if not swaps:
        return view
    after = with_(view, pinned=frozenset()).replace_all(swaps, by=Unbind())
    return with_(after, pinned=view.pinned)


def is_thinking(view: View) -> bool:
    """Whether the assistant is amid a turn in which it thought: what it waits for are results of its calls."""
    if not view.nodes or view.nodes[-1].item.role != "tool":
        return False
    return any(_thought(n) for n in view.nodes[newest_turn(view.nodes)[1] :])


def last_thought(view: View) -> int:
    """Where the newest thinking stands; -1 if there is none."""
    return max((i for i, n in enumerate(view.nodes) if _thought(n)), default=-1)


def _thought(node: Node) -> bool:
    return node.item.kind == "reasoning"


def _changed(before: View, view: View) -> int:
    """The first place from which on thinking is bound to something else."""
    if prefix_of(before.frame) != prefix_of(view.frame):
        return 0
    was = [n.content for n in before.nodes if not _thought(n)]
    same, last, stop = 0, -1, len(view.nodes)
    for i, node in enumerate(view.nodes):
        if _thought(node):
            continue
        if same == len(was):
            break
        if node.content != was[same]:
            stop = last = i
            break
        same, last = same + 1, i
    return _parted([n.content for n in before.nodes if _thought(n)], view.nodes[:stop], last)


def _parted(known: Sequence[str], nodes: Sequence[Node], last: int) -> int:
    """The first thinking that lacks what preceded it, or had left: only the oldest of a run may be missing.

    What stands after `last` was not sent before.
    """
    place = {content: n for n, content in enumerate(known)}
    expected: int | None = None  # which of the known ones comes next
    for i, node in enumerate(nodes):
        if not _thought(node):
            continue
        at = place.get(node.content)
        if at is None and i < last:
            return i
        at = len(known) if at is None else at
        if expected not in (None, at):
            return i
        expected = min(at + 1, len(known))
    return len(nodes)


def _swaps(view: View, since: int) -> Iterator[Swap]:
    """Each run of thinking from there on goes, and what it led to stays; it opens the message now."""
    nodes, at = view.nodes, since
    while at < len(nodes):
        first = at
        while at < len(nodes) and _thought(nodes[at]):
            at += 1
        if first < at:
            led = nodes[at] if at < len(nodes) and is_said_by_assistant(nodes[at]) else None
            if led is None:
                yield Swap(first, at, [plain(_opening(nodes[first].item, nodes[first].item), WORDLESS)])
            elif led.id in view.pinned or led.item.kind == "opaque":
                yield Swap(first, at + 1, [led])
            else:
                yield Swap(first, at + 1, [_opening(led.item, nodes[first].item)])
        at += 1


def _opening(item: Item, first: Item) -> Item:
    return with_(item, opens=item.opens or first.opens)
