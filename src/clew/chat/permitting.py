"""A tool wants to do something: may it?"""

from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from clew.chat.entries import ScreenEntry, bounded, plain
from clew.chat.transcript import TranscriptView

Permit = Literal["yes", "no", "always"]


class Permitting(ModalScreen[Permit]):
    """Shows what would be done, as a diff or a command; nothing but a key that says so lets it happen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss('yes')", "Yes"),
        Binding("n,escape", "dismiss('no')", "No"),
        Binding("a", "dismiss('always')", "Always"),
    ]

    def __init__(self, tool: str, preview: str) -> None:
        super().__init__()
        self._tool = tool
        self._preview = preview

    def compose(self) -> ComposeResult:
        with Vertical(classes="box tall"):
            yield Static(Content(f"May {plain(self._tool)} do this?"), classes="title")
            yield TranscriptView()
            keys = f"y yes · n no · a yes, and always for {plain(self._tool)} until you leave"
            yield Static(Content(keys), classes="keys")

    def on_mount(self) -> None:
        text = self.query_one(TranscriptView)
        text.show([ScreenEntry("result", bounded(self._preview) or "(nothing to show)")])
        text.focus()
