"""How long the answers of models are, by what they reported: so much of a window is kept free for the next one."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil, log2
from typing import Any, Self

from clew.core.caches import Recent
from clew.core.items import Scope
from clew.store.protocol import Store
from clew.store.records import NamedValue

KIND = "answers"  # under which the store keeps it
ENOUGH = 20  # answers before their lengths are believed
QUANTILE = 0.99  # of the answers are no longer; the rest may be cut by their provider, if they come to a full window
SPARE = 1.25  # times that length: what was never longer may be
PER_DOUBLING = 4  # sizes that are told apart
FADING = 500  # answers, after which all that was counted counts half
TAUGHT = 1_000  # models, in their scopes, of which this is remembered
OFTEN = 8  # answers from one writing to the next
AGE = 24 * 60 * 60  # seconds for which a refusal counts


@dataclass
class AnswerLengths:
    """What the answers of one model at one upstream took."""

    counts: dict[int, float] = field(default_factory=dict)  # by the logarithm of their tokens
    refused: int = 0  # when what did not fit beside the longest answer was refused, in seconds

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        counts = {int(size): float(count) for size, count in kept.get("counts", {}).items()}
        return cls(counts, int(kept.get("refused", 0)))

    def to_json(self) -> dict[str, Any]:
        return {"counts": {str(size): round(n, 2) for size, n in self.counts.items()}, "refused": self.refused}

    def add(self, tokens: int) -> None:
        """Count an answer."""
        if sum(self.counts.values()) >= FADING:
            self.counts = {size: count / 2 for size, count in self.counts.items() if count > 0.05}
        size = ceil(PER_DOUBLING * log2(max(1, tokens)))
        self.counts[size] = self.counts.get(size, 0.0) + 1

    def longest(self) -> int | None:
        """The tokens that hardly any answer exceeds; None while too few are known."""
        left = sum(self.counts.values())
        if left < ENOUGH:
            return None
        beyond = (1 - QUANTILE) * left
        for size in sorted(self.counts, reverse=True):
            beyond -= self.counts[size]
            if beyond < 0:
                return int(SPARE * 2 ** (size / PER_DOUBLING))
        return None


class KnownAnswers:
    """The same of all models that one engine talks to."""

    def __init__(self, store: Store, now: Callable[[], float] = time.time) -> None:
        self._store, self._now = store, now
        self._known = Recent[tuple[Scope, str], AnswerLengths](TAUGHT)
        self._since = Recent[tuple[Scope, str], int](TAUGHT)

    async def room(self, scope: Scope, place: str, asked: int) -> tuple[int, int | None]:
        """What of the tokens that a request asks for its provider adds to what it reads, and what answers take."""
        known = await self._of(scope, place)
        if self._now() - known.refused < AGE:
            return asked, None
        longest = known.longest()
        return 0, longest and min(longest, asked or longest)

    async def took(self, scope: Scope, place: str, tokens: int) -> list[NamedValue]:
        """Learn from an answer; what is to be written down."""
        if tokens <= 0:
            return []
        known = await self._of(scope, place)
        known.add(tokens)
        since = self._since[scope, place] = self._since.get((scope, place), 0) + 1
        return [(KIND, place, known.to_json())] if since % OFTEN == 0 else []

    async def refused(self, scope: Scope, place: str) -> None:
        """A provider refused what would have fitted beside a shorter answer than was asked for."""
        known = await self._of(scope, place)
        known.refused = int(self._now())
        await self._store.learn(scope, KIND, place, known.to_json())

    async def _of(self, scope: Scope, place: str) -> AnswerLengths:
        if (scope, place) not in self._known:
            kept = (await self._store.learned(scope, KIND)).get(place, {})
            self._known[scope, place] = AnswerLengths.from_json(kept)
        return self._known[scope, place]
