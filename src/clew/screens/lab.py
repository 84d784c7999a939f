"""What `clew lab` shows: each way over all sessions, and which settings follow."""

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from clew.lab import LabReport
from clew.lab.report import WayTotals
from clew.screens.lines import count, dollars, line, table, words

SKIPPED_SHOWN = 5
COLUMNS = (
    "a call: tokens that it sends; folds: compactions; large: calls that would not fit",
    "again: files and commands that showed once more what was out of view",
    "used: those that a later call used and no summary named",
    "in all: dollars, and one more call like the others for each of these",
)


def lab(console: Console, report: LabReport) -> None:
    """A row a way, what is not in it, and what to set."""
    shown = table("", "dollars", "a call", "folds", "large", "again", "used", "in all")
    for sums in report.totals():
        shown.add_row(
            Text(sums.name),
            dollars(sums.dollars),
            f"{sums.sent // max(1, sums.calls) // 1000:,}k",
            f"{sums.compactions:,}",
            f"{sums.too_large:,}",
            f"{sums.again:,}",
            f"{sums.needed:,}",
            dollars(sums.worth),
        )
    console.print(shown)
    console.print()
    for note in (*notes(report), *skipped(report)):
        line(console, note, "dim")
    for told in advice(report):
        console.print(Text(told, "bold"))


def notes(report: LabReport) -> Iterator[str]:
    """What was read, and what the columns are."""
    calls = max((sums.calls for sums in report.totals()), default=0)
    priced = len(report.records) - report.unpriced
    yield f"{count(priced, 'session')}, {count(calls, 'call')}; {report.overflowing:,} larger than their window"
    if report.unpriced:
        yield f"{count(report.unpriced, 'session')} of models whose price is not known; --model NAME prices them"
    yield from COLUMNS


def skipped(report: LabReport) -> Iterator[str]:
    """The files that could not be read."""
    for failure in report.failures[:SKIPPED_SHOWN]:
        yield words(f"skipped {failure['source']}: {failure['why']}")
    if more := len(report.failures) - SKIPPED_SHOWN:
        yield from [f"and {more:,} more"] * (more > 0)


def advice(report: LabReport) -> list[str]:
    """Which settings would have been best, and what sets them."""
    way, sums = report.chosen(), {one.name: one for one in report.totals()}
    if way is None:
        return ["no session was large enough to be compacted: nothing to choose"]
    if not report.commands():
        return [f"your settings would have been best: {_dollars_in_all(sums[way.name])}"]
    now = sums[report.ways[0].name]
    return [
        f"{way.name} would have been best: {_dollars_in_all(sums[way.name])}, {_dollars_in_all(now)} as it is set",
        *report.commands(),
    ]


def _dollars_in_all(sums: WayTotals) -> str:
    return f"{dollars(sums.worth) or '$0'} in all"
