"""What a user sets: how much may be sent, when to compact, and how far."""

from dataclasses import dataclass
from typing import NamedTuple

from clew.errors import BadRequest

RESERVE = 8_192  # tokens kept for the answer where nobody says otherwise, or a quarter of a small window
LEAST_RESERVE = 16  # one part in so many of the window: kept for the answer however short answers have been
SMALL = 32_000  # tokens: in a window below that, what is in view counts more than what is paid
MEMORY = 256 << 20  # bytes of branches that were used of late
HIGH = 0.7  # of the room, where nobody says otherwise: `make proof ONLY=cost` shows what it costs
# The same in a window of up to so many tokens: little is in view at all there, and having more of it costs least.
HIGH_NARROW, NARROW = 0.8, 128_000
LOW = 0.2
LOW_SMALL = 0.6  # in a small window, and where nothing is paid for a token; a tenth more, and an undo seldom fits there


class Size(NamedTuple):
    """How big something is, in every dimension that a provider limits."""

    tokens: int = 0
    bytes: int = 0
    images: int = 0
    messages: int = 0

    def plus(self, other: "Size") -> "Size":
        (a, b, c, d), (w, x, y, z) = self, other
        return Size(a + w, b + x, c + y, d + z)

    def less(self, other: "Size") -> "Size":
        (a, b, c, d), (w, x, y, z) = self, other
        return Size(a - w, b - x, c - y, d - z)

    def within(self, other: "Size") -> bool:
        (a, b, c, d), (w, x, y, z) = self, other
        return a <= w and b <= x and c <= y and d <= z


@dataclass(frozen=True)
class Budget:
    """Above `high` of the room, compact, if that pays; stop at `low`, so that the next compaction is far away.

    The room is what the history may take: the window less the reserve, less the frame (system prompt and tools).

    >>> budget = clew.Budget(window=8_000, reserve=1_000)
    >>> budget.window - budget.kept_free()  # tokens that a request may take
    7000
    """

    window: int  # tokens that the model reads and writes in one call
    reserve: int | None = (
        None  # for the answer; by default 8,192 tokens, a quarter of a small window, or what they take
    )
    # Of the room: compact above it, whether that pays or not; by default, and if that pays, 0.7, and 0.8 in a window
    # of up to 128,000.
    high: float | None = None
    low: float | None = None  # of the room: what a compaction goes down to; by default 0.2, or 0.6 of a small window
    bytes: int = 30_000_000  # of a request, at most
    images: int = 100  # in a request, at most
    messages: int = 100_000  # in a request, at most
    tail: int = 20_000  # tokens at the end that stay as they are, while they are a quarter of the goal at most
    start: int | None = None  # tokens of history: compact above these, too, whichever comes first
    done: float | None = None  # of the room: compact above it, too, when the last task of the agent's list is done
    model: str = ""  # whose window it is
    paid: bool = True  # False: nothing is paid for a token, and what is in view counts more

    def __post_init__(self) -> None:
        free = self.kept_free()
        if self.window <= 0 or not 0 <= free < self.window:
            raise BadRequest(f"reserve {free:,} must be at least 0 and less than the window {self.window:,}")
        if not 0 < self.lower <= self.upper <= 1:
            raise BadRequest(f"0 < low <= high <= 1 must hold; low is {self.lower}, high is {self.upper}")
        if self.done is not None and not 0 < self.done <= 1:
            raise BadRequest(f"done must be above 0 and at most 1, or None; it is {self.done}")
        if min(self.bytes, self.images, self.messages, self.tail) < 0:
            raise BadRequest("bytes, images, messages and tail must be at least 0")
        if self.start is not None and self.start < 1:
            raise BadRequest("start must be at least 1, or None")

    @property
    def upper(self) -> float:
        """Of the room: where compaction starts."""
        if self.high is not None:
            return self.high
        return HIGH_NARROW if self.is_small or self.window <= NARROW else HIGH

    @property
    def lower(self) -> float:
        """Of the room: where compaction stops."""
        if self.low is not None:
            return self.low
        return LOW_SMALL * self.usual / HIGH_NARROW if self.is_small else min(LOW, self.upper)

    @property
    def usual(self) -> float:
        """The `high` that `low` goes with: who compacts sooner stops sooner, too."""
        return min(self.upper, HIGH_NARROW if self.is_small else HIGH)

    @property
    def is_small(self) -> bool:
        """Whether what is in view counts more than what is paid for it."""
        return self.is_narrow or not self.paid

    @property
    def is_narrow(self) -> bool:
        """Whether so little is in view that every word counts more than a prefix in a cache."""
        return self.window < SMALL

    def kept_free(self, answer: int = 0, frame: int = 0, taken: int | None = None) -> int:
        """Tokens for the answer: the user's word, else what answers have `taken`, else 8,192 or a quarter of a small
        window.

        Where a provider adds the longest `answer` to what it reads, that is kept, up to half of the window, and only
        while a third of the room stays: who asks for more than is left beside its frame is either not held to it or
        refused whatever is sent.
        """
        if self.reserve is not None:
            return self.reserve
        plain = min(RESERVE, self.window // 4)
        asked = min(answer, self.window // 2)
        if not asked and taken is not None:
            return min(max(taken, min(plain, self.window // LEAST_RESERVE)), self.window // 2)
        room = self.window - frame
        return asked if asked > plain and 3 * (room - asked) >= room - plain else plain
