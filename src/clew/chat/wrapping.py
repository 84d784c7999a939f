"""An entry as lines on the screen: wrapped once, and where it grows, from its last paragraph on."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len
from textual.content import Content, Span

from clew.chat.entries import ENTRY_MARKS, ScreenEntry, plain
from clew.chat.markdown import inline, marked

TABLE_ROWS = 100  # that are drawn together
BETWEEN = "  "
DASHES = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
CELL_END = re.compile(r"(?<!\\)\|")


REWRAPPED_CHARACTERS = 1_000  # characters that are wrapped again with every piece; of a longer paragraph, its last line
APART = ("agent", "you", "failed", "result")  # kinds with a blank line below
DIFF = {"+": "added", "-": "removed"}
FENCE = "```"
LOOKS = (*ENTRY_MARKS, *DIFF.values(), "code", "heading")


class DrawnLine(NamedTuple):
    """A line as it is drawn."""

    text: str
    look: str
    spans: tuple[Span, ...] = ()  # parts of it with a style of their own


class Wrapped:
    """The lines of an entry."""

    def __init__(self, entry: ScreenEntry, width: int) -> None:
        self._entry = entry
        self._width = width
        self._read = 0  # characters of the entry
        self._settled: list[DrawnLine] = []  # what more text at the end cannot change
        self._open = ""  # the text behind these
        self._begun = ""  # the look of its first paragraph, where some of that is settled
        self._rows: list[str] = []  # of a table that may go on, which are not settled
        self._fenced = False  # these end within a block of code
        self.lines: list[DrawnLine] = []
        self.grow()

    def grow(self) -> int:
        """Wrap what the entry has more of now; the first line that is another one."""
        first, text = len(self._settled), self._entry.visible
        self._open += text[self._read :]
        self._read = len(text)
        done, newline, rest = self._open.rpartition("\n")
        if newline:
            for paragraph in done.split("\n"):
                self._settle(paragraph)
            self._open = rest
        if self._in_table(self._open):
            last = self._drawn_table([*self._rows, self._open])
        elif not self._open:  # the next row may begin here
            last = [*self._drawn_table(self._rows), *self._wrap("")]
        else:
            self._settled += self._drawn_table(self._rows)
            self._rows = []
            last = self._wrap(self._open)
        if len(self._open) > REWRAPPED_CHARACTERS:
            self._settled += last[:-1]
            self._begun = last[-1].look
            spaces = self._open[len(self._open.rstrip(" ")) :]  # wrapping leaves out those that do not fit
            self._open = last[-1].text.rstrip(" ") + spaces
            last = last[-1:]
        below = [DrawnLine("", self._entry.kind)] if self._entry.kind in APART else []
        before, self.lines = self.lines, [*self._settled, *last, *below]
        while first < min(len(before), len(self.lines)) and before[first] == self.lines[first]:
            first += 1
        return first

    def _settle(self, paragraph: str) -> None:
        """Wrap a line that is whole; those of a table wait for the last of it, because it may be the widest."""
        if self._in_table(paragraph) and len(self._rows) < TABLE_ROWS:
            self._rows.append(paragraph)
            return
        self._settled += self._drawn_table(self._rows)
        self._rows = []
        self._settled += self._wrap(paragraph)
        self._fenced ^= not self._begun and paragraph.lstrip().startswith(FENCE)
        self._begun = ""

    def _in_table(self, line: str) -> bool:
        short = len(line) <= REWRAPPED_CHARACTERS and not self._begun
        return self._entry.kind == "agent" and short and not self._fenced and is_row(line)

    def _drawn_table(self, rows: Sequence[str]) -> list[DrawnLine]:
        lines = aligned([plain(row) for row in rows], self._width)
        if lines is None:
            return [line for row in rows for line in self._wrap(row)]
        return [_led(line, "", "agent") for line in lines]

    def _wrap(self, paragraph: str) -> list[DrawnLine]:
        look = self._begun or self._look(paragraph)
        text = plain(paragraph)
        # What is begun cannot be read again from its beginning: so long a line shows its marks as they were written.
        if (
            self._entry.kind != "agent"
            or self._begun
            or self._fenced_line(paragraph)
            or len(text) > REWRAPPED_CHARACTERS
        ):
            return [DrawnLine(line.plain, look) for line in Content(text).wrap(self._width)]
        content, first, further, heading = marked(text)
        if len(first) > self._width // 2:
            first = further = ""
        lines = content.wrap(self._width - len(first))
        return [_led(line, further if n else first, "heading" if heading else look) for n, line in enumerate(lines)]

    def _fenced_line(self, paragraph: str) -> bool:
        """Whether a line is code, and not the mark at either end of it."""
        return self._fenced and not paragraph.lstrip().startswith(FENCE)

    def _look(self, paragraph: str) -> str:
        kind = self._entry.kind
        if kind == "result":
            return DIFF.get(paragraph[:1], kind)
        return "code" if kind == "agent" and (self._fenced or paragraph.lstrip().startswith(FENCE)) else kind


def _led(line: Content, head: str, look: str) -> DrawnLine:
    moved = (Span(span.start + len(head), span.end + len(head), span.style) for span in line.spans)
    return DrawnLine(head + line.plain, look, tuple(moved))


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
