"""The command that measures: how many needed facts survive per token."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.app import app

if TYPE_CHECKING:
    from rich.console import Console

    from clew.benchmark.judging import Curve, Heard
    from clew.benchmark.suite import Found, Plan

QUICK = 200_000  # tokens
MIDDLE = 0.1  # the share a table says most about


@app.command(epilog="Example: clew bench --quick --plot facts.svg")
def bench(
    quick: Annotated[bool, typer.Option("--quick", help="A minute at most: no corpus, peers, long session.")] = False,
    corpus: Annotated[
        Path | None,
        typer.Option(metavar="DIR", envvar="CLEW_CORPUS", help="A folder with score.py and dev/*.jsonl.gz."),
    ] = None,
    cuts: Annotated[int | None, typer.Option(metavar="N", min=1, help="At most so many cuts of the corpus.")] = None,
    tokens: Annotated[
        list[int] | None, typer.Option(metavar="N", min=10_000, help="Of a session with planted facts; again for more.")
    ] = None,
    folds: Annotated[int, typer.Option(metavar="N", min=0, help="Of one growing session.")] = 20,
    seed: Annotated[int, typer.Option(metavar="N", help="Another seed, another session.")] = 7,
    as_json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Output JSON to a file.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="The curves as a picture.")] = None,
    dollars: Annotated[bool, typer.Option("--dollars", help="Only this: what sessions cost, call by call.")] = False,
    sample: Annotated[int, typer.Option(metavar="N", min=1, help="With --dollars: the longest sessions.")] = 30,
) -> None:
    """Measure how many needed facts survive per token, clew beside others."""
    from rich.console import Console

    if dollars:
        _print_dollars(Console(highlight=False), corpus, sample, as_json, plot)
        return

    from clew.benchmark import Plan, Report, parts, picture
    from clew.benchmark.peers import installed
    from clew.screens import save

    console = Console(highlight=False)
    report = Report()
    peers, report.peers = ({}, []) if quick else installed()
    sessions = tuple(tokens or ([QUICK] if quick else Plan.sessions))
    plan = Plan(sessions, seed, folds, corpus=None if quick else corpus, cuts=cuts, peers=peers)
    todo = list(parts(plan))
    _announce(console, [part.name for part in todo], report.peers, plan, quick)
    for part in todo:
        with _bar(part.name) as heard:
            found = report.add(part, heard)
        _print(console, found)
        console.print(f"{part.name}: {report.seconds[part.name]:.1f} s\n", style="dim", markup=False)
    if as_json:
        save(as_json, json.dumps(report.as_json(), indent=2).encode())
    if plot:
        save(plot, picture(report.curves).encode())


def _announce(console: "Console", names: list[str], peers: list[str], plan: "Plan", quick: bool) -> None:
    """What will be done, and what not."""
    lines = [f"to do: {'; '.join(names)}", *peers]
    if quick:
        lines.append("quick: no peers, no corpus, one session")
    elif plan.corpus is None:
        lines.append("corpus: skipped, give --corpus DIR or CLEW_CORPUS")
    for line in lines:
        console.print(line, style="dim", markup=False)
    console.print()


def _print(console: "Console", found: "Found") -> None:
    from clew.benchmark.folds import Folds
    from clew.benchmark.judging import Curve
    from clew.benchmark.tables import cost_table, curve_table, fold_table

    match found:
        case Curve():
            goal = _goal(found)
            console.print(curve_table(found, goal))
            _print_notes(console, found, goal)
        case Folds():
            console.print(fold_table(found))
        case _:
            console.print(cost_table(found))


def _print_dollars(
    console: "Console", corpus: Path | None, sample: int, as_json: Path | None, plot: Path | None
) -> None:
    """What sessions cost, method by method: those of a corpus, else the one that ships with clew."""
    from clew.benchmark.bills import bill_picture, bill_table, prefix_line
    from clew.benchmark.dollars import SETTINGS, Payment, of_corpus, shipped
    from clew.screens import save

    sessions, judge = of_corpus(corpus, sample) if corpus else shipped()
    told = f"the {len(sessions)} longest coding sessions of the corpus" if corpus else "the shipped session"
    console.print(f"to do: {told}, every call", style="dim", markup=False)
    payment, bills = Payment(sessions, judge), []
    for setting in SETTINGS:
        with _bar(str(setting)) as heard:
            found = list(payment.bills(setting, heard))
        console.print(bill_table(found), "")
        bills += found
    console.print(prefix_line(bills), markup=False)
    if as_json:
        save(as_json, json.dumps([asdict(bill) for bill in bills], indent=2).encode())
    if plot:
        save(plot, bill_picture(bills).encode())


def _goal(curve: "Curve") -> float:
    """The size a table says most about: that of the target, or about a tenth."""
    sizes = curve.sizes()
    return sizes[-2] if sizes[-1] > 1 else min(sizes, key=lambda size: abs(size - MIDDLE))


def _print_notes(console: "Console", curve: "Curve", goal: float) -> None:
    from clew.benchmark.suite import verdict
    from clew.benchmark.tables import too_large

    for line in too_large(curve):
        console.print(line, style="yellow", markup=False)
    if goal > 1:
        good, told = verdict(curve, int(goal))
        console.print(f"{'✓' if good else '✗'} {told}", style="green" if good else "red", markup=False)


@contextmanager
def _bar(title: str) -> Iterator["Heard"]:
    """A bar on a terminal that says what goes on; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda what, done, whole: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = BarColumn(bar_width=20), TimeElapsedColumn(), TextColumn("{task.description}", markup=False)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda what, done, whole: bar.update(task, description=what[:48], completed=done, total=whole)
