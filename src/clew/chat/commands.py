"""The commands of the chat: one table, from which the palette, the slash commands, the keys and the help follow."""

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
    key: str = ""

    @property
    def ways(self) -> str:
        """How it is reached without the palette."""
        return f"/{self.slash}  {self.key.capitalize()}".rstrip()


COMMANDS = (
    Command("Select Compaction Method", "method", acts.method, "f2"),
    Command("Compact now…", "compact", acts.compact, "f3"),
    Command("What would a compaction do?", "preview", acts.preview),
    Command("New session with summary…", "handoff", acts.new_session, "f4"),
    Command("Save summary to file", "save", acts.save_summary),
    Command("Undo last compaction", "undo", acts.undo, "f9"),
    Command("Lineage", "lineage", acts.lineage, "f6"),
    Command("What did that stand for?", "expand", acts.expand, "f7"),
    Command("What was lost?", "lost", acts.lost, "f8"),
    Command("Who wrote the chapters?", "chapters", acts.chapters),
    Command("Have code write a chapter…", "rewrite", acts.rewrite),
    Command("Search what was said…", "search", acts.search, "f10"),
    Command("The window", "window", acts.window, "f5"),
    Command("Copy the last answer", "copy", acts.copy),
    Command("Pin or unpin", "pin", acts.pin),
    Command("Instructions for when and how", "instructions", acts.instructions),
    Command("Sessions", "sessions", acts.sessions),
    Command("Resume a session", "resume", acts.sessions),
    Command("New conversation", "new", acts.new),
    Command("Model", "model", acts.model),
    Command("What is allowed in this folder", "allowed", acts.allowed),
    Command("Dark or light", "theme", acts.theme),
    Command("Quit", "quit", acts.leave),
)
BY_SLASH = {command.slash: command for command in COMMANDS}
OFFERED_COMMANDS = [
    *(ChoiceRow(c.slash, f"/{c.slash}", f"{c.title}  {c.key.capitalize()}".rstrip()) for c in COMMANDS),
    ChoiceRow("help", "/help", "Keys and commands  F1"),
]

HELP = "\n".join(
    [
        "Enter       sends what you typed; while the agent works, it waits its turn",
        "Ctrl+J      begins a new line; so does Alt+Enter",
        "Up, Down    what you said before, also in earlier conversations",
        "/ and @     offer commands and files: Tab completes, Enter takes",
        "Esc         cancels the turn; what was said until then is kept",
        "Ctrl+P      all commands",
        "Tab         to the conversation and back; there, arrows and PageUp scroll, and letters go to the prompt",
        "Ctrl+Q      leaves; clew chat NAME continues",
        "",
        *(f"{command.ways:<20}{command.title}" for command in COMMANDS),
        "",
        "A line with ▣ stands for what was compacted: F7, or a double click, opens it where it stands.",
    ]
)
