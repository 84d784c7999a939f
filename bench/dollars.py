"""What sessions cost, call by call: python bench/dollars.py [--corpus DIR] [--sample N] [--json FILE] [--plot FILE.svg]

Those of a corpus, else the one that ships with clew: docs/benchmark.md.
"""

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from benchmark.bills import bill_picture, bill_table, prefix_line
from benchmark.dollars import SETTINGS, Payment, of_corpus, shipped
from benchmark.progress import bar


def main(args: Sequence[str] | None = None) -> None:
    """Print a table a setting, method by method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--corpus", type=Path, default=os.environ.get("CLEW_CORPUS") or None, help="score.py, dev/*.jsonl.gz"
    )
    parser.add_argument("--sample", type=int, default=30, help="the longest sessions of the corpus")
    parser.add_argument("--json", type=Path, help="figures to a file")
    parser.add_argument("--plot", type=Path, help="dollars as a picture, FILE.svg")
    given = parser.parse_args(args)
    console = Console(highlight=False)
    sessions, judge = of_corpus(given.corpus, given.sample) if given.corpus else shipped()
    told = f"the {len(sessions)} longest coding sessions of the corpus" if given.corpus else "the shipped session"
    console.print(f"to do: {told}, every call", style="dim", markup=False)
    payment, bills = Payment(sessions, judge), []
    for setting in SETTINGS:
        with bar(str(setting)) as heard:
            found = list(payment.bills(setting, heard))
        console.print(bill_table(found), "")
        bills += found
    console.print(prefix_line(bills), markup=False)
    if given.json:
        given.json.write_text(json.dumps([asdict(bill) for bill in bills], indent=2), encoding="utf-8")
    if given.plot:
        given.plot.write_text(bill_picture(bills), encoding="utf-8")


if __name__ == "__main__":
    main()
