"""The conversation on the screen: lines that are wrapped once, and drawn only where they are seen."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import takewhile
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from clew.chat.entries import MARKS, Entry, Kind, plain

PAUSE = 0.05  # seconds for which what comes is gathered before it is drawn
LONGEST = 2_000  # characters of one entry while it grows: what is wrapped again with every piece
GUTTER = 2  # columns
DRAWN = 2_000  # lines that are kept as they were drawn
DIFF = {"+": "transcript--added", "-": "transcript--removed"}


class Transcript(ScrollView, can_focus=True):
    """Entries one below the other. If it `grows`, its end stays in view, unless somebody looks further up."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*(f"transcript--{kind}" for kind in MARKS), *DIFF.values()}

    class Opened(Message):
        """Somebody wants to see what is behind an entry."""

        def __init__(self, entry: Entry) -> None:
            super().__init__()
            self.entry = entry

    def __init__(self, id: str | None = None, grows: bool = False) -> None:
        super().__init__(id=id)
        self._grows = grows
        self.entries: list[Entry] = []
        self._lines: list[list[str]] = []  # of each entry
        self._starts: list[int] = [0]  # the first line of each entry, and the end
        self._strips: dict[int, Strip] = {}  # by line, those that were drawn and are as they were
        self._pieces: list[str] = []
        self._follows = grows  # what is new is in view

    def on_mount(self) -> None:
        self.set_interval(PAUSE, self.flush)

    # --- what is shown ------------------------------------------------------------------------------------------------

    def add(self, *entries: Entry) -> None:
        """Show more at the end."""
        self.flush()
        for entry in entries:
            self.entries.append(entry)
            self._lines.append(self._wrapped(entry))
            self._starts.append(self._starts[-1] + len(self._lines[-1]))
        self._changed(self._starts[-1 - len(entries)])

    def hear(self, kind: Kind, delta: str) -> None:
        """Show some more of what is being said; it is drawn a little later, with what comes until then."""
        if self._pieces and self.entries[-1].kind != kind:
            self.flush()
        if not self.entries or self.entries[-1].kind != kind or len(self.entries[-1].text) > LONGEST:
            self.add(Entry(kind, ""))
        self._pieces.append(delta)

    def flush(self) -> None:
        """Draw what has come."""
        if self._pieces:
            self.entries[-1].text += "".join(self._pieces)
            self._pieces.clear()
            self.redraw(self.entries[-1])

    def redraw(self, entry: Entry) -> None:
        """Show an entry as it is now."""
        at = self.entries.index(entry) if entry is not self.entries[-1] else len(self.entries) - 1
        before, self._lines[at] = self._lines[at], self._wrapped(entry)
        for n in range(at, len(self.entries)):
            self._starts[n + 1] = self._starts[n] + len(self._lines[n])
        same = takewhile(lambda pair: pair[0] == pair[1], zip(before, self._lines[at], strict=False))
        self._changed(self._starts[at] + sum(1 for _ in same))

    def show(self, entries: Iterable[Entry]) -> None:
        """Show these and nothing else."""
        self._pieces.clear()
        self.entries = list(entries)
        self._wrap_all()

    def follow(self) -> None:
        """Go to the end, and stay there."""
        self._follows = True
        self.scroll_end(animate=False, immediate=True, x_axis=False)

    def reveal(self, entry: Entry) -> None:
        """Scroll to where an entry begins."""
        self.scroll_to(y=self._starts[self.entries.index(entry)], animate=False, immediate=True)

    # --- how it is drawn ----------------------------------------------------------------------------------------------

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._grows and (new_value < old_value or self.is_vertical_scroll_end):
            self._follows = self.is_vertical_scroll_end

    def on_resize(self, event: Resize) -> None:
        if not self._lines or self._width != self._wrapped_at:
            self._wrap_all()
        elif self._follows:  # a line of the prompt more or less
            self.follow()

    @property
    def _width(self) -> int:
        return max(8, self.scrollable_content_region.width - GUTTER)

    def _wrap_all(self) -> None:
        self._wrapped_at = self._width
        self._lines = [self._wrapped(entry) for entry in self.entries]
        self._starts = [0]
        for lines in self._lines:
            self._starts.append(self._starts[-1] + len(lines))
        self._changed(0)

    def _wrapped(self, entry: Entry) -> list[str]:
        lines = [line.plain for line in Content(plain(entry.visible)).wrap(self._width)]
        return [*lines, ""] if entry.kind in ("agent", "you", "failed", "result") else lines

    def _changed(self, first: int) -> None:
        """The lines from this one on are others; those above it need no drawing."""
        for line in [line for line in self._strips if line >= first]:
            del self._strips[line]
        size = Size(self._width + GUTTER, self._starts[-1])
        if size == self.virtual_size:
            self.refresh_lines(first, size.height - first)
            return
        self.virtual_size = size
        if self._follows:
            self.follow()
        self.refresh()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        at = self.scroll_offset.y + y
        if at >= self._starts[-1]:
            return Strip.blank(self.size.width, self.get_component_rich_style("transcript--agent"))
        if at not in self._strips:
            if len(self._strips) > DRAWN:
                self._strips.clear()
            self._strips[at] = self._drawn(at)
        return self._strips[at]

    def _drawn(self, at: int) -> Strip:
        n = bisect_right(self._starts, at) - 1
        line, entry = at - self._starts[n], self.entries[n]
        text = f"{MARKS[entry.kind] if not line else ' '} {self._lines[n][line]}"
        segments = self._styled(text, self._style(entry, self._lines[n][line]), at)
        around = self.get_component_rich_style("transcript--agent")
        return Strip(segments).adjust_cell_length(self.size.width, around).apply_offsets(0, at)

    def _style(self, entry: Entry, line: str) -> Style:
        changed = DIFF.get(line[:1]) if entry.kind == "result" else None
        return self.get_component_rich_style(changed or f"transcript--{entry.kind}")

    def _styled(self, text: str, style: Style, at: int) -> list[Segment]:
        span = self.text_selection.get_span(at) if self.text_selection else None
        if span is None:
            return [Segment(text, style)]
        start, end = span
        end = len(text) if end == -1 else end
        marked = style + self.screen.get_component_rich_style("screen--selection")
        return [Segment(text[:start], style), Segment(text[start:end], marked), Segment(text[end:], style)]

    # --- what one can do with it --------------------------------------------------------------------------------------

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        text = "\n".join(f"  {line}" for lines in self._lines for line in lines)
        return selection.extract(text), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self._strips.clear()
        self.refresh()

    def on_click(self, event: Click) -> None:
        at = self.scroll_offset.y + event.y
        if self.entries and at < self._starts[-1]:
            entry = self.entries[bisect_right(self._starts, at) - 1]
            if entry.opens and event.chain == 2:
                self.post_message(self.Opened(entry))
