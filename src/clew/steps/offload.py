"""Offload on arrival: new results that are too large for the window, alone or together, become previews."""

from collections.abc import Iterator
from dataclasses import dataclass

from clew.budget import Budget
from clew.decorations import undecorated
from clew.items import Item
from clew.steps.lines import calls_by_result, preview
from clew.steps.matches import matches, terms
from clew.steps.places import UNREAD, arrived, newest_turn
from clew.steps.taking import replaceable, take
from clew.view import Swap, View

ASKED = 8_000  # characters of the newest turn in which names are looked for


@dataclass(frozen=True)
class Offload:
    """New results that take too much together keep head, tail and what matches the question; largest first.

    Those do that are larger than their share, or than `over` of the budget. Older ones are left to other steps: who has
    seen a result can tell of it in fewer words than its two ends take.
    """

    over: float = 0.25  # a share of window less reserve
    head: int = 10_000  # characters, or what half of that share holds
    tail: int = 5_000

    async def __call__(self, view: View, budget: Budget) -> View:
        return take(view, budget, self._found(view, budget), by=self) if budget.excess(view) else view

    def _found(self, view: View, budget: Budget) -> Iterator[Swap]:
        new = range(*arrived(view.nodes))
        sizes = {
            i: budget.meter.node(view.nodes[i]).tokens
            for i in replaceable(view, budget)
            if i in new and view.nodes[i].item.kind == "result"
        }
        share = min(self.over, UNREAD / max(1, len(sizes)))
        bound = max(64, int(share * budget.limit.tokens))
        calls = calls_by_result(view.nodes)
        asked = _asked(view)
        for i in sorted((i for i in sizes if sizes[i] > bound), key=lambda i: -sizes[i]):
            yield Swap(i, i + 1, [self._preview(view, i, bound, budget, calls.get(i), asked)])

    def _preview(self, view: View, i: int, bound: int, budget: Budget, call: Item | None, asked: str) -> Item:
        item, head, tail = view.nodes[i].item, self.head, self.tail
        found = matches(item.text, terms(call.text if call else "", asked))
        while True:
            short = preview(item, view.short(i, i + 1), head, tail, found)
            # A character can be several tokens: shrink until the preview is worth having.
            if head + tail < 80 or budget.meter.item(short).tokens <= bound // 2:
                return short
            head, tail = head // 2, tail // 2


def _asked(view: View) -> str:
    """What the user last said, or its two ends."""
    said = "\n".join(undecorated(n.item.text) for n in view.nodes[slice(*newest_turn(view.nodes))])
    return said if len(said) <= ASKED else said[: ASKED // 2] + "\n" + said[-ASKED // 2 :]
