"""Where one types."""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.events import Key
from textual.message import Message
from textual.widgets import OptionList, TextArea
from textual.widgets.option_list import Option

from clew.chat.choosing import ChoiceRow

SLASHED = re.compile(r"/([a-z]*)")
MENTION = re.compile(r"(?:^|\s)@(\S*)$")
OFFERED = 50  # rows at most


HINT = "Say something; / for commands, @ for files, ! runs a command; Ctrl+J: new line"


class Typing(NamedTuple):
    """What somebody is typing the name of."""

    sign: str  # / or @
    name: str


def typing(text: str, before: str) -> Typing | None:
    """What is being named in a text, of which `before` is the line up to the cursor."""
    if found := SLASHED.fullmatch(text):
        return Typing("/", found[1])
    if found := MENTION.search(before):
        return Typing("@", found[1])
    return None


def commands_named(name: str, commands: Iterable[ChoiceRow]) -> list[ChoiceRow]:
    """The commands that begin with this, then those that say it in words."""
    rows = [row for row in commands if row.id.startswith(name)]
    return rows + [row for row in commands if name and row not in rows and name in row.aside.lower()]


def files_named(name: str, files: Iterable[str]) -> list[ChoiceRow]:
    """The files whose path has this in it; those whose own name or path begins with it come first."""
    wanted = name.lower()
    fitting = [file for file in files if wanted in file.lower()]
    fitting.sort(key=lambda f: not (f.lower().startswith(wanted) or f.lower().rpartition("/")[2].startswith(wanted)))
    return [ChoiceRow(file, file) for file in fitting[:OFFERED]]


class OfferList(OptionList, can_focus=False):
    """What may be meant; the prompt keeps the keys and moves through it."""

    def __init__(self) -> None:
        super().__init__(id="offers", compact=True, markup=False)
        self.display = False

    def offer(self, rows: list[ChoiceRow]) -> None:
        """Show these; nothing hides the list."""
        self.clear_options()
        self.add_options([Option(row.drawn(False), id=row.id) for row in rows])
        self.highlighted = 0 if rows else None
        self.display = bool(rows)

    def move(self, by: int) -> None:
        """Highlight another row; after the last comes the first."""
        self.highlighted = ((self.highlighted or 0) + by) % self.option_count

    @property
    def meant(self) -> str:
        """The row that is highlighted."""
        return str(self.get_option_at_index(self.highlighted or 0).id)


class PromptBox(TextArea):
    """Enter sends, Ctrl+J or Alt+Enter begins a new line, Up and Down bring back what was sent.

    A slash offers commands and an @ files: Up and Down choose, Tab completes, Enter takes, Esc hides the list.
    """

    class Sent(Message):
        """Something was typed."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "app.page(-1)", "Scroll the conversation"),
        Binding("pagedown", "app.page(1)", "Scroll the conversation"),
    ]

    def __init__(
        self,
        commands: Sequence[ChoiceRow],
        files: Callable[[], list[str]],
        id: str | None = None,
    ) -> None:
        super().__init__(id=id, compact=True, placeholder=HINT, highlight_cursor_line=False)
        self.offers = OfferList()
        self._commands = commands
        self._files = files
        self._known: list[str] = []  # files, since the last @
        self._sent: list[str] = []
        self._at = 0
        self._recalled = ""  # what was brought back last
        self._kept = ""  # what was being typed when somebody went back to what was sent

    def replace_with(self, text: str) -> None:
        """Have this there instead, to be edited."""
        self.text = text
        self.move_cursor(self.document.end)

    def put_aside(self) -> None:
        """Empty it; Up brings back what was there."""
        self._sent.append(self.text)
        self._at = len(self._sent)
        self.text = self._kept = ""

    def remember(self, texts: Sequence[str]) -> None:
        """Have these to go back to, the newest last, as if they had been sent before all that was."""
        self._sent[:0] = texts
        self._at += len(texts)

    # --- keys ---------------------------------------------------------------------------------------------------------

    async def _on_key(self, event: Key) -> None:
        if not (self._chosen(event.key) if self.offers.display else self._done(event.key)):
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()

    def _done(self, key: str) -> bool:
        match key:
            case "enter":
                self._send()
            case "ctrl+d" if not self.text:
                self.app.call_later(self.app.action_quit)
            case "ctrl+j" | "shift+enter" | "alt+enter":
                self.insert("\n")
            case "up" if self._at > 0 and not self.cursor_location[0]:
                self._go(self._at - 1)
            case "down" if self._at < len(self._sent) and self.cursor_at_last_line:
                self._go(self._at + 1)
            case _:
                return False
        return True

    def _chosen(self, key: str) -> bool:
        """What a key does while something is offered."""
        match key:
            case "up" | "down":
                self.offers.move(1 if key == "down" else -1)
            case "escape":
                self.offers.offer([])
            case "tab":
                self._complete()
            case "enter":
                typed = self._typing
                whole = typed is None or typed.sign == "/" or typed.name == self.offers.meant
                self._complete()
                if whole:
                    self._send()
            case _:
                return self._done(key)
        return True

    def _complete(self) -> None:
        if typed := self._typing:
            row, column = self.cursor_location
            self.replace(f"{self.offers.meant} ", (row, column - len(typed.name)), (row, column))
        self.offers.offer([])

    # --- what is offered ----------------------------------------------------------------------------------------------

    @property
    def _typing(self) -> Typing | None:
        row, column = self.cursor_location
        return typing(self.text, self.document.get_line(row)[:column])

    async def _on_text_area_changed(self, event: TextArea.Changed) -> None:
        typed = None if self.text == self._recalled else self._typing  # Up goes on through what was sent
        if typed is None:
            if self.offers.display:
                self.offers.offer([])
        elif typed.sign == "/":
            self.offers.offer(commands_named(typed.name, self._commands))
        else:
            self.run_worker(self._offer_files(typed.name), group="files", exclusive=True)

    async def _offer_files(self, name: str) -> None:
        if not name or not self._known:  # a new @: there may be others by now
            self._known = await asyncio.to_thread(self._files)
        typed = self._typing
        if typed is not None and typed.sign == "@":
            self.offers.offer(files_named(typed.name, self._known))

    # --- what was sent ------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        text = self.text.strip()
        if text:
            self.offers.offer([])
            self.text = text
            self.put_aside()
            self.post_message(self.Sent(text))

    def _go(self, at: int) -> None:
        if self._at == len(self._sent):
            self._kept = self.text
        self._at = at
        self._recalled = self._sent[at] if at < len(self._sent) else self._kept
        self.replace_with(self._recalled)
