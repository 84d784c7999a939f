"""The conversation on the screen: lines that are wrapped once, and drawn only where they are seen."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from clew.chat.entries import ENTRY_MARKS, EntryKind, ScreenEntry
from clew.chat.wrapping import LOOKS, DrawnLine, Wrapped

DRAW_PAUSE = 0.05  # seconds for which what comes is gathered before it is drawn
LAZY = 1.0  # seconds between two looks of the scroll bar, which takes longer to draw than the text beside it
GUTTER = 2  # columns
DRAWN = 2_000  # lines that are kept as they were drawn


class TranscriptView(ScrollView, can_focus=True):
    """Entries one below the other. If it `grows`, its end stays in view, unless somebody looks further up."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"transcript--{look}" for look in LOOKS}

    class Opened(Message):
        """Somebody wants to see what is behind an entry."""

        def __init__(self, entry: ScreenEntry) -> None:
            super().__init__()
            self.entry = entry

    def __init__(self, id: str | None = None, grows: bool = False) -> None:
        super().__init__(id=id)
        self._grows = grows
        self.entries: list[ScreenEntry] = []
        self._wrapped: list[Wrapped] = []  # each entry
        self._starts: list[int] = [0]  # the first line of each entry, and the end
        self._strips: dict[int, Strip] = {}  # by line, those that were drawn and are as they were
        self._pieces: list[str] = []
        self.follows = grows  # what is new is in view

    def on_mount(self) -> None:
        self.set_interval(DRAW_PAUSE, self.flush)
        self.set_interval(LAZY, self._move_bar)

    # --- what is shown ------------------------------------------------------------------------------------------------

    def add(self, *entries: ScreenEntry) -> None:
        """Show more at the end."""
        self.flush()
        for entry in entries:
            self.entries.append(entry)
            self._wrapped.append(Wrapped(entry, self.columns))
            self._starts.append(self._starts[-1] + len(self._wrapped[-1].lines))
        self._changed(self._starts[-1 - len(entries)])

    def hear(self, kind: EntryKind, delta: str) -> None:
        """Show some more of what is being said; it is drawn a little later, with what comes until then."""
        if not self.entries or self.entries[-1].kind != kind:
            self.add(ScreenEntry(kind, ""))
        self._pieces.append(delta)

    def flush(self) -> None:
        """Draw what has come."""
        if self._pieces:
            self.entries[-1].text += "".join(self._pieces)
            self._pieces.clear()
            first = self._wrapped[-1].grow()
            self._starts[-1] = self._starts[-2] + len(self._wrapped[-1].lines)
            self._changed(self._starts[-2] + first)

    def redraw(self, entry: ScreenEntry) -> None:
        """Show an entry as it is now."""
        at = self.entries.index(entry)
        self._wrapped[at] = Wrapped(entry, self.columns)
        for n in range(at, len(self.entries)):
            self._starts[n + 1] = self._starts[n] + len(self._wrapped[n].lines)
        self._changed(self._starts[at])

    def show(self, entries: Iterable[ScreenEntry]) -> None:
        """Show these and nothing else."""
        self._pieces.clear()
        self.entries = list(entries)
        self._wrap_all()

    def follow(self) -> None:
        """Go to the end, and stay there."""
        self.follows = True
        # By force: before the next layout there is no bar yet, and without one Textual does not scroll.
        self.scroll_end(animate=False, immediate=True, x_axis=False, force=True)

    def reveal(self, entry: ScreenEntry) -> None:
        """Scroll to where an entry begins."""
        self.scroll_to(y=self._starts[self.entries.index(entry)], animate=False, immediate=True)

    # --- how it is drawn ----------------------------------------------------------------------------------------------

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        if self._grows and (new_value < old_value or self.is_vertical_scroll_end):
            self.follows = self.is_vertical_scroll_end
        self.refresh()
        if not self.follows:
            self._move_bar()

    def _move_bar(self) -> None:
        bar = self.vertical_scrollbar
        bar.window_virtual_size, bar.position = self.virtual_size.height, self.scroll_y

    def on_resize(self, event: Resize) -> None:
        if not self._wrapped or self.columns != self._wrapped_at:
            top = bisect_right(self._starts, self.scroll_offset.y) - 1
            self._wrap_all()
            if not self.follows and top < len(self.entries):
                self.reveal(self.entries[top])  # what somebody reads stays where it is
        elif self.follows:  # a line of the prompt more or less
            self.follow()

    @property
    def columns(self) -> int:
        """Columns for text."""
        return max(8, self.scrollable_content_region.width - GUTTER)

    def _wrap_all(self) -> None:
        self._wrapped_at = self.columns
        self._wrapped = [Wrapped(entry, self.columns) for entry in self.entries]
        self._starts = [0]
        for wrapped in self._wrapped:
            self._starts.append(self._starts[-1] + len(wrapped.lines))
        self._changed(0)

    def _changed(self, first: int) -> None:
        """The lines from this one on are others; those above it need no drawing."""
        for line in [line for line in self._strips if line >= first]:
            del self._strips[line]
        size = Size(self.columns + GUTTER, self._starts[-1])
        width, height = self.virtual_size
        if self.show_vertical_scrollbar and size.width == width and size.height >= height:
            self.set_reactive(TranscriptView.virtual_size, size)  # nothing else moves: no layout
        else:
            self.virtual_size = size
        if self.follows:
            self.follow()
        self.refresh_lines(first, max(1, size.height - first))

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def render_lines(self, crop: Region) -> list[Strip]:
        """What is in view, as it was drawn: here is no border, and a line that only moved costs nothing."""
        lines = [self.render_line(y) for y in crop.line_range]
        background = self.background_colors[1]
        for kind in self.get_line_filters():
            lines = [line.apply_filter(kind, background) for line in lines]
        return [line.crop(*crop.column_span) for line in lines]

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
        line = self._wrapped[n].lines[at - self._starts[n]]
        mark = ENTRY_MARKS[self.entries[n].kind] if at == self._starts[n] else " "
        segments = self._segments(f"{mark} {line.text}", line, at)
        around = self.get_component_rich_style("transcript--agent")
        return Strip(segments).adjust_cell_length(self.size.width, around).apply_offsets(0, at)

    def _segments(self, text: str, line: DrawnLine, at: int) -> list[Segment]:
        base = self.get_component_rich_style(f"transcript--{line.look}")
        styles = [(span.start + GUTTER, span.end + GUTTER, self._span_style(str(span.style))) for span in line.spans]
        if self.text_selection and (selected := self.text_selection.get_span(at)):
            start, end = selected
            marked = self.screen.get_component_rich_style("screen--selection")
            styles.append((start, len(text) if end == -1 else end, marked))
        if not styles:
            return [Segment(text, base)]
        cuts = sorted({0, len(text), *(min(len(text), n) for start, end, _ in styles for n in (start, end))})
        return [
            Segment(text[a:b], Style.combine([base, *(style for start, end, style in styles if start <= a < end)]))
            for a, b in pairwise(cuts)
        ]

    def _span_style(self, name: str) -> Style:
        return self.get_component_rich_style("transcript--code") if name == "code" else Style.parse(name)

    # --- what one can do with it --------------------------------------------------------------------------------------

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        text = "\n".join(f"  {line.text}" for wrapped in self._wrapped for line in wrapped.lines)
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
