"""When to compress before the window is full: a switch, a share of the window, or a buffer of tokens."""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as with_
from typing import Any

from clew.budget import Budget, Size

THRESHOLD = 0.7  # of what may be sent
SHARE, BUFFER = "compression_threshold", "buffer_tokens"


@dataclass(frozen=True, slots=True)
class Proactive:
    """Compress above a share of what may be sent, or when fewer tokens than `buffer` are left."""

    share: float = THRESHOLD
    buffer: int | None = None

    def apply(self, budget: Budget) -> Budget:
        """The budget that compacts then."""
        high = self.share
        if self.buffer is not None:
            high = max(0.01, 1 - self.buffer / budget.limit.tokens)
        # As far below as the budget has it: where `low` were `high`, every call would compact, and break the cache.
        return with_(budget, high=high, low=min(budget.low, high * budget.low / budget.high), goal=Size())


def proactive(given: bool | Mapping[str, Any] | None) -> Proactive | None:
    """What a setting means: True is 0.7; None and False are off. Raises `ValueError` for what is out of range."""
    match given:
        case None | False:
            return None
        case True:
            return Proactive()
        case Mapping():
            if unknown := set(given) - {SHARE, BUFFER}:
                raise ValueError(f"unknown {', '.join(sorted(unknown))}: use {SHARE} or {BUFFER}")
            return _read(given)
    raise ValueError(f"expected True, False, None or a mapping with {SHARE} or {BUFFER}, got {given!r}")


def _read(given: Mapping[str, Any]) -> Proactive:
    share, buffer = given.get(SHARE), given.get(BUFFER)
    if share is not None and buffer is not None:
        raise ValueError(f"give {SHARE} or {BUFFER}, not both")
    if buffer is not None:
        if isinstance(buffer, bool) or not isinstance(buffer, int) or buffer <= 0:
            raise ValueError(f"{BUFFER} must be a whole number above 0, got {buffer!r}")
        return Proactive(buffer=buffer)
    share = THRESHOLD if share is None else share
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise ValueError(f"{SHARE} must be above 0 and at most 1, got {share!r}")
    return Proactive(float(share))
