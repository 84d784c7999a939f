"""What an agent does, in the conversation as it happens; and commands that the user runs beside it."""

from typing import TYPE_CHECKING

from clew.agent import AgentEvent, Answered, Compacted, Ran, Retrying, Running
from clew.chat.entries import BRIEF_LINES, ScreenEntry, called, came, kept, standing
from clew.clients.voices import OWN_COMMAND
from clew.errors import ClewError, ToolError
from clew.llm.streaming import Text, Thought
from clew.steps.worklog.blocks import blocks

if TYPE_CHECKING:
    from clew.chat.app import Chat

LIVE_CHARACTERS = 4_000  # the end of what a running command wrote, of which the last lines are shown


class Hearing:
    """Writes down what is heard."""

    def __init__(self, chat: "Chat") -> None:
        self._chat = chat
        self._written = ""  # by a command that runs now, as far as it is kept
        self._fresh = False  # there is more than was drawn
        self._live: ScreenEntry | None = None
        self._known = ""  # the session whose beginning was shown last
        self._ran: list[str] = []  # what the user ran since the agent heard of it

    async def hear(self, event: AgentEvent) -> None:
        """Show what the agent did."""
        chat = self._chat
        match event:
            case Text(delta):
                chat.transcript.hear("agent", delta)
            case Thought(delta):
                chat.transcript.hear("thought", delta)
            case Running(name=name, arguments=given):
                chat.transcript.add(called(name, given))
            case Ran(text=text, failed=failed):
                self._end(text, failed)
                chat.measure()
            case Compacted():
                await self.tell_compaction()
            case Retrying(why=why, seconds=seconds):
                when = f" after {seconds:.0f} s" if seconds else " with less"
                chat.transcript.add(ScreenEntry("note", f"{why}: trying again{when}"))
            case Answered(stop=stop) if stop != "end":
                chat.transcript.add(ScreenEntry("note", f"stopped: {stop}"))

    # --- compactions --------------------------------------------------------------------------------------------------

    async def resume(self, begun: bool) -> None:
        """Know which session is on the screen."""
        backend = self._chat.backend
        try:
            self._known = (await backend.sessions.get(backend.agent.session)).id if begun else ""
        except ClewError:
            self._known = ""

    async def tell_compaction(self) -> None:
        """Say what left the window and what stands there now, once."""
        chat, backend = self._chat, self._chat.backend
        session = await backend.sessions.get(backend.agent.session)
        if session.id == self._known:
            return
        self._known = session.id
        found = await backend.lost()
        what = "A new session begins" if session.cause == "handoff" else "Compacted"
        note = f"{what}: {found.before:,} → {found.after:,} tokens; {kept(found)}. /lost says what left · /undo"
        made = blocks(await backend.agent.view())
        chapters = {block.recall: block for block, _ in made.values()}
        stand_ins = [
            standing(one.id, chapters.get(one.id), one.originals, f", {one.before:,} → {one.after:,} tokens")
            for one in found.stand_ins
        ]
        chat.transcript.add(ScreenEntry("note", note), *stand_ins)
        chat.measure()

    # --- commands that run --------------------------------------------------------------------------------------------

    def write(self, text: str) -> None:
        """Take what a running command wrote; it is drawn with the next look at the clock."""
        self._written = (self._written + text)[-LIVE_CHARACTERS:]
        self._fresh = True

    def draw(self) -> None:
        """Show the last lines of a running command."""
        if not self._fresh:
            return
        self._fresh = False
        if self._live is None:
            self._live = ScreenEntry("result", "")
            self._chat.transcript.add(self._live)
        self._live.text = "\n".join(self._written.rstrip().split("\n")[-BRIEF_LINES:])
        self._chat.transcript.redraw(self._live)

    def _end(self, text: str, failed: bool = False) -> None:
        """Show what came of a tool, in the place of what it wrote meanwhile."""
        entry, shown = self._live, came(text, failed)
        self.stop()
        if entry is None or entry not in self._chat.transcript.entries:
            self._chat.transcript.add(shown)
            return
        entry.kind, entry.text, entry.opened_text = shown.kind, shown.text, shown.opened_text
        self._chat.transcript.redraw(entry)

    def stop(self) -> None:
        """No command runs any more."""
        self._written, self._fresh, self._live = "", False, None

    async def run(self, command: str) -> None:
        """Run a command that the user typed; the agent hears of it with the next message."""
        try:
            text = await self._chat.backend.agent.toolbox.tools["run"].run({"command": command})
        except ToolError as error:
            self._end(str(error), failed=True)
            return
        self._end(text)
        self._ran.append(f"{OWN_COMMAND}{command}]\n{text}")

    def with_runs(self, text: str) -> str:
        """A message of the user, with what was run since the last one."""
        whole = text + "".join(self._ran)
        self._ran.clear()
        return whole
