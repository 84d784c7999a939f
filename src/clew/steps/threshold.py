"""When to compress before the window is full: a switch, a share of the room, or a buffer of tokens."""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as with_
from typing import Any

from clew.errors import BadRequest
from clew.tokens.target import Target

DEFAULT_SHARE = 0.7  # of the room
LEAST_SHARE, MOST_SHARE = 0.3, 0.95  # of the room, whatever a share of the window comes to
SHARE_KEY, BUFFER_KEY = "compression_threshold", "buffer_tokens"


@dataclass(frozen=True, slots=True)
class Threshold:
    """Compress above a share of the room, or when fewer tokens than `buffer` are left of it."""

    share: float = DEFAULT_SHARE
    buffer: int | None = None

    def apply(self, target: Target) -> Target:
        """The target that compacts then."""
        high = self.share if self.buffer is None else max(0.01, 1 - self.buffer / max(1, target.room))
        return _above(high, target)


@dataclass(frozen=True, slots=True)
class OfWindow(Threshold):
    """As hosts mean it that know no frame and no reserve: a share of the window, or fewer tokens left of it.

    It never comes so late that the request would be refused, nor so early that each call would compress.
    """

    def apply(self, target: Target) -> Target:
        """The target that compacts then."""
        return _above(min(max(self._wished(target), LEAST_SHARE), MOST_SHARE), target)

    def moved(self, target: Target) -> str:
        """What was asked for, what holds instead, and why; nothing, where it holds as it was asked for."""
        wished, holds = self._wished(target), self.apply(target).threshold
        if LEAST_SHARE <= wished <= MOST_SHARE:
            return ""
        why = f"{target.kept_free:,} are kept free for the answer, and what just fits may be refused"
        if wished < LEAST_SHARE:
            why = f"system prompt and tools take {target.frame:,}, and nearly every call would compress"
        asked = f"{SHARE_KEY} {self.share:g}" if self.buffer is None else f"{BUFFER_KEY} {self.buffer:,}"
        wanted = f"{asked} in a window of {target.window:,} tokens means above {self._above(target):,}"
        return f"{wanted}, but clew compresses above {holds:,}: {why}"

    def _above(self, target: Target) -> int:
        return int(self.share * target.window) if self.buffer is None else target.window - self.buffer

    def _wished(self, target: Target) -> float:
        return (self._above(target) - target.frame) / max(1, target.room)


def _above(high: float, target: Target) -> Target:
    """A target that starts there, and stops as far below as it would have."""
    low = min(high, high * target.budget.lower / target.budget.usual)
    return target.under(with_(target.budget, high=high, low=low))


def of_window(given: bool | Mapping[str, Any] | None) -> OfWindow | None:
    """What a setting means to a host that speaks of the window. Raises `BadRequest` for what is out of range."""
    found = threshold(given)
    return None if found is None else OfWindow(found.share, found.buffer)


def threshold(given: bool | Mapping[str, Any] | Threshold | None) -> Threshold | None:
    """What a setting means: True is 0.7; None and False are off. Raises `BadRequest` for what is out of range."""
    match given:
        case Threshold():
            return given
        case None | False:
            return None
        case True:
            return Threshold()
        case Mapping():
            if unknown := set(given) - {SHARE_KEY, BUFFER_KEY}:
                raise BadRequest(f"unknown {', '.join(sorted(unknown))}: use {SHARE_KEY} or {BUFFER_KEY}")
            return _read(given)
    raise BadRequest(f"expected True, False, None or a mapping with {SHARE_KEY} or {BUFFER_KEY}, got {given!r}")


def _read(given: Mapping[str, Any]) -> Threshold:
    share, buffer = given.get(SHARE_KEY), given.get(BUFFER_KEY)
    if share is not None and buffer is not None:
        raise BadRequest(f"give {SHARE_KEY} or {BUFFER_KEY}, not both")
    if buffer is not None:
        if isinstance(buffer, bool) or not isinstance(buffer, int) or buffer <= 0:
            raise BadRequest(f"{BUFFER_KEY} must be a whole number above 0, got {buffer!r}")
        return Threshold(buffer=buffer)
    share = DEFAULT_SHARE if share is None else share
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise BadRequest(f"{SHARE_KEY} must be above 0 and at most 1, got {share!r}")
    return Threshold(float(share))
