"""Tables and shares, as the documents have them."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def share(part: float, whole: float) -> str:
    """A share of something, to three places; a dash of nothing."""
    return f"{part / whole:.3f}" if whole else "-"
