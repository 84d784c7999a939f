"""Whether compacting helps, by the provider's own count: after two failures in a row it is left alone."""

from dataclasses import dataclass

STRIKES = 2
GAIN = 0.05  # of the size: a compaction that gains less is not worth breaking the cache for
AGAIN = 1.05  # times the size at which one was not worth it, and it may be tried again


@dataclass(slots=True)
class Verdict:
    """What came of the last compactions of a branch."""

    strikes: int = 0
    _before: int = 0  # tokens of the request, had it not been compacted; 0: nothing to judge
    _idle: int = 0  # tokens at which the last try gained too little

    @property
    def paused(self) -> bool:
        """Whether compacting has failed so often that only a full window is a reason to try again."""
        return self.strikes >= STRIKES

    def is_worth(self, before: int, after: int) -> bool:
        """Whether a compaction that need not be is one worth having."""
        if after <= before * (1 - GAIN):
            return True
        self._idle = before
        return False

    def is_idle(self, size: int) -> bool:
        """Whether the last try, at about this size, gained too little."""
        return size < AGAIN * self._idle

    def await_report(self, before: int) -> None:
        """A compaction was made; the next report tells what it brought."""
        self._before, self._idle = before, 0

    def judge(self, reported: int) -> bool | None:
        """Whether the provider read less than it would have; None if there was nothing to judge."""
        if not self._before:
            return None
        worked, self._before = reported < self._before, 0
        self.strikes = 0 if worked else self.strikes + 1
        return worked
