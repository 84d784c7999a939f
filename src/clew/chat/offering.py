"""The list above the prompt: commands after a slash, files after an @; typing makes it shorter."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from textual.widgets import OptionList
from textual.widgets.option_list import Option

from clew.chat.choosing import ChoiceRow

SLASHED = re.compile(r"/([a-z]*)")
MENTION = re.compile(r"(?:^|\s)@(\S*)$")
OFFERED = 50  # rows at most


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
