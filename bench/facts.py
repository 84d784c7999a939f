"""How many needed facts survive per token, clew beside others: python bench/facts.py [--quick] [--corpus DIR]

What is run and what the columns mean: bench/README.md.
"""

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmark.folds import Folds
from benchmark.judging import Curve
from benchmark.peers import installed
from benchmark.plot import picture
from benchmark.progress import bar
from benchmark.suite import Found, Plan, Report, parts, verdict
from benchmark.tables import cost_table, curve_table, fold_table, too_large

QUICK = 200_000  # tokens
MIDDLE = 0.1  # the share a table says most about


def main(args: Sequence[str] | None = None) -> None:
    """Print a table a part."""
    given = options(args)
    console = Console(highlight=False)
    report = Report()
    peers, report.peers = ({}, []) if given.quick else installed()
    sessions = tuple(given.tokens or ([QUICK] if given.quick else Plan.sessions))
    corpus = None if given.quick else given.corpus
    plan = Plan(sessions, given.seed, given.folds, corpus=corpus, cuts=given.cuts, peers=peers)
    todo = list(parts(plan))
    announce(console, [part.name for part in todo], report.peers, plan, given.quick)
    for part in todo:
        with bar(part.name) as heard:
            found = report.add(part, heard)
        show(console, found)
        console.print(f"{part.name}: {report.seconds[part.name]:.1f} s\n", style="dim", markup=False)
    if given.json:
        given.json.write_text(json.dumps(report.as_json(), indent=2), encoding="utf-8")
    if given.plot:
        given.plot.write_text(picture(report.curves), encoding="utf-8")


def options(args: Sequence[str] | None) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a minute at most: no corpus, peers, long session")
    parser.add_argument(
        "--corpus", type=Path, default=os.environ.get("CLEW_CORPUS") or None, help="score.py, dev/*.jsonl.gz"
    )
    parser.add_argument("--cuts", type=int, help="at most so many cuts of the corpus")
    parser.add_argument("--tokens", type=int, action="append", help="of a session with planted facts; again for more")
    parser.add_argument("--folds", type=int, default=20, help="of one growing session")
    parser.add_argument("--seed", type=int, default=7, help="another seed, another session")
    parser.add_argument("--json", type=Path, help="figures to a file")
    parser.add_argument("--plot", type=Path, help="the curves as a picture, FILE.svg")
    return parser.parse_args(args)


def announce(console: Console, names: list[str], peers: list[str], plan: Plan, quick: bool) -> None:
    """What will be done, and what not."""
    lines = [f"to do: {'; '.join(names)}", *peers]
    if quick:
        lines.append("quick: no peers, no corpus, one session")
    elif plan.corpus is None:
        lines.append("corpus: skipped, give --corpus DIR or CLEW_CORPUS")
    for line in lines:
        console.print(line, style="dim", markup=False)
    console.print()


def show(console: Console, found: Found) -> None:
    """Print what a part found."""
    match found:
        case Curve():
            goal = goal_in(found)
            console.print(curve_table(found, goal))
            show_notes(console, found, goal)
        case Folds():
            console.print(fold_table(found))
        case _:
            console.print(cost_table(found))


def goal_in(curve: Curve) -> float:
    """The size a table says most about: that of the target, or about a tenth."""
    sizes = curve.sizes()
    return sizes[-2] if sizes[-1] > 1 else min(sizes, key=lambda size: abs(size - MIDDLE))


def show_notes(console: Console, curve: Curve, goal: float) -> None:
    """Print what is to be said of a table, and whether it is as wanted."""
    for line in too_large(curve):
        console.print(line, style="yellow", markup=False)
    if goal > 1:
        good, told = verdict(curve, int(goal))
        console.print(f"{'✓' if good else '✗'} {told}", style="green" if good else "red", markup=False)


if __name__ == "__main__":
    main()
