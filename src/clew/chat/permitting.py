"""A tool wants to do something: may it? One sentence above the prompt, with what it would do where that is longer."""

import asyncio
from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from clew.agent.tools import Permission, Tool
from clew.chat.entries import ScreenEntry, bounded, plain
from clew.chat.transcript import TranscriptView
from clew.errors import ClewError

if TYPE_CHECKING:
    from clew.chat.app import Chat

READ_SECONDS = 1.0  # for which a question that came while somebody typed takes no yes
SAID = 200  # characters of a command that the sentence itself has room for


class Permit(NamedTuple):
    """What the user said, and for what else it holds."""

    yes: bool
    always: bool = False  # for the tool, until the chat is left
    for_good: bool = False  # for this command, in this folder


class Permitting(Vertical, can_focus=True):
    """Asks in a sentence; nothing but a key that says so lets it happen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape", "answer(False)", "No"),
        Binding("a", "always", "Always"),
        Binding("A", "answer(True, True)", "Always, all commands"),
    ]

    def __init__(self, sentence: str, preview: str, command_in: str = "", typing: bool = False) -> None:
        super().__init__()
        self.sentence = sentence
        self.preview = preview
        self.answer: asyncio.Future[Permit] = asyncio.get_running_loop().create_future()
        self._command_in = command_in  # the folder, where it is about a command
        self._typing = typing
        self._since = monotonic()

    def compose(self) -> ComposeResult:
        if self.preview:
            yield TranscriptView()
        yield Static(Content(plain(self.sentence)), classes="sentence")
        ways = "a always until you leave"
        if self._command_in:
            ways = f"a always for this command in {plain(self._command_in)} · A for all until you leave"
        yield Static(Content(f"y yes · {ways} · n no"), classes="ways")

    def on_mount(self) -> None:
        for text in self.query(TranscriptView):
            text.show([ScreenEntry("result", bounded(self.preview))])
            text.focus()
            return
        self.focus()

    def action_answer(self, yes: bool, always: bool = False) -> None:
        self._say(Permit(yes, always))

    def action_always(self) -> None:
        self._say(Permit(True, for_good=True) if self._command_in else Permit(True, always=True))

    def _say(self, said: Permit) -> None:
        # Somebody who was typing can hardly have read what such a key would allow.
        unread = self._typing and monotonic() - self._since < READ_SECONDS
        if not self.answer.done() and not (said.yes and unread):
            self.answer.set_result(said)


def asked(tool: str, command: str, arguments: Mapping[str, Any], preview: str) -> tuple[str, str]:
    """The sentence, and what is shown above it."""
    if command:
        short = len(command) <= SAID and "\n" not in command
        return (f"Run `{command}`?", "") if short else ("Run this command?", command)
    verb, path = tool.partition("_")[0].capitalize(), str(arguments.get("path", ""))
    return f"{verb} {path}?" if path else f"Let {tool} do this?", preview or "(nothing to show)"


async def permitted(
    chat: "Chat", always: set[tuple[str, Permission]], tool: Tool, arguments: Mapping[str, Any], preview: str
) -> bool:
    """Whether a tool may do something: as the user said before, or says now."""
    kind = tool.name, tool.asks  # to write a file that is run unasked is another thing than to write
    command = str(arguments.get("command", "")).strip(" \t\n") if tool.name == "run" else ""
    allowed, folder = chat.backend.allowed, chat.backend.places.shown(chat.backend.folder)
    if kind in always or (command and command in allowed.all()):
        return True
    sentence, above = asked(tool.name, command, arguments, preview)
    question = Permitting(sentence, above, folder if command else "", bool(chat.prompt.text))
    answer = await chat.put(question)
    if not answer.yes:
        return False
    if answer.always:
        always.add(kind)
    if answer.for_good:
        try:
            allowed.add(command)
            told = f"Allowed from now on in {folder}: {command} (/allowed takes it back)"
        except (ClewError, OSError) as error:
            told = f"Allowed this once, because the rule could not be kept: {error}"
        chat.transcript.add(ScreenEntry("note", told))
    return True
