"""Fit clew.facts.worth: python bench/fit_worth.py CORPUS_DIR [--write]

Labels are made from the conversations alone: each is cut at random places; a fact from before a cut is wanted if the
first to mention it afterwards is the assistant. One logistic model over all facts, with a ridge, by Newton's method
(needs numpy). Prints, for each project left out in turn, the area under the curve and how many of the wanted facts
stand in the top tenth and fifth of their cut; --write puts the weights of the whole corpus where the package reads
them. The same corpus gives the same weights.
"""

import gzip
import json
import random
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import clew.facts
from clew.facts.sheets import Sheet, sheet
from clew.facts.worth import FEATURES, Trace, features, follow
from clew.wire import decode

CUTS = 8  # in each conversation
SHARE = 8  # one in so many unwanted facts is looked at, and counts as so many
RIDGE = 3.0
ROUNDS = 8


class Row(NamedTuple):
    """One fact at one cut."""

    group: str
    cut: int
    kind: str
    values: list[float]
    wanted: bool

    @property
    def weight(self) -> int:
        return 1 if self.wanted else SHARE


def conversations(folder: Path) -> Iterator[tuple[str, list[Sheet]]]:
    """The group of each conversation, and its sheets."""
    for path in sorted(folder.glob("*.jsonl.gz")):
        if path.name.startswith("probes"):
            continue
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                talk: dict[str, Any] = json.loads(line)
                items = decode({"messages": talk["messages"]}, "openai_chat")[1]
                yield talk["project"].split("-")[0], [sheet(item) for item in items]


def rows(folder: Path) -> Iterator[Row]:
    """The facts before each cut, wanted or not."""
    chance = random.Random(7)
    cut = 0
    for group, sheets in conversations(folder):
        n = len(sheets)
        if n < 12:
            continue
        cuts = sorted({chance.randrange(n // 6, n * 19 // 20) for _ in range(CUTS)})
        for known, later in zip(_known(sheets, cuts), _later(sheets, cuts), strict=True):
            cut += 1
            for key, (kind, values) in known.items():
                wanted = later.get(key) in ("said", "call")
                if wanted or chance.random() < 1 / SHARE:
                    yield Row(group, cut, kind, values, wanted)


def _known(sheets: Sequence[Sheet], cuts: Sequence[int]) -> Iterator[dict[str, tuple[str, list[float]]]]:
    traces: dict[str, Trace] = {}
    at = 0
    for i, page in enumerate(sheets):
        if i in cuts:
            yield {key: (life.kind, features(key, life, at)) for key, life in traces.items()}
        follow(traces, page, i, at)
        at += page.size


def _later(sheets: Sequence[Sheet], cuts: Sequence[int]) -> list[dict[str, str]]:
    """For each cut, who first mentions each fact after it."""
    first: dict[str, str] = {}
    found = []
    for i in range(len(sheets) - 1, -1, -1):
        first |= dict.fromkeys(sheets[i].facts, sheets[i].voice)
        if i in cuts:
            found.append(dict(first))
    return found[::-1]


def fit(data: Sequence[Row], names: Sequence[str]) -> dict[str, float]:
    """The weights of a logistic model: Newton's method on the normal equations."""
    np = import_module("numpy")
    x = np.array([_vector(row, names) for row in data])
    y = np.array([row.wanted for row in data], dtype=float)
    weight = np.array([row.weight for row in data], dtype=float)
    w = np.zeros(len(names))
    for _ in range(ROUNDS):
        p = 1 / (1 + np.exp(-x @ w))
        slope = x.T @ (weight * (p - y)) + RIDGE * w
        curve = (x * (weight * p * (1 - p))[:, None]).T @ x + RIDGE * np.eye(len(names))
        w -= np.linalg.solve(curve, slope)
    return {name: round(float(v), 3) for name, v in zip(names, w, strict=True)}


def _vector(row: Row, names: Sequence[str]) -> list[float]:
    kinds = names[1 + len(FEATURES) :]
    return [1.0, *row.values, *(1.0 if row.kind == kind else 0.0 for kind in kinds)]


def judge(data: Sequence[Row], table: dict[str, float]) -> tuple[float, float, float]:
    """Area under the curve; part of the wanted facts in the top tenth and fifth of their cuts."""
    line = [table[name] for name in FEATURES]
    scored = [
        (sum(w * v for w, v in zip(line, row.values, strict=True)) + table.get(row.kind, 0.0), row) for row in data
    ]
    cuts: dict[int, list[tuple[float, Row]]] = {}
    for score, row in scored:
        cuts.setdefault(row.cut, []).append((score, row))
    return _area(scored), _top(cuts.values(), 0.1), _top(cuts.values(), 0.2)


def _area(scored: Sequence[tuple[float, Row]]) -> float:
    below = area = 0.0
    for _, row in sorted(scored, key=lambda s: s[0]):
        if row.wanted:
            area += below
        else:
            below += row.weight
    wanted = sum(row.wanted for _, row in scored)
    return area / max(1.0, below * wanted)


def _top(cuts: Any, part: float) -> float:
    hit = asked = 0
    for cut in cuts:
        room = part * sum(row.weight for _, row in cut)
        for _, row in sorted(cut, key=lambda s: -s[0]):
            asked += row.wanted
            hit += row.wanted and room > 0
            room -= row.weight
    return hit / max(1, asked)


def main() -> None:
    data = list(rows(Path(sys.argv[1])))
    names = ["base", *FEATURES, *sorted({row.kind for row in data})]
    print(f"{len(data):,} facts at {data[-1].cut} cuts, {sum(r.wanted for r in data):,} wanted again")
    print(f"{'left out':12} {'wanted':>7} {'area':>6} {'top 10%':>8} {'top 20%':>8}")
    for group in sorted({row.group for row in data}):
        rest = [row for row in data if row.group != group]
        out = [row for row in data if row.group == group]
        area, tenth, fifth = judge(out, fit(rest, names))
        print(f"{group:12} {sum(r.wanted for r in out):7,} {area:6.3f} {tenth:8.3f} {fifth:8.3f}")
    table = fit(data, names)
    print(f"{'none':12} {sum(r.wanted for r in data):7,} {' '.join(f'{v:7.3f}' for v in judge(data, table))}")
    if "--write" in sys.argv:
        place = Path(clew.facts.__file__).with_name("weights.json")
        place.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
