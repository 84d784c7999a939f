"""A text to be read: help, what was lost, what the window is made of, how to begin."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import Static

from clew.chat.entries import ScreenEntry
from clew.chat.transcript import TranscriptView

BOX_COLUMNS = 8  # columns of the box that are no text


def width(screen: Size) -> int:
    """Columns for a line of text on a screen of this size."""
    whole = screen.width < 60 or screen.height < 30
    return max(20, (screen.width if whole else min(110, screen.width * 9 // 10)) - BOX_COLUMNS)


class ReadingScreen(ModalScreen[None]):
    """Text that scrolls; Esc, Enter or q closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q", "dismiss(None)", "Close")]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        with Vertical(classes="box tall"):
            yield Static(Content(self._title), classes="title")
            yield TranscriptView()
            yield Static(Content("Up and Down scroll · Esc closes"), classes="keys")

    def on_mount(self) -> None:
        text = self.query_one(TranscriptView)
        text.show([ScreenEntry("page", self._text)])
        text.focus()
