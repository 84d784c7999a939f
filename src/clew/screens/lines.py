"""Words and lines, as every screen has them."""

from typing import TYPE_CHECKING

from clew.core.bounds import clip
from clew.core.items import Edit, Item
from clew.core.times import local
from clew.sessions import names
from clew.store.records import Session

if TYPE_CHECKING:  # what the page, hooks and a list of conversations need of this is done before rich is loaded
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

LOOKED_AT = 200  # characters of a node that are looked at for its line


def words(text: str, most: int = LOOKED_AT) -> str:
    """The first words of a text on one line, with nothing in them that would move a cursor."""
    return "".join(c if c.isprintable() else "�" for c in clip(text, most))


def phrase(text: str, most: int) -> str:
    """The first words of a text on one line; none of them is cut, if one of them has room."""
    line = words(text, most)
    return line if len(line) < most else f"{ends_whole(line[:-1])} …"


def ends_whole(text: str) -> str:
    """A text that was cut, without the beginning of a last word, unless that is more than a third of it."""
    whole = text.rpartition(" ")[0].rstrip()
    return whole if len(whole) > len(text) * 2 // 3 else text


def line(console: "Console", text: str, style: str = "") -> None:
    """Print one line, cut to the width of the screen."""
    from rich.text import Text

    print_line(console, Text(text, style))


def print_line(console: "Console", text: "Text") -> None:
    """Print one line with styles of its own, cut to the width of the screen."""
    if text.cell_len > console.width:
        text.truncate(console.width - 2)
        text = text[: len(ends_whole(text.plain))].append(" …")
    console.print(text, soft_wrap=True)


def read(console: "Console", text: str, indent: int, style: str = "dim") -> None:
    """Print a text to be read, wrapped, with nothing in it that would move a cursor."""
    from rich.text import Text

    for line in text.splitlines():
        margin = " " * (indent + len(line) - len(line.lstrip()))
        shown = Text(words(line.strip(), len(line) + 1), style)
        for row in shown.wrap(console, max(1, console.width - len(margin))):
            row.rstrip()
            console.print(Text(margin) + row, soft_wrap=True)


def name(edit: Edit) -> str:
    """The step that made an edit, without its settings."""
    return edit.by.partition("(")[0]


def maker(edit: Edit) -> str:
    """Who wrote the chapter that an edit put there, and what that cost; else the step that made it."""
    from clew.steps.worklog.blocks import author  # heavy, and few screens need it

    if not (who := author(edit)):
        return name(edit)
    return ", ".join(filter(None, (f"by {words(who, 40)}", dollars(edit.evidence.get("cost")))))


def label(item: Item) -> str:
    """What an item is, in one word: who said it, or its kind."""
    return item.role if item.kind == "text" else item.kind


def described(item: Item) -> str:
    """An item in a few words."""
    from clew.steps.lines import amount  # counts media, for which all of `tokens` is loaded

    what = f"{label(item)} {item.name}".strip() if item.kind == "call" else label(item)
    return f"{words(what, 60)}, {amount(item)}"


def called(session: Session) -> str:
    """A conversation as people refer to it, on one line."""
    return words(names.called(session), 60)


def numbered(session: Session) -> str:
    """A session as people refer to it."""
    return f"{called(session)}.{session.number}"


def table(*headings: str) -> "Table":
    """A table without lines; all but its first column are numbers."""
    from rich.table import Table

    made = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    for n, heading in enumerate(headings):
        made.add_column(heading, justify="right" if n else "left", no_wrap=True)
    return made


def moment(at: float) -> str:
    return f"{local(at):%Y-%m-%d %H:%M}"


def dollars(amount: float | None) -> str:
    """Money; nothing where none is known."""
    if not amount:
        return ""
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"


def count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def volume(count: float) -> str:
    """So many bytes."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:,.0f} bytes" if unit == "bytes" else f"{count:,.1f} {unit}"
