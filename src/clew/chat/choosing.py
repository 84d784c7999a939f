"""A list to choose from, made shorter by typing: commands, methods, conversations, stand-ins, items."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from clew.chat.entries import plain


class ChoiceRow(NamedTuple):
    """Something to choose."""

    id: str
    text: str
    aside: str = ""  # a key, a number
    marked: bool = False  # what holds now

    def fits(self, typed: str) -> bool:
        """Whether each word that was typed is in it."""
        text = f"{self.text} {self.aside}".lower()
        return all(word in text for word in typed.lower().split())

    def drawn(self, mark: bool) -> Content:
        head = ("● " if self.marked else "  ") if mark else ""
        current = " (current)" if self.marked else ""
        aside = Content.styled(f"  {plain(self.aside)}", "dim") if self.aside else Content("")
        return Content(f"{head}{plain(self.text)}{current}") + aside


class Choosing(ModalScreen[str | None]):
    """Type to filter, Up and Down to move, Enter to choose, Esc to leave it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Close"),
        Binding("up", "move(-1)", priority=True),
        Binding("down", "move(1)", priority=True),
        Binding("pageup", "move(-10)", priority=True),
        Binding("pagedown", "move(10)", priority=True),
    ]

    def __init__(self, title: str, rows: Sequence[ChoiceRow], typed: str = "", empty: str = "nothing fits") -> None:
        super().__init__()
        self._title = title
        self._rows = rows
        self._typed = typed
        self._empty = empty

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Static(Content(plain(self._title)), classes="title")
            yield Input(self._typed, placeholder="type to filter", compact=True, select_on_focus=False)
            yield OptionList(compact=True, markup=False)
            yield Static(Content("Up and Down move · Enter chooses · Esc closes"), classes="keys")

    def on_mount(self) -> None:
        self._fill(self._typed)
        current = next((n for n, row in enumerate(self._rows) if row.marked), 0)
        self._list.highlighted = current if not self._typed and self._rows else 0
        self.query_one(Input).focus()

    @property
    def _list(self) -> OptionList:
        return self.query_one(OptionList)

    def _fill(self, typed: str) -> None:
        mark = any(row.marked for row in self._rows)
        fitting = [row for row in self._rows if row.fits(typed)]
        self._list.clear_options()
        self._list.add_options([Option(row.drawn(mark), id=row.id) for row in fitting])
        if not fitting:
            self._list.add_option(Option(Content(plain(self._empty)), disabled=True))
        self._list.highlighted = 0 if fitting else None

    def on_input_changed(self, event: Input.Changed) -> None:
        self._fill(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        at = self._list.highlighted
        if at is not None:
            self.dismiss(self._list.get_option_at_index(at).id)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)

    def action_move(self, by: int) -> None:
        count = self._list.option_count
        self._list.highlighted = max(0, min(count - 1, (self._list.highlighted or 0) + by))
