"""Offload: what is too large for the window becomes a preview."""

from dataclasses import dataclass

from clew.budget import Budget
from clew.items import Item
from clew.steps.lines import preview
from clew.steps.places import protected
from clew.view import Swap, View


@dataclass(frozen=True)
class Offload:
    """Results larger than `over` of the budget keep their head and tail, new ones too; largest first."""

    over: float = 0.125  # a share of window less reserve
    head: int = 1_200  # characters
    tail: int = 600

    async def __call__(self, view: View, budget: Budget) -> View:
        size = budget.size(view)
        if size.within(budget.goal):
            return view
        bound = max(64, int(self.over * budget.limit.tokens))
        keep, made = protected(view, budget), view.stand_ins()
        found = []
        for i, node in enumerate(view.nodes):
            have = budget.meter.node(node)
            if node.item.kind == "result" and have.tokens > bound and not keep[i] and node.id not in made:
                found.append((have.tokens, i))
        swaps = []
        for _, i in sorted(found, reverse=True):
            if size.within(budget.goal):
                break
            short = self._preview(view, i, bound, budget)
            gain = budget.meter.node(view.nodes[i]).less(budget.meter.item(short))
            if gain.tokens > 0:
                size = size.less(gain)
                swaps.append(Swap(i, i + 1, [short]))
        return view.replace_all(swaps, by=self)

    def _preview(self, view: View, i: int, bound: int, budget: Budget) -> Item:
        head, tail = self.head, self.tail
        while True:
            short = preview(view.nodes[i].item, view.short(i, i + 1), head, tail)
            # A character can be several tokens: shrink until the preview is worth having.
            if head + tail < 80 or budget.meter.item(short).tokens <= bound // 2:
                return short
            head, tail = head // 2, tail // 2
