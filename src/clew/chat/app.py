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
from textual.containers import Vertical
from textual.content import Content
from textual.driver import Driver
from textual.events import Event, Key
from textual.screen import Screen
from textual.widgets import Static
from textual.worker import Worker

from clew.agent.tools import Permission, Tool
from clew.chat import keys, welcome
from clew.chat.backend import ChatBackend
from clew.chat.commands import BY_SLASH, OFFERED_COMMANDS, Command
from clew.chat.entries import EntryKind, ScreenEntry, history, opened, plain
from clew.chat.guides import shown_guides
from clew.chat.hearing import Hearing
from clew.chat.meter import WindowMeter
from clew.chat.permitting import Permit, Permitting, permitted
from clew.chat.prompt import PromptBox
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
        Binding("ctrl+o", "open_newest", "Open the newest"),
        Binding("escape", "cancel", "Cancel"),
        Binding("ctrl+c", "interrupt", "Stop, then quit"),
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
        self._hint = ""  # what another Ctrl+C would do

    def get_driver_class(self) -> type[Driver]:
        return keys.driver(super().get_driver_class())

    def compose(self) -> ComposeResult:
        # Held, not looked for: at the end the clock and a turn still tell them something when they are off the screen.
        self.transcript = TranscriptView(id="talk", grows=True)
        self.meter = WindowMeter(id="meter")
        self.prompt = PromptBox(OFFERED_COMMANDS, self.backend.files, id="prompt")
        self.questions = Vertical(id="questions")
        self._status = Static(id="status", markup=False)
        yield from (self.transcript, self.meter, self.questions, self.prompt.offers, self.prompt, self._status)

    @property
    def busy(self) -> bool:
        return self._turn is not None and self._turn.is_running

    async def on_mount(self) -> None:
        self.prompt.focus()
        self.set_interval(TICK, self._tick)
        await self.resume(None)
        self.run_worker(self._try("What was said before", self._remember))

    async def _remember(self) -> None:
        self.prompt.remember(await self.backend.asked())

    async def resume(self, session: str | None) -> None:
        """Go on with a conversation, begin one where it has no name, or show the one that is there."""
        view = await (self.backend.start() if session is None else self.backend.open(session))
        greeting = ScreenEntry("page", welcome.text(self.backend, self.backend.places.env))
        self.transcript.show(history(view) if view else [greeting])
        if self.backend.guides:
            self.say(shown_guides(self.backend.guides))
        await self.hearing.resume(view is not None)
        self.measure()
        self._tick()

    # --- what is typed ------------------------------------------------------------------------------------------------

    @on(PromptBox.Sent)
    def take_prompt(self, event: PromptBox.Sent) -> None:
        self.transcript.follow()
        name, _, rest = event.text.removeprefix("/").partition(" ")
        if event.text.startswith("/") and name in BY_SLASH:
            self.perform(BY_SLASH[name], rest.strip())
        elif event.text.startswith("/") and "\n" not in event.text and name.isalpha():
            self.say(f"there is no /{name}: / alone lists all commands", "problem")
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
            self.say(f"{title}: {error}", "problem")

    async def ask(self, screen: Screen[T]) -> T | None:
        """Show a screen, and wait for what comes of it."""
        return await self.push_screen_wait(screen)

    async def put(self, question: Permitting) -> Permit:
        """Put a question above the prompt, and wait for the answer; it goes with whoever asked."""
        self.questions.mount(question)
        try:
            return await question.answer
        finally:
            question.remove()
            left = [one for one in self.questions.children if one is not question]
            (left[-1] if left else self.prompt).focus()

    def say(self, text: str, kind: EntryKind = "note") -> None:
        """Tell the user what came of what they did, where the conversation is."""
        self.transcript.add(ScreenEntry(kind, text))
        self.transcript.follow()

    def show_page(self, title: str, text: str) -> None:
        """Show a text that somebody asked for from its beginning, where the conversation is."""
        entry = ScreenEntry("page", f"{title}\n\n{text}")
        self.transcript.add(entry)
        self.transcript.reveal(entry)

    async def toggle(self, entry: ScreenEntry) -> None:
        """Open an entry where it stands, or close it."""
        if not entry.opened_text:
            entry.opened_text = opened(entry, await (await self.backend.conversation()).recall(entry.id))
        entry.open = not entry.open
        self.transcript.redraw(entry)
        self.transcript.reveal(entry)

    def action_open_newest(self) -> None:
        if found := next((entry for entry in reversed(self.transcript.entries) if entry.opens), None):
            self.open_entry(TranscriptView.Opened(found))

    def action_page(self, by: int) -> None:
        (self.transcript.scroll_page_up if by < 0 else self.transcript.scroll_page_down)(animate=False)

    @on(TranscriptView.Opened)
    def open_entry(self, event: TranscriptView.Opened) -> None:
        self.run_worker(self._try("What did that stand for?", lambda: self.toggle(event.entry)))

    # --- a turn -------------------------------------------------------------------------------------------------------

    def _begin(self, text: str) -> None:
        self.transcript.add(ScreenEntry("you", text))
        self._since = monotonic()
        self._turn = self.run_worker(self._run(text), group="turn")
        self._tick()

    async def _run(self, text: str) -> None:
        try:
            if text.startswith("!"):
                await self.hearing.run(text[1:])
                return
            async with aclosing(self.backend.agent.run(self.hearing.with_runs(text))) as events:
                async for event in events:
                    await self.hearing.hear(event)
        except asyncio.CancelledError:
            self.transcript.add(ScreenEntry("note", "Stopped. What was said until then is kept."))
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

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key) and event.key != "ctrl+c":
            self._hint = ""
        await super().on_event(event)

    async def action_interrupt(self) -> None:
        """Stop the answer, or clear the prompt; then leave."""
        if self._hint:
            await self.action_quit()
            return
        self._hint = "Ctrl+C again to quit"
        if self.busy:
            self.action_cancel()
            self._hint = f"stopped · {self._hint}"
        elif self.prompt.text:
            self.prompt.put_aside()
            self._hint = f"cleared, Up brings it back · {self._hint}"
        self._tick()

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
        waits = f" · {len(self._waiting)} waiting" if self._waiting else ""
        now = f"working {monotonic() - self._since:.0f} s · Esc stops{waits}" if self.busy else "ready"
        if self.questions.children:
            now = f"waits for your answer{waits}"
        below = "" if self.transcript.follows else " · more below: PageDown"
        said = f"{now}{below} · {plain(self.backend.agent.session)} · / commands · Ctrl+C twice quits"
        self._status.set_class(bool(self._hint), "urgent")
        self._status.update(Content(self._hint or said), layout=False)
