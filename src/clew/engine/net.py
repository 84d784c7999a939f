"""The net below an agent that looks after its own context: what it was told, and when clew acts for it."""

from dataclasses import replace as with_
from itertools import takewhile

from clew.core.view import View
from clew.engine.cue import STATUS, Cue, spare
from clew.recognition.branch import Live
from clew.steps import Arrivals
from clew.tokens.budget import Budget, Size


def net(budget: Budget) -> Budget:
    """The budget of an agent that looks after its window itself: clew acts only just before it is full."""
    reserve = min(budget.kept_free + STATUS, budget.window - 1)
    whole = with_(budget, reserve=reserve, keep=None, growth=None, start=None, goal=Size())
    high = min(1.0, max(0.01, (budget.room - spare(budget.room)) / max(1, whole.room)))
    return with_(whole, high=high, low=min(budget.low, high), goal=Size())


def likely(live: Live, view: View, budget: Budget) -> tuple[Size, Budget]:
    """The size, and the budget at the rate that is expected: on the scale of what the agent is told."""
    size, _ = live.scale.measure(view)
    return size, budget.at(live.scale.expected(view) / max(1, size.tokens))


async def previewed(live: Live, view: View, budget: Budget) -> View:
    """The view with previews of what just came, where that jumps past the net."""
    size, bounds = likely(live, view, budget)
    if not bounds.exceeded(size):
        return view
    after = await Arrivals()(view, with_(bounds, goal=bounds.limit._replace(tokens=bounds.threshold)))
    if after is not view:
        live.scale.edit()
    return after


def is_over(live: Live, view: View, budget: Budget, told: bool) -> bool:
    """Whether clew must act for an agent: it was told and did not, or there is no room to tell it."""
    size, bounds = likely(live, view, budget)
    return bounds.exceeded(size) if told else not size.within(bounds.limit)


def was_told(live: Live, view: View, budget: Budget, cue: Cue) -> bool:
    """Whether the status of the last call asked the agent to act."""
    if not live.trace.calls:
        return False
    new = {place.id for place in live.trace.said[live.trace.calls[-1][1] :]}
    since = budget.meter.nodes(takewhile(lambda n: n.id in new, reversed(view.nodes))).tokens
    size, _ = live.scale.measure(view)
    told = budget.filled(size.tokens - since + STATUS, live.scale.expected(view) / max(1, size.tokens))
    return cue.heeded(told).is_reached(told)
