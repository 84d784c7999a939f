"""Clear: old results become one informative line."""

from collections.abc import Iterator
from dataclasses import dataclass

from clew.core.view import Swap, View
from clew.steps.lines import calls_by_result, cleared
from clew.steps.places import protected
from clew.steps.protocol import PureStep
from clew.steps.taking import replaceable, take
from clew.tokens.target import Target

BULKY = 200  # tokens: where a line saves little, it comes last


@dataclass(frozen=True)
class ClearResults(PureStep):
    """Old results and media become one line each until it fits: bulky ones first, of these the oldest.

    The calls stay: without them the model repeats the work.
    """

    def apply(self, view: View, target: Target) -> View:
        return take(view, target, _found(view, target), by=self) if target.excess(view) else view


@dataclass(frozen=True)
class ClearBeside(PureStep):
    """The same for results that no fold can take, since something stays which cannot be parted from them.

    Anthropic wants an answer after a system message: else the first one would stay with all that its calls brought.
    """

    def apply(self, view: View, target: Target) -> View:
        if not target.excess(view):
            return view
        keep = protected(view, target)
        held = {i for group in view.groups() if any(keep[slice(*group)]) for i in range(*group)}
        return take(view, target, (swap for swap in _found(view, target) if swap.start in held), by=self)


def _found(view: View, target: Target) -> Iterator[Swap]:
    calls = calls_by_result(view.nodes)
    old = [i for i in replaceable(view, target) if view.nodes[i].item.kind in ("result", "media")]
    for i in sorted(old, key=lambda i: target.meter.node(view.nodes[i]).tokens < BULKY):
        yield Swap(i, i + 1, [cleared(view.nodes[i].item, calls.get(i), view.short(i, i + 1))])
