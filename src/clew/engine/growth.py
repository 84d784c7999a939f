"""How a session grows, and whether it pays to compact it before it must be."""

import time
from dataclasses import dataclass

from clew.catalog import Prices
from clew.catalog.worthwhile import Outlook, Reach, Terms, plan
from clew.core.view import View
from clew.steps.places import first_exchange
from clew.store.trace import Trace
from clew.tokens.budget import Budget, Meter


@dataclass(slots=True)
class Pace:
    """Tokens and turns of one session so far; sizes are of whole requests."""

    turns: int = 0
    _said: int = 0  # tokens that came so far
    _last: int = 0  # tokens of the last request
    _at: float = 0.0  # when the last call was made

    def grow(self, size: int) -> None:
        """A turn begins, with a request of this size."""
        self.turns += 1
        self._said += max(0, size - self._last)
        self._last = size

    def shrink(self, size: int) -> None:
        """It was compacted to this."""
        self._last = size

    def call(self) -> None:
        """It is sent now."""
        self._at = time.monotonic()

    def goal(self, trace: Trace, view: View, budget: Budget, prices: Prices | None) -> int | None:
        """Tokens to compact to, if growth or price says that it is time; None if not, or if neither is asked."""
        first = trace.calls[0][1] if trace.calls else len(trace.said)  # what the first request had did not grow
        if budget.growth is not None and grown(trace, view, budget.meter, first) >= budget.growth:
            return self._last - budget.growth // 2  # the rest is left to the next time: so the cache breaks seldom
        if budget.keep is None:
            return None
        idle = time.monotonic() - self._at if self._at else 0.0
        outlook = Outlook(self._last, self.turns, self._said / self.turns, None, folded(view, budget), idle)
        terms = Terms(
            budget.limit.tokens, budget.share, budget.low * budget.share / budget.high, budget.keep, frame=budget.frame
        )
        found = plan(outlook, prices, terms)
        return None if found.act == "nothing" else found.goal


def grown(trace: Trace, view: View, meter: Meter, since: int = 0) -> int:
    """Tokens in view that were said since the last compaction, as the log has it; without one, since that item."""
    if trace.folds and not {n.id for n in view.nodes}.isdisjoint(trace.folds[-1].made):
        since = trace.folds[-1].said
    new = {place.id for place in trace.said[since:]}
    return meter.nodes(n for n in view.nodes if n.id in new).tokens


def folded(view: View, budget: Budget) -> Reach:
    """Where a fold can lead: as deep as is asked for, and all but the head is written anew."""
    head = view.nodes[: first_exchange(view.nodes)[1]]
    return Reach(0, budget.meter.frame(view.frame).tokens + budget.meter.nodes(head).tokens)
