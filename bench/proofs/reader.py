"""The reader test (bench/reader.py): what the last one that was judged came to.

Nobody can measure this without readers and graders: `measure` adds up what bench/judged keeps of them, with its date.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from math import sqrt
from statistics import fmean, pstdev
from typing import Any

from benchmark.methods import CLEW
from proofs import Figures, Missing, Settings
from proofs.tables import many
from reading.judged import JUDGED

KINDS = "intent", "constraint", "state", "artifact", "error", "detail", "decision"


def measure(settings: Settings) -> Figures:
    """The grades that are kept, added up."""
    if not JUDGED.exists():
        raise Missing("nobody has read and graded yet: python bench/reader.py --model NAME, or --sheets DIR for people")
    return added(json.loads(JUDGED.read_text(encoding="utf-8")))


def added(found: Mapping[str, Any]) -> Figures:
    """What the grades of one test come to."""
    titles = dict.fromkeys(text["group"] for text in found["texts"])
    groups = {title: _group([text for text in found["texts"] if text["group"] == title]) for title in titles}
    return {"judged": found["made"], "by": found["by"], "groups": groups}


def _group(texts: list[dict[str, Any]]) -> Figures:
    """What each method came to over these texts."""
    by_method: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for text in texts:
        by_method[text["method"]].append(text)
    return {
        "cases": len({text["case"] for text in texts}),
        "conversations": len({text["case"].rpartition(" at ")[0] for text in texts}),
        "methods": {name: _method(mine) for name, mine in by_method.items()},
    }


def _method(texts: list[dict[str, Any]]) -> Figures:
    rows = [row for text in texts for row in text["grades"]]
    grades = [row["grade"] for row in rows]
    return {
        "questions": len(rows),
        "all": round(fmean(grades), 3),
        "error of the mean": round(pstdev(grades) / sqrt(len(grades)), 3),
        "kinds": {k: round(fmean(of), 3) for k in KINDS if (of := [r["grade"] for r in rows if r["kind"] == k])},
        "wrong": sum(grade < 0 for grade in grades),
        "characters": round(fmean(text["characters"] for text in texts)),
        "share": round(sum(t["characters"] for t in texts) / sum(t["whole"] for t in texts), 4),
    }


def blocks(figures: Figures) -> Mapping[str, str]:
    """A table for each group of cases."""
    parts = [_table(title, group) for title, group in figures["groups"].items()]
    return {"reader": f"Read and graded on {figures['judged']} by {figures['by']}.\n\n" + "\n\n".join(parts)}


def _table(title: str, group: Figures) -> str:
    methods = sorted(group["methods"].items(), key=lambda entry: -entry[1]["all"])
    questions = max(of["questions"] for _, of in methods)
    counts = many(group["conversations"], "conversation"), many(group["cases"], "cut"), many(questions, "question")
    lines = [
        f"{title}: {', '.join(counts)}.",
        "",
        _row(["", "all", "±", *KINDS, "wrong", "characters", "share"]),
        "|---" * (len(KINDS) + 6) + "|",
    ]
    for name, of in methods:
        kinds = [f"{of['kinds'][kind]:.2f}" if kind in of["kinds"] else "" for kind in KINDS]
        sizes = [str(of["wrong"]), f"{of['characters']:,}", f"{of['share']:.1%}"]
        lines.append(_row([name, f"**{of['all']:.2f}**", f"{of['error of the mean']:.2f}", *kinds, *sizes]))
    return "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def behind(figures: Figures) -> Iterator[str]:
    """Where readers of another method's texts answered more."""
    for title, group in figures["groups"].items():
        methods = group["methods"]
        every = f"all questions (± {methods[CLEW]['error of the mean']:.2f})"
        lost = {every: {name: of["all"] for name, of in methods.items()}}
        lost |= {kind: {name: of["kinds"].get(kind, 0) for name, of in methods.items()} for kind in KINDS}
        told = [
            f"{what} {grades[best]:.3g} with {best}, {grades[CLEW]:.3g} with clew"
            for what, grades in lost.items()
            if grades[best := max(grades, key=lambda name: (grades[name], name == CLEW))] > grades[CLEW]
        ]
        if told:
            seen = "mean grade of readers who see only what is left"
            yield f"Reader test, {title[0].lower()}{title[1:]}, {seen}: {'; '.join(told)}."
