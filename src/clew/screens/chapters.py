"""What `clew show --chapters` shows: who wrote each chapter, what they were asked, what they answered."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from clew.screens.lines import count, dollars, line, read, table, words
from clew.sessions.chapters import ToldChapter

INDENT = 4  # of what is read


def listed(console: Console, found: Sequence[ToldChapter]) -> None:
    """A line for each."""
    shown = table("recall", "", "by", "tokens", "cost", "")
    for column in (1, 2, 5):
        shown.columns[column].justify = "left"
    for one in found:
        state = "" if one.state == "in view" else one.state
        shown.add_row(
            Text(one.id), one.title, Text(words(one.author, 40)), f"{one.tokens:,}", dollars(one.cost) or "-", state
        )
    console.print(shown)


def show_chapter(console: Console, one: ToldChapter) -> None:
    """One of them, with its questions and answers."""
    about = " · ".join(filter(None, (one.title, f"by {words(one.author, 40)}", one.state, count(one.tokens, "token"))))
    line(console, f"{one.id}  {about}", "bold")
    read(console, one.text, INDENT)
    for asked in one.asked:
        paid = f", {dollars(asked.cost)}" if asked.cost else ""
        line(console, f"\nasked of {count(len(asked.ids), 'item')}: {count(asked.spent, 'token')}{paid}", "bold")
        read(console, asked.asked, INDENT)
        line(console, "\nanswered", "bold")
        read(console, asked.answer, INDENT)


def as_json(one: ToldChapter) -> dict[str, Any]:
    """The same for a program."""
    keys = ("id", "title", "author", "state", "tokens", "spent", "cost", "text")
    asked = [{key: getattr(each, key) for key in ("asked", "answer", "spent", "cost")} for each in one.asked]
    return {key: getattr(one, key) for key in keys} | {"questions": asked}
