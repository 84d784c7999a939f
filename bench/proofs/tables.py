"""Tables and shares, as the documents have them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def missing(figures: Mapping[str, Any], columns: int) -> list[list[str]]:
    """A row for each peer that could not run, which says why."""
    return [[p["name"], cell(p["missing"]), *[""] * (columns - 2)] for p in figures["peers"] if p["missing"]]


def cell(text: str) -> str:
    """A text in one cell of a table."""
    return text.replace("|", "/").replace("\n", " ")


def many(count: int, what: str) -> str:
    """So many of something."""
    return f"{count:,} {what}" + "s" * (count != 1)


def named(names: Sequence[str], most: int = 3) -> str:
    """Some names in a row; of many, the first few."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def share(part: float, whole: float) -> str:
    """A share of something, to three places; a dash of nothing."""
    return f"{part / whole:.3f}" if whole else "-"
