"""Live tasks: a model works while its history is compacted, by clew, by others, or by nobody.

python bench/live.py tau2 --model openai/gpt-5-mini [--limit N] [--compaction clew|auto|summary|edit|trim|none]
python bench/live.py compactbench --model openai/gpt-5-mini --templates DIR [--methods clew,naive-summary]
python bench/live.py tau2 --model scripted      no key: a script plays the model, to see that all of it works

tau2 wants inspect-evals, compactbench the package of that name (bench/live.txt); keys are in the environment."""

import argparse
import asyncio
import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmark.progress import bar

OUT = Path(__file__).parent / "out" / "live"


def main() -> int:
    """Run it."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("task", choices=("tau2", "compactbench"))
    asked.add_argument(
        "--model", required=True, help="scripted, or a model as Inspect (tau2) or clew (compactbench) names it"
    )
    asked.add_argument("--user-model", help="tau2: who plays the customer; default: the same model")
    asked.add_argument("--domain", default="airline", choices=("airline", "retail"), help="of tau2")
    asked.add_argument("--compaction", default="clew", help="tau2: clew, auto, summary, edit, trim or none, or several")
    asked.add_argument("--threshold", type=float, default=8_000, help="tau2: tokens, or a share of the window")
    asked.add_argument("--limit", type=int, default=5, help="samples of tau2, cases of each template of CompactBench")
    asked.add_argument("--templates", type=Path, help="CompactBench: benchmarks/public of its repository")
    asked.add_argument("--suite", default="starter", help="CompactBench: a folder of the templates")
    asked.add_argument("--methods", default="clew", help="CompactBench: clew, naive-summary, … or several")
    asked.add_argument("--difficulty", default="medium", choices=("easy", "medium", "hard"), help="of CompactBench")
    asked.add_argument("--cycles", type=int, default=2, help="CompactBench: compactions after the first")
    asked.add_argument("--out", type=Path, default=OUT)
    given = asked.parse_args()
    if given.task == "compactbench" and given.templates is None:
        asked.error("--templates: benchmarks/public of github.com/compactbench/compactbench")
    given.out.mkdir(parents=True, exist_ok=True)
    rows = tau2(given) if given.task == "tau2" else compactbench(given)
    shown(rows)
    path = given.out / f"{given.task}-{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
    path.write_text(json.dumps({"model": given.model, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    print(path)
    return int(any(row.get("error") for row in rows) or (given.model == "scripted" and not proven(given.task, rows)))


def proven(task: str, rows: list[dict[str, Any]]) -> bool:
    """Whether the script came to its end as it must: by clew compacted several times, and all that was wanted done."""
    ours = [row for row in rows if "clew" in (row.get("compaction"), row.get("method"))]
    if task == "tau2":
        good = all(row["score"] == "C" and row["compactions"] > 1 and row["recalls"] for row in ours)
    else:
        good = all(row["overall_score"] > 0 and row["compression_ratio"] > 1 for row in ours)
    print("the harness works" if good else "the harness does NOT work: the scripted model should have had a better end")
    return good


def tau2(given: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each sample and kind of compaction."""
    from inspect_ai.model import get_model

    from clew.testing import StrictProvider
    from livetasks.scripted import WINDOW, Script, model_at
    from livetasks.tau2 import run_tau2, strategy_of, told

    rows: list[dict[str, Any]] = []
    for name in given.compaction.split(","):
        strategy = strategy_of(name, given.threshold, given.out)
        with ExitStack() as stack:
            if given.model == "scripted":
                provider = stack.enter_context(StrictProvider(Script(given.domain), window=WINDOW))
                model, user, options = model_at(provider), model_at(provider), {"max_samples": 1, "max_retries": 0}
            else:
                model, user, options = get_model(given.model), get_model(given.user_model or given.model), {}
            log = run_tau2(given.domain, model, user, strategy, given.out, limit=given.limit, **options)
        rows += [{"compaction": name, **asdict(ran)} for ran in told(log)]
        if log.error:
            rows.append({"compaction": name, "error": log.error.message})
    return rows


def compactbench(given: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each method."""
    from livetasks.compactbench import cases, provider_of, run_method

    found = cases(given.templates, given.suite, given.limit, given.difficulty)
    provider = provider_of(given.model)
    rows: list[dict[str, Any]] = []
    for method in given.methods.split(","):
        with bar(method) as heard:
            scores = asyncio.run(run_method(method, provider, given.model, found, given.cycles, heard))
        rows.append({"method": method, "cases": len(found), **scores})
    return rows


def shown(rows: list[dict[str, Any]]) -> None:
    """The rows as a table."""
    table = Table(box=None)
    for name in rows[0] if rows else ():
        table.add_column(name, no_wrap=True)
    for row in rows:
        table.add_row(*(f"{v:.3f}" if isinstance(v, float) else str(v)[:60] for v in row.values()))
    Console(width=200).print(table)


if __name__ == "__main__":
    sys.exit(main())
