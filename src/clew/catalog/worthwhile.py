"""When a compaction is worth its price, and how deep it goes: arithmetic over a forecast, no I/O.

A provider reads again what it was sent before for `r` a token, and writes what is new for `w`. A compaction that
leaves `front` tokens alone and ends at `goal` has all between them written anew: `K = (goal - front)(w - r)`, and what
a model takes that writes a summary. Then the request grows by `g` a turn, and every turn reads what is there. Up to the
goal nothing can be saved. Beyond it, `G` tokens of growth, cut into `n` equal parts by `n - 1` compactions, cost

    (n - 1) K  +  r G² / 2 g n        which is least where a part is  A = √(2 g K / r)

tokens: the old formula for stocks, where ordering is a compaction and storing is reading. So an act is due once the
view has outgrown its goal by a part, which is A as nearly as whole parts fill the turns ahead; and never, where it
would not earn what it costs. Nobody knows how long a session lasts: as long again as it has lasted so far.

A cache that has gone cold is written anew whatever is done: then less to write is money saved at once.

Dollars alone would always go deeper, for forgetting has no price here. `Terms.keep` bounds the depth, by measurement.
"""

from collections.abc import Iterator, Mapping
from math import ceil, sqrt
from typing import Literal, NamedTuple

from clew.catalog import Prices
from clew.catalog.cost import cost
from clew.catalog.usage import Spent

Act = Literal["nothing", "stub", "fold"]

KEEP = 50_000  # tokens: with less in view, more is missing than where others compact; see docs/benchmark.md

# Where prices are not known, those of most providers today, in units of what a million plain tokens cost.
TYPICAL = Prices(input=1, output=5, cache_read=0.1, cache_write=1.25)


class Reach(NamedTuple):
    """Where an act would lead, by estimate."""

    goal: int  # tokens of the request after it
    front: int  # tokens before the first edit: the provider has them in its cache
    spent: Spent = Spent(0)  # what a model takes that writes the summary


class Outlook(NamedTuple):
    """A session as it stands before a call."""

    size: int  # tokens of the request
    turns: int  # calls so far
    growth: float  # tokens a turn
    stub: Reach | None = None  # old results to lines, if there are any
    fold: Reach | None = None  # all that is old to a summary
    idle: float = 0  # seconds since the last call


class Terms(NamedTuple):
    """What is asked of a compaction."""

    limit: int  # tokens that may be sent
    high: float = 0.7  # of the room: above, something is done whatever it costs
    low: float = 0.5  # of the room: down to here then, should nothing better be known
    keep: int = KEEP  # tokens: no goal is lower for the sake of dollars
    least: float = 0.2  # of the request: what would free less is not worth what is forgotten
    ttl: float = 300  # seconds that a provider's cache lasts
    frame: int = 0  # tokens of each request that nobody can compact; the room is the rest

    @property
    def most(self) -> int:
        """Tokens of a request above which something is done."""
        return self.frame + int(self.high * max(0, self.limit - self.frame))

    @property
    def goal(self) -> int:
        """Tokens of a request after that."""
        return self.frame + int(self.low * max(0, self.limit - self.frame))

    @property
    def floor(self) -> int:
        """The least tokens to aim for."""
        return min(self.keep, self.goal)


class Plan(NamedTuple):
    """What to do now, down to how many tokens, and the dollars of each choice over the turns expected."""

    act: Act
    goal: int
    predicted: Mapping[Act, float]


class _Choice(NamedTuple):
    """An act, and its dollars if done now or put off."""

    act: Act
    goal: int
    now: float
    later: float


SHORTEST, LONGEST = 8, 400  # turns that are expected at least and at most


def plan(outlook: Outlook, prices: Prices | None, terms: Terms) -> Plan:
    """What is worth doing before this call; never nothing where the request would be above `high` of the limit."""
    prices = prices or TYPICAL
    most = terms.most
    choices = list(_choices(outlook, prices, terms))
    # Stubs forget more than a fold of as many tokens, and soon run out: they are for where a fold takes a model.
    by_code = outlook.fold is not None and not outlook.fold.spent.input
    allowed = [choice for choice in choices if choice.act == "fold" or not by_code]
    if outlook.size > most:
        due = [choice for choice in allowed if choice.goal <= most]
    else:
        due = [choice for choice in allowed if choice.now < choice.later]
    predicted: dict[Act, float] = {choice.act: choice.now for choice in choices}
    if due:
        best = min(due, key=lambda choice: choice.now)
        return Plan(best.act, best.goal, {"nothing": best.later, **predicted})
    later = min((choice.later for choice in allowed), default=_unbroken(outlook, prices))
    if outlook.size > most:
        return Plan("fold", terms.goal, {"nothing": later, **predicted})
    return Plan("nothing", outlook.size, {"nothing": later, **predicted})


def ahead(turns: int) -> int:
    """How many turns to expect after so many."""
    return min(max(turns, SHORTEST), LONGEST)


def _choices(outlook: Outlook, prices: Prices, terms: Terms) -> Iterator[_Choice]:
    """What can be done, raised to the goal that is allowed, unless it frees too little."""
    reaches: tuple[tuple[Act, Reach | None], ...] = (("stub", outlook.stub), ("fold", outlook.fold))
    for act, reach in reaches:
        if reach is None:
            continue
        goal = max(reach.goal, terms.floor, 1)
        if outlook.size - goal >= max(1, terms.least * outlook.size):
            yield _priced(act, reach._replace(goal=goal), outlook, prices, terms)


def _priced(act: Act, reach: Reach, outlook: Outlook, prices: Prices, terms: Terms) -> _Choice:
    """The dollars of an act over the turns expected: done now, and put off until it is due or no longer pays."""
    turns, growth, over = ahead(outlook.turns), max(outlook.growth, 1.0), outlook.size - reach.goal
    whole = over + growth * turns
    room = max(terms.most - reach.goal, 1.0)  # grown beyond it, a compaction comes anyway
    warm = outlook.idle < terms.ttl

    low = _rates(prices, reach.goal)
    again = (reach.goal - min(reach.front, reach.goal)) * low.rewrite + cost(prices, reach.spent)
    once = again if warm else reach.goal * low.rewrite + cost(prices, reach.spent)
    fewest = max(1, ceil(growth * turns / room))
    held = _held(growth * turns, growth, again, low.read, fewest, max(fewest, turns))
    now = once + low.read * reach.goal * turns + held

    high = _rates(prices, outlook.size)
    fewest = max(1, ceil(whole / room))
    most = max(1, ceil(whole / over) - 1)  # with more parts than this, the first one is over already
    held = _held(whole, growth, again, high.read, min(fewest, most), min(most, turns))
    past = high.read * over * over / (2 * growth)  # read before this turn
    later = high.read * reach.goal * turns + held - past + (0 if warm else outlook.size * high.rewrite)
    return _Choice(act, reach.goal, now, later)


def _held(whole: float, growth: float, again: float, read: float, fewest: int, most: int) -> float:
    """The least dollars for so much growth: reading it and cutting it into parts, of which there are some bounds."""
    best = whole * sqrt(read / (2 * growth * again)) if again > 0 else most
    parts = {min(max(n, fewest), most) for n in (int(best), int(best) + 1)}
    return min((n - 1) * again + read * whole * whole / (2 * growth * n) for n in parts)


class _Rates(NamedTuple):
    """Dollars a token of requests of one size; `rewrite` is what writing costs more than reading."""

    read: float
    rewrite: float


def _rates(prices: Prices, size: int) -> _Rates:
    read, written = (cost(prices, Spent(size, 0, *parts)) / size for parts in ((size, 0), (0, size)))
    return _Rates(read, max(0.0, written - read))


def _unbroken(outlook: Outlook, prices: Prices) -> float:
    """The dollars of reading all there is and will be, with no compaction."""
    turns = ahead(outlook.turns)
    return _rates(prices, max(1, outlook.size)).read * turns * (outlook.size + outlook.growth * turns / 2)
