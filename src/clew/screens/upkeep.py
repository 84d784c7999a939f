"""What `clew doctor` and `clew purge` show."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from clew.core.times import local
from clew.screens.lines import count, line, volume, words
from clew.store.database import Problem
from clew.store.upkeep import Survey
from clew.store.upkeep.purge import Audit, Purge

PURGES = 5  # listed
WHAT = 500  # characters


def health(console: Console, survey: Survey, problems: Sequence[Problem], purges: Sequence[Audit], deep: bool) -> None:
    """What is on disk, of whom, what was purged, and what is wrong."""
    line(console, survey.path, "bold")
    console.print(_sizes(survey))
    console.print()
    console.print(_tenants(survey))
    console.print()
    for made in purges[:PURGES]:
        told = f"{_day(made.at)} purged {amounts(made.took)} in {made.scope}: {made.reason}"
        line(console, words(told), "dim")
    for declined in survey.declined:
        why = ", ".join(f"{fault} {n:,}" for fault, n in sorted(declined.faults.items()))
        line(console, words(f"! code wrote what {declined.model} did not in {declined.scope}: {why}"), "yellow")
    list_problems(console, problems)
    if not problems:
        read = "every body" if deep else "some bodies; --deep reads all"
        line(console, f"✓ no problem found (file, rows, search index, {read})", "green")


def list_problems(console: Console, problems: Sequence[Problem]) -> None:
    """What is wrong, and what to do about each."""
    for p in problems:
        what = words(p.what, WHAT)  # a database quotes what it cannot read
        console.print(f"✗ {what}: {p.count:,}\n  → {p.remedy}", style="red", markup=False)


def _sizes(survey: Survey) -> Table:
    packed = f", {survey.said / survey.stored:.1f} times smaller than said" if survey.stored else ""
    guess = "" if survey.exact else ", estimated"
    rest = survey.file - survey.free - survey.body_pages - survey.index_pages
    rows = [
        (survey.file, "file", f"{volume(survey.free)} of it free, to be used again"),
        (survey.wal, "write-ahead log", "not yet in the file"),
        (survey.body_pages, "bodies", f"{count(survey.bodies, 'body', 'bodies')}{packed}{guess}"),
        (survey.index_pages, "search index", guess.removeprefix(", ")),
        (rest, "the log itself", f"what happened when, and {count(survey.frames, 'frame')}{guess}"),
        (survey.texts.saved, "saved on text", f"{survey.texts.places:,} said, {survey.texts.bodies:,} stored"),
        (survey.media.saved, "saved on media", f"{survey.media.places:,} sent, {survey.media.bodies:,} stored"),
    ]
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")
    for size, name, told in rows:
        if size:
            table.add_row(name, volume(size), told)
    return table


def _tenants(survey: Survey) -> Table:
    table = Table(box=None, padding=(0, 2), pad_edge=False)
    table.add_column("scope")
    for heading in ("branches", "sessions", "calls", "items", "bodies"):
        table.add_column(heading, justify="right", no_wrap=True)
    for s in survey.scopes:
        counts = (s.branches, s.sessions, s.calls, s.nodes)
        table.add_row(Text(words(s.name, 30)), *(f"{n:,}" for n in counts), volume(s.bytes))
    return table


def amounts(took: Purge) -> str:
    """What a purge takes, in words."""
    counts = [
        (took.branches, "branch", "branches"),
        (took.nodes, "item", "items"),
        (took.bodies, "body", "bodies"),
        (took.frames, "frame", "frames"),
    ]
    return ", ".join([count(*told) for told in counts if told[0]] + [volume(took.bytes)])


def _day(at: float) -> str:
    return f"{local(at):%Y-%m-%d}"
