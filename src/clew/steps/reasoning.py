"""Clear reasoning: what was thought in earlier turns goes; what it led to stays, word for word."""

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace as with_

from clew.core.cuts import Stretch, reasoning_leads
from clew.core.items import Item
from clew.core.view import Swap, View
from clew.steps.places import newest_turn
from clew.steps.protocol import PureStep
from clew.steps.taking import replaceable, take
from clew.tokens.target import Target


@dataclass(frozen=True)
class ClearReasoning(PureStep):
    """Old reasoning and the words or the call it led to become those words or that call alone, oldest first.

    A line in its place would be one more thing in the assistant's voice to imitate, and signed reasoning cannot be
    rewritten, only left out whole. Reasoning of the newest turn stays: providers ask for it back until the user speaks
    again. So does what nothing of the assistant's follows, and in OpenAI Responses what led to items with ids of
    their own, which are refused without it.
    """

    def apply(self, view: View, target: Target) -> View:
        return take(view, target, _found(view, target), by=self) if target.excess(view) else view


def _found(view: View, target: Target) -> Iterator[Swap]:
    nodes, kept_from = view.nodes, newest_turn(view.nodes)[0]
    free = set(replaceable(view, target))
    for start, stop in reasoning_leads(nodes[:kept_from]):
        if view.frame.format == "openai_responses" and any(_has_id(n.item) for n in nodes[start + 1 : stop]):
            continue
        for first, last in _thoughts(view, start, stop):
            led = nodes[last].item
            if (
                led.kind in ("text", "call")
                and nodes[last].id not in view.pinned
                and free.issuperset(range(first, last))
            ):
                yield Swap(first, last + 1, [with_(led, opens=led.opens or nodes[first].item.opens)])


def _thoughts(view: View, start: int, stop: int) -> Iterator[Stretch]:
    """Each run of reasoning in a stretch, from its first to the place of what it led to."""
    first = start
    for at in range(start, stop):
        if view.nodes[at].item.kind != "reasoning":
            if first < at:
                yield first, at
            first = at + 1


def _has_id(item: Item) -> bool:
    return "id" in (item.wire or ()) or (item.opens is not None and "id" in item.opens.keys)
