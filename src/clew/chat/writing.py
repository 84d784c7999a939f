"""A text to be written or changed: a draft of a summary, instructions, a line."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static, TextArea

from clew.chat.entries import plain


class Field(NamedTuple):
    """A line to fill in."""

    label: str
    value: str = ""
    hint: str = ""


class Writing(ModalScreen[str | None]):
    """A text of many lines: Ctrl+S takes it, Esc leaves all as it was."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Leave", priority=True),
        Binding("ctrl+s", "take", "Take it", priority=True),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        with Vertical(classes="box tall"):
            yield Static(Content(plain(self._title)), classes="title")
            yield TextArea(plain(self._text), compact=True)
            yield Static(Content("Ctrl+S takes it · Esc leaves all as it was"), classes="keys")

    def on_mount(self) -> None:
        self.query_one(TextArea).focus()

    def action_take(self) -> None:
        self.dismiss(self.query_one(TextArea).text)


class Filling(ModalScreen[list[str] | None]):
    """Some lines to fill in: Enter goes on and takes them at the last one, Esc leaves all as it was."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Leave", priority=True)]

    def __init__(self, title: str, fields: Sequence[Field]) -> None:
        super().__init__()
        self._title = title
        self._fields = fields

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Static(Content(plain(self._title)), classes="title")
            for field in self._fields:
                yield Static(Content(plain(field.label)))
                yield Input(field.value, placeholder=field.hint, compact=True, select_on_focus=False)
            yield Static(Content("Enter takes it · Esc leaves all as it was"), classes="keys")

    def on_mount(self) -> None:
        self.query(Input).first().focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        inputs = list(self.query(Input))
        if event.input is inputs[-1]:
            self.dismiss([input.value for input in inputs])
        else:
            inputs[inputs.index(event.input) + 1].focus()
