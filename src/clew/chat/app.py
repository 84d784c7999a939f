"""The chat on the screen: what is typed, what is heard, and the commands."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from time import monotonic
from typing import Any, ClassVar, TypeVar

from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.driver import Driver
from textual.events import Key
from textual.screen import Screen
from textual.widgets import Static
from textual.worker import Worker

from clew.agent.tools import Permission, Tool
from clew.chat import keys, welcome
from clew.chat.backend import ChatBackend
from clew.chat.choosing import ChoiceRow, Choosing
from clew.chat.commands import BY_SLASH, COMMANDS, HELP, OFFERED_COMMANDS, Command
from clew.chat.entries import ScreenEntry, history, opened, plain
from clew.chat.guides import shown_guides
from clew.chat.hearing import TOAST, Hearing
from clew.chat.meter import WindowMeter
from clew.chat.permitting import permitted
from clew.chat.prompt import PromptBox
from clew.chat.reading import ReadingScreen
from clew.chat.transcript import TranscriptView
from clew.errors import ClewError

T = TypeVar("T")
TICK = 0.5  # seconds between two looks at the clock


class Chat(App[None]):
    """A conversation with an agent, its window, and all that can be done about it."""

    CSS_PATH = "chat.tcss"
    TITLE = "clew chat"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-wide")]  # noqa: RUF012  # as Textual has it
    VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-middle"), (30, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+p", "palette", "Commands", priority=True),
        Binding("f1", "help", "Help", priority=True),
        Binding("escape", "cancel", "Cancel"),
        Binding("ctrl+c", "interrupt", "Cancel"),
        *(Binding(c.key, f"command({c.slash!r})", c.title, priority=True) for c in COMMANDS if c.key),
    ]

    def __init__(self, backend: ChatBackend, light: bool = False) -> None:
        super().__init__()
        self.backend = backend
        self.hearing = Hearing(self)
        backend.ask, backend.watch = self.permit, self.hearing.write
        self.theme = "textual-light" if light else f"textual-{backend.config.agent.theme}"
        self._turn: Worker[None] | None = None
        self._since = 0.0
        self._waiting: deque[str] = deque()
        self._always: set[tuple[str, Permission]] = set()
        self._prepared = asyncio.Event()
        self._unsaid: list[Callable[[], None]] = []  # toasts that wait for a dialog to be closed

    def get_driver_class(self) -> type[Driver]:
        return keys.driver(super().get_driver_class())

    def compose(self) -> ComposeResult:
        # Held, not looked for: at the end the clock and a turn still tell them something when they are off the screen.
        self.transcript = TranscriptView(id="talk", grows=True)
        self.meter = WindowMeter(id="meter")
        self.prompt = PromptBox(OFFERED_COMMANDS, self.backend.files, id="prompt")
        self._status = Static(id="status", markup=False)
        yield from (self.transcript, self.meter, self.prompt.offers, self.prompt, self._status)

    @property
    def busy(self) -> bool:
        return self._turn is not None and self._turn.is_running

    async def on_mount(self) -> None:
        self.prompt.focus()
        self.set_interval(TICK, self._tick)
        await self.resume(None)
        self.run_worker(self._try("What was said before", self._remember))
        self.run_worker(self._prepare())

    async def _prepare(self) -> None:
        """What comes before the first turn: a word of welcome."""
        try:
            if not self.backend.model:
                await self.ask(ReadingScreen("Welcome", welcome.text(self.backend, self.backend.places.env)))
        finally:
            self._prepared.set()

    async def _remember(self) -> None:
        self.prompt.remember(await self.backend.asked())

    async def resume(self, session: str | None) -> None:
        """Go on with a conversation, begin one where it has no name, or show the one that is there."""
        view = await (self.backend.start() if session is None else self.backend.open(session))
        self.transcript.show(history(view) if view else [])
        if self.backend.guides:
            self.say(shown_guides(self.backend.guides))
        await self.hearing.resume(view is not None)
        self.measure()
        self._tick()

    # --- what is typed ------------------------------------------------------------------------------------------------

    @on(PromptBox.Sent)
    def take_prompt(self, event: PromptBox.Sent) -> None:
        name, _, rest = event.text.removeprefix("/").partition(" ")
        if event.text.startswith("/") and name in BY_SLASH:
            self.perform(BY_SLASH[name], rest.strip())
        elif event.text == "/help":
            self.action_help()
        elif event.text.startswith("/") and "\n" not in event.text and name.isalpha():
            self.notify(f"there is no /{name}: Ctrl+P has all commands", severity="warning", markup=False)
        elif self.busy:
            self._waiting.append(event.text)
            self._tick()
        else:
            self._begin(event.text)

    async def on_key(self, event: Key) -> None:
        """What is typed beside the prompt goes into it: Tab and a click leave it, and no letter is lost."""
        if self.focused is self.transcript and event.is_printable and event.character:
            self.prompt.focus()
            self.prompt.insert(event.character)

    def action_palette(self) -> None:
        if len(self.screen_stack) == 1:
            self.run_worker(self._palette(), exit_on_error=False)

    async def _palette(self) -> None:
        rows = [ChoiceRow(command.slash, command.title, command.ways) for command in COMMANDS]
        if picked := await self.ask(Choosing("Commands", rows)):
            self.perform(BY_SLASH[picked])

    def action_command(self, slash: str) -> None:
        if len(self.screen_stack) == 1:  # not above another screen
            self.perform(BY_SLASH[slash])

    def perform(self, command: Command, typed: str = "") -> None:
        """Have a command done."""

        async def act() -> None:
            await self._try(command.title, lambda: command.act(self, typed))
            self.measure()

        self.run_worker(act(), group="commands")

    async def _try(self, title: str, act: Callable[[], Awaitable[None]]) -> None:
        """Do something; what cannot be done is said."""
        try:
            await act()
        except (ClewError, OSError) as error:
            self.notify(plain(str(error)), title=title, severity="error", timeout=TOAST, markup=False)

    def action_help(self) -> None:
        if len(self.screen_stack) == 1:
            self.push_screen(ReadingScreen("Help", HELP))

    async def ask(self, screen: Screen[T]) -> T | None:
        """Show a screen, and wait for what comes of it; it goes with whoever asked."""
        try:
            return await self.push_screen_wait(screen)
        except asyncio.CancelledError:
            if screen in self.screen_stack:
                screen.dismiss()
            raise

    def notify(self, message: str, **more: Any) -> None:
        """Show a toast; where a dialog is open, once that is closed: it covers no text and no keys."""
        if len(self.screen_stack) > 1:
            self._unsaid.append(lambda: self.notify(message, **more))
        else:
            super().notify(message, **more)

    def say(self, text: str) -> None:
        """Tell the user what was done, where the conversation is."""
        self.transcript.add(ScreenEntry("note", text))
        self.transcript.follow()

    async def toggle(self, entry: ScreenEntry) -> None:
        """Open an entry where it stands, or close it."""
        if not entry.whole:
            entry.whole = opened(entry, await (await self.backend.conversation()).recall(entry.id))
        entry.open = not entry.open
        self.transcript.redraw(entry)
        self.transcript.reveal(entry)

    @on(TranscriptView.Opened)
    def open_entry(self, event: TranscriptView.Opened) -> None:
        self.run_worker(self._try("What did that stand for?", lambda: self.toggle(event.entry)))

    # --- a turn -------------------------------------------------------------------------------------------------------

    def _begin(self, text: str) -> None:
        self.transcript.add(ScreenEntry("you", text))
        self.transcript.follow()
        self._since = monotonic()
        self._turn = self.run_worker(self._run(text), group="turn")
        self._tick()

    async def _run(self, text: str) -> None:
        try:
            if text.startswith("!"):
                await self.hearing.run(text[1:])
                return
            await self._prepared.wait()
            async with aclosing(self.backend.agent.run(self.hearing.told(text))) as events:
                async for event in events:
                    await self.hearing.hear(event)
        except asyncio.CancelledError:
            self.transcript.add(ScreenEntry("note", "Cancelled. What was said until then is kept."))
            self._give_back()
            raise
        except (ClewError, OSError) as error:
            self.transcript.add(ScreenEntry("problem", str(error)))
            self._give_back()
        finally:
            self.hearing.stop()
            self.transcript.flush()
            self.call_later(self._ended)

    def _give_back(self) -> None:
        """What waited for its turn is not sent unseen after one that went wrong."""
        if self._waiting:
            self.prompt.replace_with("\n".join([*self._waiting, self.prompt.text]).strip())
            self._waiting.clear()

    def _ended(self) -> None:
        self._turn = None
        self.measure()
        if self._waiting:
            self._begin(self._waiting.popleft())
        self._tick()

    async def permit(self, tool: Tool, arguments: Mapping[str, Any], preview: str) -> bool:
        """Ask whether a tool may do something."""
        return await permitted(self, self._always, tool, arguments, preview)

    def action_cancel(self) -> None:
        if self._turn is not None and self.busy:
            self._turn.cancel()
        else:
            self.prompt.focus()

    def action_interrupt(self) -> None:
        if self.busy:
            self.action_cancel()
        else:
            self.notify("Ctrl+Q leaves", markup=False)

    async def action_quit(self) -> None:
        if self._turn is not None and self.busy:
            self._waiting.clear()
            self._turn.cancel()
            while self.busy:  # what was said is written down before the log is closed
                await asyncio.sleep(0.01)
        self.exit()

    # --- what is told -------------------------------------------------------------------------------------------------

    @work(group="meter", exclusive=True)
    async def measure(self) -> None:
        """Look how full the window is, and show it."""
        await self._try("The window", self._look)

    async def _look(self) -> None:
        who = f"{self.backend.agent.speaker.name} · {self.backend.controller.method}"
        self.meter.tell(await self.backend.filling(), who)

    def _tick(self) -> None:
        self.hearing.draw()
        if self._unsaid and len(self.screen_stack) == 1:
            waiting, self._unsaid = self._unsaid, []
            for show in waiting:
                show()
        waits = f" · {len(self._waiting)} waiting" if self._waiting else ""
        now = f"working {monotonic() - self._since:.0f} s · Esc cancels{waits}" if self.busy else "ready"
        ways = "^P commands  F1 help  ^Q leave"
        self._status.update(Content(f"{now} · {plain(self.backend.agent.session)} · {ways}"), layout=False)
