"""What all sessions came to, way by way, and which settings follow from that.

The shape of the JSON is stable: keys are added, none is renamed or taken away while `version` stays the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from clew.lab.act import AS_IT_WAS, EVERYTHING, LabWay

VERSION = 1
LabRecord = Mapping[str, Any]


@dataclass(slots=True)
class WayTotals:
    """Sums over sessions that were kept small in one way."""

    name: str
    sessions: int = 0
    calls: int = 0
    sent: int = 0  # tokens of prompts
    dollars: float = 0.0
    compactions: int = 0
    client: int = 0  # compactions by its client
    too_large: int = 0  # calls that would not have fitted
    again: int = 0  # files and commands that showed once more what was out of view
    again_tokens: int = 0
    needed: int = 0  # files and commands that a later call used and no summary told
    facts: int = 0
    kept: int = 0

    def add(self, row: LabRecord) -> None:
        """One more session."""
        self.sessions += 1
        for key in (one.name for one in fields(self) if one.name not in ("name", "sessions")):
            setattr(self, key, getattr(self, key) + (row[key] or 0))

    @property
    def missing(self) -> int:
        """How often a call had to have what was out of view."""
        return self.again + self.needed

    @property
    def worth(self) -> float:
        """Dollars, with one more call like the others for each time that something was missing."""
        return self.dollars * (1 + self.missing / max(1, self.calls))


@dataclass(frozen=True, slots=True)
class LabReport:
    """All that was replayed."""

    looked: Sequence[str]
    records: Sequence[LabRecord]
    ways: Sequence[LabWay]  # the first has the settings that hold now
    failures: Sequence[Mapping[str, str]] = ()

    @property
    def overflowing(self) -> int:
        """Sessions that are larger than their window."""
        return sum(record["tokens"] > record["window"] for record in self.records)

    @property
    def unpriced(self) -> int:
        """Sessions of a model whose price is not known."""
        return sum(not record["priced"] for record in self.records)

    def totals(self) -> list[WayTotals]:
        """Each way over the sessions that have a price; of a client that is not known, as it was."""
        names = dict.fromkeys(name for record in self.records for name in record["ways"])
        found = {name: WayTotals(name) for name in names}
        for record in self.records:
            for name, sums in found.items():
                if record["priced"]:
                    sums.add(record["ways"].get(name, record["ways"][AS_IT_WAS]))
        return list(found.values())

    def chosen(self) -> LabWay | None:
        """The settings under which the same work would have cost least, with what is looked up again."""
        sums = {one.name: one for one in self.totals()}
        ways = [way for way in self.ways if way.name in sums]
        return min(ways, key=lambda way: sums[way.name].worth, default=None) if self._differ(sums) else None

    def _differ(self, sums: Mapping[str, WayTotals]) -> bool:
        """Whether anything was compacted at all."""
        return any(sums[way.name].compactions for way in self.ways if way.name in sums)

    def commands(self) -> list[str]:
        """What sets the settings that are chosen; nothing where they hold already."""
        way = self.chosen()
        if way is None:
            return []
        now = self.ways[0].bounds
        return [f"clew config set budget.{key} {value:g}" for key, value in way.bounds.items() if value != now.get(key)]

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        way = self.chosen()
        return {
            "version": VERSION,
            "looked_in": list(self.looked),
            "sessions": len(self.records),
            "overflowing": self.overflowing,
            "unpriced": self.unpriced,
            "skipped": [dict(one) for one in self.failures],
            "ways": [
                {one.name: getattr(sums, one.name) for one in fields(sums)} | {"worth": sums.worth}
                for sums in self.totals()
            ],
            "chosen": way and {"name": way.name, "settings": dict(way.bounds)},
            "commands": self.commands(),
            "each": list(self.records),
        }


def most_saved(report: LabReport, name: str, most: int) -> list[LabRecord]:
    """The sessions in which a way made the largest difference to how they were."""
    priced: Iterable[LabRecord] = (record for record in report.records if record["priced"] and name in record["ways"])

    def saved(record: LabRecord) -> float:
        ways = record["ways"]
        return abs(float(ways[AS_IT_WAS]["dollars"] - ways[name]["dollars"]))

    return sorted(priced, key=saved, reverse=True)[:most]


__all__ = ["AS_IT_WAS", "EVERYTHING", "LabReport", "WayTotals", "most_saved"]
