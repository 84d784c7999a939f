"""An entry as lines on the screen: wrapped once, and where it grows, from its last paragraph on."""

import re
from typing import NamedTuple

from textual.content import Content

from clew.chat.entries import ENTRY_MARKS, ScreenEntry, plain

REWRAPPED_CHARACTERS = 1_000  # characters that are wrapped again with every piece; of a longer paragraph, its last line
APART = ("agent", "you", "failed", "result")  # kinds with a blank line below
DIFF = {"+": "added", "-": "removed"}
FENCE = "```"
HEADING_LINE = re.compile("#{1,6} ")
LOOKS = (*ENTRY_MARKS, *DIFF.values(), "code", "heading")


class DrawnLine(NamedTuple):
    """A line as it is drawn."""

    text: str
    look: str


class Wrapped:
    """The lines of an entry."""

    def __init__(self, entry: ScreenEntry, width: int) -> None:
        self._entry = entry
        self._width = width
        self._read = 0  # characters of the entry
        self._settled: list[DrawnLine] = []  # what more text at the end cannot change
        self._open = ""  # the text behind these
        self._begun = ""  # the look of its first paragraph, where some of that is settled
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
                self._settled += self._wrap(paragraph)
                self._fenced ^= not self._begun and paragraph.lstrip().startswith(FENCE)
                self._begun = ""
            self._open = rest
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

    def _wrap(self, paragraph: str) -> list[DrawnLine]:
        look = self._begun or self._look(paragraph)
        return [DrawnLine(line.plain, look) for line in Content(plain(paragraph)).wrap(self._width)]

    def _look(self, paragraph: str) -> str:
        kind = self._entry.kind
        if kind == "result":
            return DIFF.get(paragraph[:1], kind)
        if kind == "agent" and (self._fenced or paragraph.lstrip().startswith(FENCE)):
            return "code"
        return "heading" if kind == "agent" and HEADING_LINE.match(paragraph) else kind
