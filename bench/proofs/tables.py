"""Tables and shares, as the documents have them."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def named(names: Sequence[str], most: int = 3) -> str:
    """Some names in a row; of many, the first few."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def share(part: float, whole: float) -> str:
    """A share of something, to three places; a dash of nothing."""
    return f"{part / whole:.3f}" if whole else "-"
