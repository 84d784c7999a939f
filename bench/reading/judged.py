"""What readers answered and graders judged, kept with its date: nobody can measure it again without them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from reading.sheets import Answer

JUDGED = Path(__file__).parent.parent / "judged" / "reader.json"


def record(graded: Iterable[tuple[Answer, float]], by: str, made: str) -> dict[str, Any]:
    """All grades, text by text; the answers too, where the conversation ships with clew."""
    texts: dict[tuple[str, str], dict[str, Any]] = {}
    for answer, grade in graded:
        stand = answer.stand
        text = texts.setdefault(
            (stand.case, stand.method),
            {
                "case": stand.case,
                "group": stand.group,
                "method": stand.method,
                "characters": len(stand.text),
                "whole": stand.whole,
                "grades": [],
            },
        )
        row: dict[str, Any] = {"kind": answer.question.kind, "grade": grade}
        if stand.shipped:
            row["answer"] = answer.text
        text["grades"].append(row)
    return {"made": made, "by": by, "texts": list(texts.values())}


def save(found: dict[str, Any], path: Path = JUDGED) -> Path:
    """Keep a record."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path
