"""What a call was thought to cost, and what it did."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from clew.catalog import Prices
from clew.catalog.cost import cost
from clew.catalog.usage import Spent
from clew.store.records import Call


class CallBill(NamedTuple):
    """A call in tokens and US dollars; None where nothing was reported, or no price is known."""

    number: int  # among the calls of its conversation, from 1
    model: str
    tokens: int
    input: int | None
    cached: int
    cache_read: int | None
    estimated: float | None  # of the prompt
    cost: float | None  # of prompt and answer
    shadow: Mapping[str, Any] | None
    limit: int  # tokens that were allowed
    window: int  # 0: an older version wrote it

    @classmethod
    def of(cls, number: int, call: Call, prices: Prices | None) -> "CallBill":
        """The bill of a call at these prices."""
        thought = Spent(call.predicted, 0, call.cached, call.predicted - call.cached)
        real = Spent(**call.usage) if call.usage else None
        return cls(
            number,
            call.model,
            call.predicted,
            real.input if real else None,
            call.cached,
            real.cache_read if real else None,
            cost(prices, thought) if prices else None,
            cost(prices, real) if prices and real else None,
            call.shadow,
            call.limit,
            call.window,
        )
