"""The commands of the chat: one table, which `/` offers."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from clew.chat import acts
from clew.chat.choosing import ChoiceRow

if TYPE_CHECKING:
    from clew.chat.app import Chat


class Command(NamedTuple):
    """Something that one can have done."""

    title: str
    slash: str
    act: "Callable[[Chat, str], Awaitable[None]]"


COMMANDS = (
    Command("Select Compaction Method", "method", acts.method),
    Command("Compact now: what matters most may follow", "compact", acts.compact),
    Command("What would a compaction do?", "preview", acts.preview),
    Command("New session with summary…", "handoff", acts.new_session),
    Command("Save summary to file", "save", acts.save_summary),
    Command("Undo last compaction", "undo", acts.undo),
    Command("Lineage", "lineage", acts.lineage),
    Command("What did that stand for?", "show", acts.show),
    Command("What was lost?", "lost", acts.lost),
    Command("Who wrote the chapters?", "chapters", acts.chapters),
    Command("Have code write a chapter…", "rewrite", acts.rewrite),
    Command("Search what was said…", "search", acts.search),
    Command("The window", "window", acts.window),
    Command("Copy the last answer", "copy", acts.copy),
    Command("Pin or unpin", "pin", acts.pin),
    Command("Instructions for when and how", "instructions", acts.instructions),
    Command("Sessions", "sessions", acts.sessions),
    Command("Resume a session", "resume", acts.sessions),
    Command("New conversation", "new", acts.new),
    Command("Model", "model", acts.model),
    Command("What is allowed in this folder", "allowed", acts.allowed),
    Command("Dark or light", "theme", acts.theme),
    Command("Keys", "help", acts.keys),
    Command("Quit", "quit", acts.leave),
)
BY_SLASH = {command.slash: command for command in COMMANDS}
OFFERED_COMMANDS = [ChoiceRow(c.slash, f"/{c.slash}", c.title) for c in COMMANDS]
