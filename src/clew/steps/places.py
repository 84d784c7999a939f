"""Which parts of a history steps leave alone: the first exchange, the newest user turn, the tail."""

from collections.abc import Sequence

from clew.budget import Budget, Size
from clew.items import Node
from clew.steps.sealed import instructed, sealed, served
from clew.view import Stretch, View, groups

UNREAD = 0.5  # of what may be sent: what no model has read yet stays up to this, or the agent asks for it again
HEAD = 0.25  # of the budget: a longer first exchange is history like any other


def first_exchange(nodes: Sequence[Node]) -> Stretch:
    """The first thing the user said and the first thing that was answered in words."""
    start = stop = _compacted(nodes)
    while stop < len(nodes) and _typed(nodes[stop]):
        stop += 1
    if stop == start:
        return 0, 0
    for first, end in groups(nodes[stop : stop + 50]):
        said = nodes[stop + first : stop + end]
        if said and all(n.item.role == "assistant" and n.item.kind == "text" for n in said):
            return start, stop + end
        break
    return start, stop


def newest_turn(nodes: Sequence[Node]) -> Stretch:
    """The last thing the user said; what the assistant did about it since is not part of it."""
    stop = len(nodes)
    while stop and not _typed(nodes[stop - 1]):
        stop -= 1
    start = stop
    while start and _typed(nodes[start - 1]):
        start -= 1
    return start, stop


def arrived(nodes: Sequence[Node]) -> Stretch:
    """What came since the assistant last spoke: the model has not seen it yet."""
    start = len(nodes)
    while start and nodes[start - 1].item.role != "assistant" and nodes[start - 1].item.kind != "summary":
        start -= 1
    return start, len(nodes)


def unread(view: View, budget: Budget) -> Stretch:
    """What came since the assistant last spoke, with the calls it answers, unless that is too much of the limit."""
    since = arrived(view.nodes)[0]
    start = next((first for first, stop in groups(view.nodes) if stop > since), len(view.nodes))
    room = Size(*(int(UNREAD * part) for part in budget.limit))
    return (start, len(view.nodes)) if budget.meter.nodes(view.nodes[start:]).within(room) else (0, 0)


def tail_start(view: View, budget: Budget) -> int:
    """Where the newest tokens begin that stay as they are, or a quarter of a small budget, at a cut."""
    room = min(budget.tail, budget.goal.tokens // 4)
    at = len(view.nodes)
    while at and (room := room - budget.meter.node(view.nodes[at - 1]).tokens) >= 0:
        at -= 1
    return min((c for c in view.cuts() if c >= at), default=len(view.nodes))


def protected(view: View, budget: Budget) -> list[bool]:
    """For each node, whether a step must leave it byte for byte: head, newest turn, tail, what is unread, pins, and
    what only the provider reads."""
    keep = [n.id in view.pinned for n in view.nodes]
    for i in sealed(view) | served(view) | instructed(view):
        keep[i] = True
    tail = tail_start(view, budget), len(view.nodes)
    head = first_exchange(view.nodes)
    if budget.meter.nodes(view.nodes[slice(*head)]).tokens > HEAD * budget.goal.tokens:
        head = 0, 0
    for start, stop in (head, newest_turn(view.nodes), tail, unread(view, budget)):
        keep[start:stop] = [True] * (stop - start)
    return keep


def _compacted(nodes: Sequence[Node]) -> int:
    """Where a history begins: after what a provider made of a part of it, if it wants that in the first place."""
    start = 0
    if nodes and nodes[0].item.kind == "opaque":
        while start < len(nodes) and nodes[start].item.kind in ("opaque", "summary"):
            start += 1
    return start


def _typed(node: Node) -> bool:
    return node.item.role == "user" and node.item.kind != "summary"
