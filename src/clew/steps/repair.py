"""Repair: a history that a provider would refuse becomes one it accepts, with nothing lost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clew.budget import Budget
from clew.items import Item, Node
from clew.steps.lines import plain
from clew.view import Swap, View, continues, groups, pairs

# Formats whose providers refuse empty text and a history that does not begin with the user.
STRICT = frozenset({"anthropic"})


@dataclass(frozen=True)
class Repair:
    """Orphan results and unanswered calls become text, results follow their calls, empty content gets a word."""

    async def __call__(self, view: View, budget: Budget) -> View:
        return repair(view, by=self)


def repair(view: View, since: int = 0, by: object = Repair()) -> View:  # a value, not a list
    """Mend what stands at or after `since`, which must be a cut."""
    nodes = view.nodes[since:]
    swaps = []
    for start, stop in groups(nodes):
        old = [n.item for n in nodes[start:stop]]
        new = list(_mended(nodes[start:stop], view.frame.format in STRICT))
        if since + start == 0 and view.frame.format in STRICT and new[0].role == "assistant":
            new.insert(0, Item("text", "user", "[the conversation begins]"))
        if new != old:
            swaps.append(Swap(since + start, since + stop, new))
    return view.replace_all(swaps, by=by)


def _mended(nodes: Sequence[Node], strict: bool) -> Iterator[Item]:
    """The items of one group in the order providers ask for."""
    result_of = dict(sorted((start, stop - 1) for start, stop in pairs(nodes) if nodes[stop - 1].item.kind == "result"))
    answers = set(result_of.values())
    due: list[Item] = []
    for i, node in enumerate(nodes):
        item = node.item
        if not continues(nodes, i) or item.role != "assistant":
            yield from due
            due = []
        if item.kind == "call":
            if i in result_of:
                due.append(nodes[result_of[i]].item)
                yield item
            else:
                yield Item("text", "assistant", f"[called {item.name} {item.text}: no result]", opens=item.opens)
        elif item.kind == "result":
            if i not in answers:
                yield Item("text", "user", f"[result of a call that is not in this conversation]\n{item.text}")
        elif strict and item.kind == "text" and not item.text.strip() and not item.wire:
            yield plain(item, "[empty]")
        else:
            yield item
    yield from due
