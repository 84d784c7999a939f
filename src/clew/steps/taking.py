"""How a step takes what it found: in its order, only what helps, as far as needed, in one batch."""

from collections.abc import Iterable

from clew.core.items import Node
from clew.core.view import Swap, View
from clew.steps.places import protected
from clew.tokens.target import Target


def replaceable(view: View, target: Target) -> list[int]:
    """The positions a step may touch: neither protected nor stand-ins already."""
    keep, made = protected(view, target), view.stand_ins()
    return [i for i, node in enumerate(view.nodes) if not keep[i] and node.id not in made]


def take(view: View, target: Target, found: Iterable[Swap], by: object) -> View:
    """The view with these swaps until it fits, cheapest first; one batch, so that a broken cache is paid for once."""
    size, taken = target.size(view), []
    for swap in found:
        if size.within(target.goal):
            break
        old = target.meter.span(view, swap.start, swap.stop)
        new = target.meter.items(i.item if isinstance(i, Node) else i for i in swap.items)
        gain = old.less(new)
        # Nothing may grow, and something must shrink that is too much: text does not go because of images.
        if new.within(old) and any(g and s > m for g, s, m in zip(gain, size, target.goal, strict=True)):
            size = size.less(gain)
            taken.append(swap)
    return view.replace_all(taken, by=by)
