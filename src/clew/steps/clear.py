"""Clear: old results become one informative line."""

from collections.abc import Iterator
from dataclasses import dataclass

from clew.core.view import Swap, View
from clew.steps.lines import calls_by_result, cleared
from clew.steps.taking import replaceable, take
from clew.tokens.budget import Budget

BULKY = 200  # tokens: where a line saves little, it comes last


@dataclass(frozen=True)
class ClearResults:
    """Old results and media become one line each until it fits: bulky ones first, of these the oldest.

    The calls stay: without them the model repeats the work.
    """

    async def __call__(self, view: View, budget: Budget) -> View:
        return take(view, budget, _found(view, budget), by=self) if budget.excess(view) else view


def _found(view: View, budget: Budget) -> Iterator[Swap]:
    calls = calls_by_result(view.nodes)
    old = [i for i in replaceable(view, budget) if view.nodes[i].item.kind in ("result", "media")]
    for i in sorted(old, key=lambda i: budget.meter.node(view.nodes[i]).tokens < BULKY):
        yield Swap(i, i + 1, [cleared(view.nodes[i].item, calls.get(i), view.short(i, i + 1))])
