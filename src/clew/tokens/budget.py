"""How much may be sent: tokens, bytes, images and messages, with room kept for the answer."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from dataclasses import replace as with_
from typing import NamedTuple, Self

from clew.core import rawjson
from clew.core.items import SHORT, Frame, Item, Node
from clew.core.view import View
from clew.errors import BadRequest
from clew.tokens import Counter, counter_for
from clew.tokens.calibration import Traits, traits


class Size(NamedTuple):
    """How big something is, in every dimension that a provider limits."""

    tokens: int = 0
    bytes: int = 0
    images: int = 0
    messages: int = 0

    def plus(self, other: "Size") -> "Size":
        return Size(*(a + b for a, b in zip(self, other, strict=True)))

    def less(self, other: "Size") -> "Size":
        return Size(*(a - b for a, b in zip(self, other, strict=True)))

    def within(self, other: "Size") -> bool:
        return all(a <= b for a, b in zip(self, other, strict=True))


LEAST = 0.15  # of the room: with less growth since the last one, a compaction would break the cache for little
# An id in a stand-in is random, and so is how many tokens it takes: each is counted as one of the longest, or the same
# history would be folded otherwise in another store.
_ID = re.compile(rf"(?<![0-9a-zA-Z])[0-9a-f]{{{SHORT}}}(?![0-9a-zA-Z])")
_LONGEST = "0a1b2c3d4e5f"[:SHORT]
_NAMED = "recall "  # stands in every text that names an id

_CACHED = 500_000  # sizes kept before the cache starts anew


class Meter:
    """Measures items, once per content."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self._sizes: dict[tuple[str, bool], tuple[Size, Traits]] = {}
        self._frame: tuple[Frame, Size, Traits] | None = None

    def node(self, node: Node) -> Size:
        return self._measured(node)[0]

    def _measured(self, node: Node) -> tuple[Size, Traits]:
        # Equal content may open a message here and continue one there.
        key = node.content, node.item.opens is None
        found = self._sizes.get(key)
        if found is None:
            if len(self._sizes) >= _CACHED:
                self._sizes.clear()
            size = self.item(node.item)
            found = self._sizes[key] = size, traits(node.item.name + _steady(node.item.text), size.tokens)
        return found

    def item(self, item: Item) -> Size:
        weight = len(rawjson.dumps(item.text if item.wire is None else item.wire)) + len(item.name) + 80
        if item.opens is not None and len(item.opens.keys) > 1:
            weight += len(rawjson.dumps(item.opens.keys))
        # A result is a message of its own in some formats; a stand-in may be: count both as if.
        message = int(item.opens is not None or item.kind in ("result", "summary"))
        if (text := _steady(item.text)) is not item.text:
            item = with_(item, text=text)
        return Size(self.counter.item(item), weight, self.counter.images(item), message)

    def items(self, items: Iterable[Item]) -> Size:
        return _sum(map(self.item, items))

    def nodes(self, nodes: Iterable[Node]) -> Size:
        return _sum(map(self.node, nodes))

    def frame(self, frame: Frame) -> Size:
        return self._framed(frame)[1]

    def traits(self, nodes: Iterable[Node]) -> Traits:
        """What decides how many tokens these nodes are by another count."""
        return Traits(*map(sum, zip(Traits(), *(self._measured(n)[1] for n in nodes), strict=True)))

    def frame_traits(self, frame: Frame) -> Traits:
        return self._framed(frame)[2]

    def _framed(self, frame: Frame) -> tuple[Frame, Size, Traits]:
        if self._frame is None or self._frame[0] != frame:
            weight = len(rawjson.dumps([frame.lead, frame.body]))
            size = Size(self.counter.frame(frame), weight, 0, len(frame.lead))
            text = frame.system + rawjson.dumps(frame.tools).decode()
            self._frame = frame, size, traits(text, size.tokens)
        return self._frame


def _steady(text: str) -> str:
    return _ID.sub(_LONGEST, text) if _NAMED in text else text


def _sum(sizes: Iterable[Size]) -> Size:
    tokens = weight = images = messages = 0
    for size in sizes:
        tokens += size.tokens
        weight += size.bytes
        images += size.images
        messages += size.messages
    return Size(tokens, weight, images, messages)


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


@dataclass(frozen=True)
class Budget:
    """Above `high` of the room, compact; stop at `low`, so that the next cut is far away.

    The room is what the history may take: the window less the reserve, less the frame (system prompt and tools).
    """

    window: int
    reserve: int | None = None  # for the answer; by default 8,192 tokens, or a quarter of a small window, or `answer`
    high: float = 0.7
    low: float = 0.5
    bytes: int = 30_000_000
    images: int = 100
    messages: int = 100_000
    tail: int = 20_000  # tokens at the end that stay as they are, while they are a quarter of the goal at most
    start: int | None = None  # tokens of history: compact above these, too, whichever comes first
    keep: int | None = None  # tokens: where it saves money, compact before `high`, down to these and no deeper
    growth: int | None = None  # tokens: compact once a request has grown by so many, whatever else is in it
    done: float | None = None  # of the room: compact above it, too, when the last task of the agent's list is done
    model: str = ""
    meter: Meter = field(repr=False, compare=False, default=None)  # type: ignore[assignment]  # made below
    frame: int = field(repr=False, default=0)  # tokens of system prompt and tools; set by `around`
    answer: int = field(repr=False, default=0)  # tokens that a request asks for and its provider adds to what it reads
    goal: Size = field(repr=False, default=Size())  # where steps stop; set by `aim`

    def __post_init__(self) -> None:
        if self.meter is None:
            object.__setattr__(self, "meter", Meter(counter_for(self.model)))
        if self.window <= 0 or not 0 <= self.kept_free < self.window:
            raise BadRequest(f"reserve {self.kept_free:,} must be at least 0 and less than the window {self.window:,}")
        if not 0 < self.low <= self.high <= 1:
            raise BadRequest(f"0 < low <= high <= 1 must hold; low is {self.low}, high is {self.high}")
        if self.done is not None and not 0 < self.done <= 1:
            raise BadRequest(f"done must be above 0 and at most 1, or nothing; it is {self.done}")
        if min(self.bytes, self.images, self.messages, self.tail) < 0:
            raise BadRequest("bytes, images, messages and tail must be at least 0")
        if min(1 if most is None else most for most in (self.start, self.keep, self.growth)) < 1:
            raise BadRequest("start, keep and growth must be at least 1, or nothing")
        if self.goal == Size():
            object.__setattr__(self, "goal", self.limit._replace(tokens=self._low))

    @property
    def kept_free(self) -> int:
        """Tokens for the answer: the user's word, else 8,192 or a quarter of a small window, else what is asked for.

        What is asked for counts up to half of the window, and only while a third of the room stays: who asks for more
        than is left beside its frame is either not held to it or refused whatever is sent.
        """
        if self.reserve is not None:
            return self.reserve
        plain = min(8_192, self.window // 4)
        asked = min(self.answer, self.window // 2)
        room = self.window - self.frame
        return asked if asked > plain and 3 * (room - asked) >= room - plain else plain

    @property
    def limit(self) -> Size:
        """What may never be exceeded."""
        return Size(self.window - self.kept_free, self.bytes, self.images, self.messages)

    @property
    def room(self) -> int:
        """Tokens that the history may take."""
        return max(0, self.limit.tokens - self.frame)

    @property
    def share(self) -> float:
        """Of the room: where compaction starts, by `high` or by `start`."""
        return self.high if self.start is None else min(self.high, self.start / max(1, self.room))

    @property
    def threshold(self) -> int:
        """Tokens of a request above which it is compacted."""
        return self.frame + int(self.share * self.room)

    @property
    def least(self) -> int:
        """Tokens by which a history grows at least from one compaction to the next, while all of it fits."""
        return int(LEAST * self.room * self.share / self.high)

    @property
    def _low(self) -> int:
        """Tokens of a request down to which it is compacted: `low`, in proportion where `start` comes before `high`."""
        return self.frame + int(self.low * self.room * self.share / self.high)

    def around(self, frame: Frame) -> Self:
        """This budget for requests that have this frame, which nobody can compact."""
        return with_(self, frame=self.meter.frame(frame).tokens, goal=Size())

    def at(self, rate: float) -> Self:
        """This budget in units of which one is `rate` tokens: what steps count may not be what the provider counts."""
        if rate == 1:
            return self
        window = max(1, int(self.window / rate))
        start = None if self.start is None else max(1, int(self.start / rate))
        return with_(self, window=window, reserve=min(int(self.kept_free / rate), window - 1), start=start, goal=Size())

    def size(self, view: View) -> Size:
        """How big the whole request is."""
        return self.meter.frame(view.frame).plus(self.meter.nodes(view.nodes))

    def filled(self, tokens: int, rate: float = 1) -> Filled:
        """How full the window is with a request of so many tokens, of which one is `rate` of the provider's."""
        sent, limit, frame = round(tokens * rate), self.limit.tokens, round(self.frame * rate)
        return Filled(max(0, sent - frame), max(0, limit - frame), max(0, limit - sent), self.window)

    def exceeded(self, size: Size) -> bool:
        """Whether it is time to compact."""
        return not size.within(self.limit._replace(tokens=self.threshold))

    def aim(self, size: Size) -> Self:
        """The budget for one compaction: down to `low` in each dimension that is over."""
        start = self.limit._replace(tokens=self.threshold)
        low = Size(*(int(self.low * part) for part in self.limit))._replace(tokens=self._low)
        goal = Size(
            *(
                least if have > begin else limit
                for have, begin, least, limit in zip(size, start, low, self.limit, strict=True)
            )
        )
        return with_(self, goal=goal)

    def excess(self, view: View) -> bool:
        """Whether a step still has something to do."""
        return not self.size(view).within(self.goal)
