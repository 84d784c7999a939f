"""A tool wants to do something: may it?"""

from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from clew.agent.tools import Permission, Tool
from clew.chat.allowing import AllowedRule
from clew.chat.entries import ScreenEntry, bounded, plain
from clew.chat.transcript import TranscriptView
from clew.errors import ClewError

if TYPE_CHECKING:
    from clew.chat.app import Chat

READ_SECONDS = 1.0  # for which a dialog that came while somebody typed takes no yes


class Permit(NamedTuple):
    """What the user said, and for what else it holds."""

    yes: bool
    always: bool = False  # for the tool, until the chat is left
    rule: AllowedRule | None = None  # for good, in this folder


class Permitting(ModalScreen[Permit]):
    """Shows what would be done, as a diff or a command; nothing but a key that says so lets it happen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape", "answer(False)", "No"),
        Binding("a", "answer(True, True)", "Always"),
        Binding("t", "allow(0)", "This command"),
        Binding("l", "allow(1)", "Commands like it"),
    ]

    def __init__(
        self,
        tool: str,
        preview: str,
        this: AllowedRule | None = None,
        like: AllowedRule | None = None,
        typing: bool = False,
    ) -> None:
        super().__init__()
        self._rules = this, like
        self._tool = tool
        self._preview = preview
        self._typing = typing
        self._since = monotonic()

    def compose(self) -> ComposeResult:
        with Vertical(classes="box tall question"):
            yield Static(Content(f"May {plain(self._tool)} do this?"), classes="title")
            yield TranscriptView()
            keys = f"y yes · n no · a yes, and always for {plain(self._tool)} until you leave"
            this, like = self._rules
            if this:
                keys += "\nalways in this folder: t this command" + (f" · l {plain(str(like))}" if like else "")
            yield Static(Content(keys), classes="keys")

    def action_answer(self, yes: bool, always: bool = False) -> None:
        if not self._was_meant_for_the_prompt(yes):
            self.dismiss(Permit(yes, always))

    def action_allow(self, which: int) -> None:
        if (rule := self._rules[which]) and not self._was_meant_for_the_prompt(True):
            self.dismiss(Permit(True, rule=rule))

    def _was_meant_for_the_prompt(self, yes: bool) -> bool:
        """Whether a key allows something that somebody who was typing can hardly have read yet."""
        return yes and self._typing and monotonic() - self._since < READ_SECONDS

    def on_mount(self) -> None:
        text = self.query_one(TranscriptView)
        text.show([ScreenEntry("result", bounded(self._preview) or "(nothing to show)")])
        text.focus()


async def permitted(
    chat: "Chat", always: set[tuple[str, Permission]], tool: Tool, arguments: Mapping[str, Any], preview: str
) -> bool:
    """Whether a tool may do something: as the user said before, or says now."""
    kind = tool.name, tool.asks  # to write a file that is run unasked is another thing than to write
    command = str(arguments.get("command", "")).strip(" \t\n") if tool.name == "run" else ""
    allowed = chat.backend.allowed
    this = AllowedRule(command) if command else None
    if kind in always or (command and allowed.covers(command)):
        return True
    answer = await chat.ask(Permitting(tool.name, preview, this, allowed.alike(command), bool(chat.prompt.text)))
    if answer is None or not answer.yes:
        return False
    if answer.always:
        always.add(kind)
    if answer.rule:
        try:
            allowed.add(answer.rule)
            chat.say(f"Allowed from now on in {chat.backend.places.shown(chat.backend.folder)}: {answer.rule}")
        except (ClewError, OSError) as error:
            chat.say(f"Allowed this once, because the rule could not be kept: {error}")
    return True
