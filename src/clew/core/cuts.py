"""Where a history may be cut: one small function a rule, each yielding stretches that stay whole."""

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from clew.core.items import Item, Node

Stretch = tuple[int, int]  # from the first position to before the second


def pairs(nodes: Sequence[Node]) -> Iterator[Stretch]:
    """A call and its result. Ids may be used again later: a result answers the nearest open call of its id."""
    open_calls: dict[str, list[int]] = {}
    for i, node in enumerate(nodes):
        call_id = node.item.call_id
        if not call_id:
            continue
        if node.item.kind == "result":
            if waiting := open_calls.get(call_id):
                yield waiting.pop(), i + 1
        elif node.item.kind == "opaque" and call_id in open_calls:
            yield open_calls.pop(call_id)[0], i + 1
        else:
            open_calls.setdefault(call_id, []).append(i)


def assistant_messages(nodes: Sequence[Node]) -> Iterator[Stretch]:
    """What the assistant said in one message: calls made together, reasoning with what it led to."""
    start = 0
    for i in range(1, len(nodes) + 1):
        if not continues(nodes, i) or nodes[i].item.role != "assistant":
            if nodes[i - 1].item.role == "assistant" and i - start > 1:
                yield start, i
            start = i


def reasoning_leads(nodes: Sequence[Node]) -> Iterator[Stretch]:
    """Signed reasoning and all the assistant then said before anybody else spoke."""
    at = 0
    while at < len(nodes):
        stop = at + 1
        if nodes[at].item.kind == "reasoning":
            while stop < len(nodes) and is_by_assistant(nodes[stop]):
                stop += 1
            yield at, stop
        at = stop


RULES: tuple[Callable[[Sequence[Node]], Iterator[Stretch]], ...] = (pairs, assistant_messages, reasoning_leads)


def cuts(nodes: Sequence[Node]) -> list[int]:
    """Positions that no rule forbids: there a span may begin or end."""
    reach = list(range(len(nodes) + 1))  # the far end of the stretches that begin here
    for rule in RULES:
        for start, stop in rule(nodes):
            reach[start] = max(reach[start], stop)
    free, whole_until = [], 0
    for i, far in enumerate(reach):
        if i >= whole_until:
            free.append(i)
        whole_until = max(whole_until, far)
    return free


def groups(nodes: Sequence[Node]) -> list[Stretch]:
    """The history as stretches that stay or go as a whole."""
    return list(pairwise(cuts(nodes)))


def continues(nodes: Sequence[Node], at: int) -> bool:
    """Whether the node at this position belongs to the same message as the one before it."""
    return (
        0 < at < len(nodes)
        and nodes[at].item.opens is None
        and nodes[at].item.role == nodes[at - 1].item.role
        and nodes[at].item.kind != "summary"
        and nodes[at - 1].item.kind != "summary"
    )


def is_by_assistant(node: Node) -> bool:
    """Whether these are words or acts of the assistant's own."""
    return node.item.role == "assistant" and node.item.kind != "summary"


def loose_ends(items: Iterable[Item]) -> Tally[tuple[str, str]]:
    """Calls without results and results without calls, in one stretch."""
    ends: Tally[tuple[str, str]] = Tally()
    for item in items:
        if item.kind == "call":
            ends["call", item.call_id] += 1
        elif item.kind == "result":
            if ends["call", item.call_id] > 0:
                ends["call", item.call_id] -= 1
            else:
                ends["result", item.call_id] += 1
    return +ends
