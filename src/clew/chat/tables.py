"""Tables of an answer: columns below each other, where the screen is wide enough for them."""

import re
from collections.abc import Sequence

from rich.cells import cell_len
from textual.content import Content, Span

from clew.chat.markdown import inline

TABLE_ROWS = 100  # that are drawn together
BETWEEN = "  "
DASHES = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
CELL_END = re.compile(r"(?<!\\)\|")


def is_row(line: str) -> bool:
    """Whether a line may belong to a table."""
    return line.startswith("|")


def aligned(rows: Sequence[str], width: int) -> list[Content] | None:
    """The lines of a table; None where it is none, or too wide."""
    if len(rows) < 2 or not DASHES.fullmatch(rows[1]):
        return None
    cells = [[inline(cell.strip()) for cell in CELL_END.split(row.strip().strip("|"))] for row in rows]
    columns = max(len(row) for n, row in enumerate(cells) if n != 1)
    sizes = [
        max(cell_len(row[c].plain) for n, row in enumerate(cells) if n != 1 and c < len(row)) for c in range(columns)
    ]
    if sum(sizes) + len(BETWEEN) * (columns - 1) > width:
        return None
    rule = Content(BETWEEN.join("─" * max(1, size) for size in sizes))
    return [rule if n == 1 else _joined(row, sizes) for n, row in enumerate(cells)]


def _joined(row: Sequence[Content], sizes: Sequence[int]) -> Content:
    text, spans = "", []
    for n, cell in enumerate(row):
        spans += [Span(span.start + len(text), span.end + len(text), span.style) for span in cell.spans]
        text += cell.plain
        if n + 1 < len(row):
            text += " " * (sizes[n] - cell_len(cell.plain)) + BETWEEN
    return Content(text, spans)
