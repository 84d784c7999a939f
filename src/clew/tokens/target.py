"""What one compaction is to reach: a budget for one request, the meter it is counted with, and where steps stop."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import replace as with_
from typing import NamedTuple, Self

from clew.catalog import Prices
from clew.core.items import Frame, Item
from clew.core.limits import Budget, Size
from clew.core.view import View
from clew.tokens.counter import counter_for
from clew.tokens.meter import Meter

LEAST_GROWTH = 0.15  # of the room: with less growth since the last one, a compaction would break the cache for little


class Filled(NamedTuple):
    """How full a window is, in tokens as the provider counts them."""

    used: int  # of the room, by the history
    room: int
    left: int  # until nothing more may be sent
    window: int

    @property
    def percent(self) -> int:
        """Of the room: what people and agents are told, and what thresholds are shares of."""
        return min(100, max(0, 100 * self.used // max(1, self.room)))


class CacheRates(NamedTuple):
    """What a token costs that is read from a provider's cache, or written to it, where one of input costs 1.

    Where no prices are known: those of the provider whose cache is dearest to write.
    """

    read: float = 0.1
    write: float = 1.25

    @classmethod
    def of(cls, prices: Prices | None) -> Self:
        """By what a model costs."""
        if prices is None or not prices.input or prices.cache_read is None:
            return cls()
        return cls(prices.cache_read / prices.input, (prices.cache_write or prices.input) / prices.input)


UNKNOWN = CacheRates()


@dataclass(frozen=True, slots=True)
class Target:
    """A budget for requests with one frame. Steps make a view smaller until it is within `goal`."""

    budget: Budget
    meter: Meter = field(repr=False, compare=False)
    frame: int = 0  # tokens of system prompt and tools, which nobody can compact
    answer: int = 0  # tokens that a request asks for, where its provider adds them to what it reads
    taken: int | None = None  # those that answers take, if that is known
    rates: CacheRates = UNKNOWN
    ceiling: int | None = None  # tokens of a request above which its client compacts by itself, or soon would
    aimed: Size | None = None  # the goal, if it is not `low`

    @classmethod
    def of(cls, budget: Budget, meter: Meter | None = None) -> Self:
        """The target of a budget by itself, counted as its model counts."""
        return cls(budget, meter or Meter(counter_for(budget.model)))

    @property
    def window(self) -> int:
        return self.budget.window

    @property
    def kept_free(self) -> int:
        """Tokens for the answer."""
        return self.budget.kept_free(self.answer, self.frame, self.taken)

    @property
    def limit(self) -> Size:
        """What may never be exceeded."""
        most = self.budget
        return Size(most.window - self.kept_free, most.bytes, most.images, most.messages)

    @property
    def room(self) -> int:
        """Tokens that the history may take."""
        return max(0, self.limit.tokens - self.frame)

    @property
    def share(self) -> float:
        """Of the room: where compaction starts, by `high`, by `start` or by what its client would do."""
        room, start = max(1, self.room), self.budget.start
        own = self.budget.upper if start is None else min(self.budget.upper, start / room)
        return own if self.ceiling is None else min(own, max(0.0, self.ceiling - self.frame) / room)

    @property
    def threshold(self) -> int:
        """Tokens of a request above which it is compacted."""
        return self.frame + int(self.share * self.room)

    @property
    def least(self) -> int:
        """Tokens by which a history grows at least from one compaction to the next, while all of it fits."""
        return int(LEAST_GROWTH * self.room * self.share / self.budget.upper)

    @property
    def goal(self) -> Size:
        """Where steps stop."""
        return self.limit._replace(tokens=self._low) if self.aimed is None else self.aimed

    @property
    def _low(self) -> int:
        """Tokens of a request down to which it is compacted: `low`, in proportion where `start` comes before `high`."""
        return self.frame + int(self.budget.lower * self.room * min(1.0, self.share / self.budget.usual))

    def around(self, frame: Frame) -> Self:
        """For requests that have this frame."""
        return with_(self, frame=self.meter.frame(frame).tokens, aimed=None)

    def under(self, budget: Budget) -> Self:
        """By another budget."""
        return with_(self, budget=budget, aimed=None)

    def to(self, tokens: int) -> Self:
        """Down to so many tokens, and within the limit otherwise."""
        return with_(self, aimed=self.limit._replace(tokens=tokens))

    def at(self, rate: float) -> Self:
        """In units of which one is `rate` tokens: what steps count may not be what the provider counts."""
        if rate == 1:
            return self
        window, start = max(1, int(self.window / rate)), self.budget.start
        reserve = min(int(self.kept_free / rate), window - 1)
        start = None if start is None else max(1, int(start / rate))
        high, low = self.budget.upper, self.budget.lower  # of the window as it is
        budget = with_(self.budget, window=window, reserve=reserve, start=start, high=high, low=low)
        return with_(self.under(budget), ceiling=None if self.ceiling is None else int(self.ceiling / rate))

    def as_sent(self, items: Mapping[str, Item]) -> Self:
        """Counted by what is sent of these nodes: a secret may be far longer than what is kept of it."""
        return with_(self, meter=self.meter.as_sent(items)) if items else self

    def aim(self, size: Size) -> Self:
        """Down to `low` in each dimension that is over where compaction starts."""
        start = self.limit._replace(tokens=self.threshold)
        parts = (max(min(1, part), int(self.budget.lower * part)) for part in self.limit)  # of one picture one may stay
        low = Size(*parts)._replace(tokens=self._low)
        goal = Size(
            *(
                least if have > begin else limit
                for have, begin, least, limit in zip(size, start, low, self.limit, strict=True)
            )
        )
        return with_(self, aimed=goal)

    def size(self, view: View) -> Size:
        """How big the whole request is."""
        return self.meter.frame(view.frame).plus(self.meter.view(view))

    def filled(self, tokens: int, rate: float = 1) -> Filled:
        """How full the window is with a request of so many tokens, of which one is `rate` of the provider's."""
        sent, limit, frame = round(tokens * rate), self.limit.tokens, round(self.frame * rate)
        return Filled(max(0, sent - frame), max(0, limit - frame), max(0, limit - sent), self.window)

    def is_clients_next(self, size: Size) -> bool:
        """Whether the client would compact a request of this size by itself, now or after one more call."""
        return self.ceiling is not None and size.tokens > self.ceiling

    def exceeded(self, size: Size) -> bool:
        """Whether it is time to compact."""
        return not size.within(self.limit._replace(tokens=self.threshold))

    def excess(self, view: View) -> bool:
        """Whether a step still has something to do."""
        return not self.size(view).within(self.goal)
