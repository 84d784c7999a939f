"""CompactBench's templates: what they plant, is it still there, word for word, after a compaction?

One case has some 300 tokens, and clew compacts none to less than 256. So the cases are also put one after another into
one long conversation. No model is asked: `make live` does that with CompactBench's own scores."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from benchmark.judging import MODEL, shown
from benchmark.memories import holds
from benchmark.peers import HERE
from benchmark.public import Source
from clew.compression import LEAST_TARGET, compress
from proofs import Figures, Missing, Settings, place
from proofs.beside import cut
from proofs.tables import share, table

SOURCE = Source(
    "compactbench",
    "https://github.com/compactbench/compactbench",
    "8bb1f62ee96094979d8e3eaf9dfde74a8190530d",
    "benchmarks/public",
)
PYTHON = HERE / ".venv-compactbench" / "bin" / "python"
OF_EACH = 10  # cases of a template
JOINED = 0.25, 0.1  # of the tokens of the long conversation
Case = Mapping[str, Any]  # messages, and items as kind and words


def measure(settings: Settings) -> Figures:
    """Each case alone, and all of them in one conversation."""
    cases = made(place(SOURCE, settings), 1 if settings.quick else settings.some(OF_EACH))
    Random(settings.seed).shuffle(cases)
    return {"cases": len(cases), **judged(cases)}


def made(templates: Path, count: int) -> list[Case]:
    """The cases, by the package of that name."""
    if not PYTHON.exists():
        raise Missing("the package compactbench is not installed: make peers")
    command = [str(PYTHON), str(HERE / "compactbench_cases.py"), str(templates), str(count)]
    found: list[Case] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def judged(cases: Sequence[Case]) -> Figures:
    """Items by kind, those kept of each case alone, and those kept of one conversation of all cases."""
    kinds, alone, tail, whole = Counter[str](), Counter[str](), Counter[str](), 0
    for case in cases:
        found = compress(case["messages"], model=MODEL, target_tokens=LEAST_TARGET)
        whole += not found.edits
        kinds.update(kind for kind, _ in case["items"])
        alone.update(kind for kind, words in case["items"] if holds(shown(found.messages), words))
        newest = cut(shown(case["messages"]), LEAST_TARGET)
        tail.update(kind for kind, words in case["items"] if holds(newest, words))
    messages = [message for case in cases for message in case["messages"]]
    before = compress(messages, model=MODEL, window=10**6).tokens_before
    rows = []
    for part in JOINED:
        size = max(LEAST_TARGET, int(before * part))
        for name, text in (
            ("clew", shown(compress(messages, model=MODEL, target_tokens=size).messages)),
            ("newest", cut(shown(messages), size)),
        ):
            kept = Counter(kind for case in cases for kind, words in case["items"] if holds(text, words))
            rows.append({"method": name, "size": size, "kept": dict(kept)})
    return {
        "left whole": whole,
        "kinds": dict(kinds),
        "alone": dict(alone),
        "tail": dict(tail),
        "tokens": before,
        "joined": rows,
    }


# --- what the documents say -------------------------------------------------------------------------------------------


def blocks(figures: Figures) -> dict[str, str]:
    """A row for the cases alone, and one for each way and size of the long conversation."""
    kinds = figures["kinds"]
    alone = f"{figures['cases']} cases alone, each to {LEAST_TARGET} tokens"
    rows = [[alone, method, *cells(figures[name], kinds)] for method, name in (("clew", "alone"), ("newest", "tail"))]
    rows += [
        [f"in one, {figures['tokens']:,} tokens to {row['size']:,}", row["method"], *cells(row["kept"], kinds)]
        for row in figures["joined"]
    ]
    head = ["conversation", "method", *(f"{kind.replace('_', ' ')} ({many})" for kind, many in kinds.items())]
    told = f"{figures['left whole']} of {figures['cases']} cases were so short that nothing was compacted."
    return {"compactbench": f"{told}\n\n{table(head, rows)}"}


def published(figures: Figures) -> Iterator[list[str]]:
    """Its board has no entry yet."""
    least, whole = figures["joined"][-2], sum(figures["kinds"].values())
    for what, kept in (
        (f"each case to {LEAST_TARGET} tokens", figures["alone"]),
        (f"all cases in one conversation, {least['size'] / figures['tokens']:.0%} of its tokens", least["kept"]),
    ):
        ours = share(sum(kept.values()), whole)
        yield ["[CompactBench](#compactbench)", f"planted items kept, {what}", "nothing: its board is empty", ours]


def behind(figures: Figures) -> Iterator[str]:
    """Kinds of which the newest of a case hold more than clew's view."""
    for kind, whole in figures["kinds"].items():
        ours, tail = (figures[name].get(kind, 0) for name in ("alone", "tail"))
        if tail > ours:
            what = f"{kind.replace('_', ' ')}: {share(tail, whole)} kept by its newest, {share(ours, whole)} by clew"
            yield f"CompactBench, each short case to {LEAST_TARGET} tokens, {what}."


def cells(kept: Mapping[str, int], kinds: Mapping[str, int]) -> list[str]:
    return [share(kept.get(kind, 0), many) for kind, many in kinds.items()]
