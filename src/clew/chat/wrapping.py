"""An entry as lines on the screen: wrapped once, and where it grows, from its last paragraph on."""

from typing import NamedTuple

from textual.content import Content

from clew.chat.entries import Entry, plain

LONGEST = 1_000  # characters that are wrapped again with every piece; of a longer paragraph, its last line
APART = ("agent", "you", "failed", "result")  # kinds with a blank line below
DIFF = {"+": "added", "-": "removed"}


class Line(NamedTuple):
    """A line as it is drawn."""

    text: str
    look: str


class Wrapped:
    """The lines of an entry."""

    def __init__(self, entry: Entry, width: int) -> None:
        self._entry = entry
        self._width = width
        self._read = 0  # characters of the entry
        self._settled: list[Line] = []  # what more text at the end cannot change
        self._open = ""  # the text behind these
        self.lines: list[Line] = []
        self.grow()

    def grow(self) -> int:
        """Wrap what the entry has more of now; the first line that is another one."""
        first, text = len(self._settled), self._entry.visible
        self._open += plain(text[self._read :])
        self._read = len(text)
        done, newline, rest = self._open.rpartition("\n")
        if newline:
            self._settled += self._wrap(done)
            self._open = rest
        last = self._wrap(self._open)
        if len(self._open) > LONGEST:
            self._settled += last[:-1]
            self._open = last[-1].text
            last = last[-1:]
        below = [Line("", self._entry.kind)] if self._entry.kind in APART else []
        before, self.lines = self.lines, [*self._settled, *last, *below]
        while first < min(len(before), len(self.lines)) and before[first] == self.lines[first]:
            first += 1
        return first

    def _wrap(self, text: str) -> list[Line]:
        lines = [line.plain for line in Content(text).wrap(self._width)]
        return [Line(line, self._look(line)) for line in lines]

    def _look(self, line: str) -> str:
        return DIFF.get(line[:1], "result") if self._entry.kind == "result" else self._entry.kind
