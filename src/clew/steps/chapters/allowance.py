"""How often a model may be asked: budgets for a compaction and an hour, and a breaker that opens after failures."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

STRIKES = 2  # failures in a row that open the breaker
COOLDOWN = 60.0  # seconds it then stays open, twice as long each time
LONGEST_PAUSE = 3_600.0
HOUR = 3_600.0


def may_ask_own(env: Mapping[str, str]) -> bool:
    """Whether the model of a conversation may be asked to write of it, as far as the environment says."""
    return env.get("CLEW_SUMMARY_MODEL", "").strip() in ("", "own")


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Calls and tokens that summaries may take."""

    calls: int = 12  # of one compaction
    tokens: int = 1_000_000
    hourly_calls: int = 60
    hourly_tokens: int = 3_000_000


@dataclass(slots=True)
class Allowance:
    """What is left of them, kept by the clock of whoever asks."""

    limits: CallLimits = field(default_factory=CallLimits)
    now: Callable[[], float] = time.monotonic
    strikes: int = 0
    _opened: int = 0  # times the breaker opened since the last success
    _until: float = 0.0
    _spent: deque[tuple[float, int]] = field(default_factory=deque)  # when, how many tokens: of the last hour

    def refusal(self, calls: int, tokens: int, more: int) -> str:
        """Why a call of so many tokens may not be made after so many in this compaction; empty if it may."""
        now = self.now()
        if now < self._until:
            return "breaker open"
        while self._spent and self._spent[0][0] <= now - HOUR:
            self._spent.popleft()
        if calls >= self.limits.calls or tokens + more > self.limits.tokens:
            return "budget of the compaction"
        hourly = sum(spent for _, spent in self._spent)
        if len(self._spent) >= self.limits.hourly_calls or hourly + more > self.limits.hourly_tokens:
            return "budget of the hour"
        return ""

    def pause(self, seconds: float = COOLDOWN) -> None:
        """The provider is busy: nobody is asked for a while."""
        self._until = max(self._until, self.now() + seconds)

    def begin(self, tokens: int) -> None:
        """A call is made: it counts, whether an answer comes or not."""
        self._spent.append((self.now(), tokens))

    def succeed(self) -> None:
        """It brought something."""
        self.strikes = self._opened = 0

    def fail(self, strikes: int = 1) -> None:
        """It did not. After some in a row nobody is asked for a while."""
        self.strikes += strikes
        if self.strikes >= STRIKES:
            self._until = self.now() + min(LONGEST_PAUSE, COOLDOWN * 2**self._opened)
            self._opened += 1
            self.strikes = 0
