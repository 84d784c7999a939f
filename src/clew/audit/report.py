"""What an audit found, in all, and as JSON.

The shape of the JSON is stable: keys are added, none is renamed or taken away while `version` stays the same.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.audit.compactions import CompactionAudit, KindCount
from clew.audit.kinds import FACT_KINDS, FactKind
from clew.audit.lookups import LOOKUP_KINDS, LookupKind

REPORT_VERSION = 1


@dataclass(frozen=True, slots=True)
class FileAudit:
    """What one file came to."""

    file: str
    bytes: int
    sessions: int = 0  # 0: it is no session file
    compactions: Sequence[CompactionAudit] = ()
    fault: str = ""  # why it could not be read


@dataclass(frozen=True, slots=True)
class AuditTotals:
    """All compactions added up."""

    compactions: int
    unreadable: int  # of them
    sessions: int  # in which they were made
    kinds: Mapping[FactKind, KindCount]
    again: Mapping[LookupKind, int]
    again_tokens: int
    cost: float
    unpriced_tokens: int  # of the former, of models whose price is not known

    @staticmethod
    def of(found: Sequence[CompactionAudit]) -> "AuditTotals":
        kinds = {kind: KindCount() for kind in FACT_KINDS}
        again = Counter[LookupKind]()
        for one in found:
            kinds |= {kind: kinds[kind].plus(count) for kind, count in one.kinds.items()}
            again.update(one.again)
        return AuditTotals(
            len(found),
            sum(not one.readable for one in found),
            len({(one.agent, one.session) for one in found}),
            kinds,
            {kind: again[kind] for kind in LOOKUP_KINDS},
            sum(one.again_tokens for one in found),
            sum(one.cost or 0.0 for one in found),
            sum(one.again_tokens for one in found if one.cost is None),
        )


@dataclass(frozen=True, slots=True)
class AuditReport:
    """All that was read, and all that was found in it."""

    looked: Sequence[str]  # the folders and files that were looked into
    files: Sequence[FileAudit]
    compactions: Sequence[CompactionAudit] = field(default=())  # each once, the oldest first
    repeated: int = 0  # in copies of sessions: these are not counted

    @staticmethod
    def of(looked: Sequence[str], files: Iterable[FileAudit]) -> "AuditReport":
        every = sorted(files, key=lambda one: one.file)
        known: dict[tuple[str, ...], CompactionAudit] = {}
        count = 0
        for one in (one for file in every for one in file.compactions):
            count += 1
            # A resumed or forked session may begin with all of another file: what it kept and lost is one story.
            same = (one.digest,) if one.readable else (one.agent, one.session, f"{one.number}", one.at, one.digest)
            known.setdefault(same, one)
        found = sorted(known.values(), key=lambda one: (one.at, one.agent, one.session, one.number))
        return AuditReport(looked, every, found, count - len(found))

    @property
    def sessions(self) -> int:
        return sum(file.sessions for file in self.files)

    @property
    def faults(self) -> list[FileAudit]:
        """The files that could not be read."""
        return [file for file in self.files if file.fault]

    @property
    def totals(self) -> AuditTotals:
        return AuditTotals.of(self.compactions)

    def as_json(self) -> dict[str, Any]:
        """For programs; what was lost and looked up again is there if it was asked for."""
        totals = self.totals
        return {
            "version": REPORT_VERSION,
            "looked_in": list(self.looked),
            "files": len(self.files),
            "bytes": sum(file.bytes for file in self.files),
            "sessions": self.sessions,
            "skipped": [{"file": file.file, "why": file.fault} for file in self.faults],
            "repeated": self.repeated,
            "totals": {
                "compactions": totals.compactions,
                "unreadable": totals.unreadable,
                "sessions": totals.sessions,
                **_figures(totals.kinds, totals.again, totals.again_tokens, totals.cost),
                "unpriced_tokens": totals.unpriced_tokens,
            },
            "compactions": [row_of(one) for one in self.compactions],
        }


def _figures(
    kinds: Mapping[FactKind, KindCount], again: Mapping[LookupKind, int], tokens: int, cost: float | None
) -> dict[str, Any]:
    facts = {
        kind: {"before": count.before, "kept": count.kept, "needed_again": count.needed}
        for kind, count in kinds.items()
    }
    looked = {kind: again.get(kind, 0) for kind in LOOKUP_KINDS}
    return {"facts": facts, "looked_up_again": looked | {"tokens": tokens, "dollars": cost}}


def row_of(one: CompactionAudit) -> dict[str, Any]:
    """One compaction, for programs."""
    row: dict[str, Any] = {
        "agent": one.agent,
        "session": one.session,
        "number": one.number,
        "model": one.model,
        "at": one.at,
        "trigger": one.trigger,
        "tokens_before": one.tokens_before,
        "tokens_after": one.tokens_after,
        "readable": one.readable,
        **_figures(one.kinds, one.again, one.again_tokens, one.cost),
    }
    if one.lost or one.looked_up:
        row["lost"] = {kind: list(texts) for kind, texts in one.lost.items()}
        row["looked_up"] = [{"kind": kind, "what": what} for kind, what in one.looked_up]
    return row
