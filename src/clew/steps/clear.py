"""Clear: old results become one informative line."""

from dataclasses import dataclass

from clew.budget import Budget
from clew.steps.lines import calls_by_result, cleared, plain
from clew.steps.places import protected
from clew.view import Swap, View


@dataclass(frozen=True)
class ClearResults:
    """Old results and images become one line each, oldest first, until it fits.

    The calls stay: without them the model repeats the work.
    """

    async def __call__(self, view: View, budget: Budget) -> View:
        size = budget.size(view)
        if size.within(budget.goal):
            return view
        keep, made = protected(view, budget), view.stand_ins()
        calls = calls_by_result(view.nodes)
        swaps = []
        for i, node in enumerate(view.nodes):
            if keep[i] or node.id in made or node.item.kind not in ("result", "media"):
                continue
            if size.within(budget.goal):
                break
            line = cleared(node.item, calls.get(i), view.short(i, i + 1))
            if node.item.kind == "media":
                line = plain(node.item, f"[{line.text.strip('[]')}]")
            gain = budget.meter.node(node).less(budget.meter.item(line))
            if gain.tokens > 0:
                size = size.less(gain)
                swaps.append(Swap(i, i + 1, [line]))
        return view.replace_all(swaps, by=self)
