"""Whether compacting helps, by the provider's own count: after two failures in a row it is left alone."""

from dataclasses import dataclass

STRIKES = 2


@dataclass(slots=True)
class Verdict:
    """What came of the last compactions of a branch."""

    strikes: int = 0
    _before: int = 0  # tokens of the request, had it not been compacted; 0: nothing to judge

    @property
    def paused(self) -> bool:
        """Whether compacting has failed so often that only a full window is a reason to try again."""
        return self.strikes >= STRIKES

    def await_report(self, before: int) -> None:
        """A compaction was made; the next report tells what it brought."""
        self._before = before

    def judge(self, reported: int) -> bool | None:
        """Whether the provider read less than it would have; None if there was nothing to judge."""
        if not self._before:
            return None
        worked, self._before = reported < self._before, 0
        self.strikes = 0 if worked else self.strikes + 1
        return worked
