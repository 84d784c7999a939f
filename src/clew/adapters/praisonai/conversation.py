"""A conversation of one of PraisonAI's agents, and which other agent's tool began it."""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from clew.adapters.host import is_same_store
from clew.adapters.praisonai.compressor import PRAISON_FORMAT, newest, open_child
from clew.adapters.weaving import ChatMessage, messages_in, woven
from clew.agent.tasks import Output, Summaries
from clew.core.bridge import cross
from clew.core.view import View
from clew.exchange.thread import Thread, best
from clew.store.records import Origin


class Conversation:
    """An agent's conversation: what to send of it, and its sessions in PraisonAI's store.

    Whatever goes wrong in here is told, and the agent goes on without.
    """

    def __init__(self, thread: Thread, sessions: Any = None) -> None:
        self.thread = thread
        self.sessions = sessions
        self.history: list[ChatMessage] | None = None  # what it was, calls and results included; None: nobody knows yet
        self.asked: ChatMessage = {}  # the last request, whole
        self._edits = 0  # of the view that was last sent
        self._began = ""  # the session that was last put into the host's store

    async def fit(self, asked: ChatMessage) -> ChatMessage:
        """The body to send instead, or the same one. Raises `SecretFound`: what is refused may not go out."""
        sent = await best(self.thread.fit(asked, PRAISON_FORMAT), None)
        if sent is None:
            return asked
        if self.sessions is not None and len(sent.view.edits) != self._edits:
            await best(self._open_child(sent.view), None)
        return sent.body

    async def keep(self, answer: str) -> None:
        """Have the last answer in the log, too: perhaps nobody asks this agent again."""
        if answer and self.asked:
            said = [*self.asked["messages"], {"role": "assistant", "content": answer}]
            await best(self.thread.keep({**self.asked, "messages": said}, PRAISON_FORMAT), None)

    async def heard(self, usage: Any) -> None:
        """What the provider reported."""
        await best(self.thread.heard(usage), None)

    async def refused(self, error: Exception) -> bool:
        """Whether an error says that it was too long, and it will be shorter now."""
        return await best(self.thread.refused(error), False)

    async def full_history(self, history: Sequence[ChatMessage]) -> list[ChatMessage]:
        """A history with all that PraisonAI drops from it, in this run and in earlier ones."""
        if self.history is None:
            engine, scope, session = self.thread.controller.engine, self.thread.scope, self.thread.session
            self.history = await best(cross(messages_in(engine, scope, session)), [])
        return woven(history, self.history)

    async def _open_child(self, view: View) -> None:
        self._edits = len(view.edits)
        engine = self.thread.controller.engine
        began = await cross(newest(engine, view))
        if began is None or began.number == 1 or began.id == self._began:
            return
        self._began = began.id
        parent = self.thread.session if began.parent == began.branch else began.parent
        await open_child(self.sessions, engine, view, began, parent)

    def hang_under(self, parent: Thread, name: str) -> None:
        """Be a part of the work of another agent, unless this has begun already or that one is in another store."""
        thread = self.thread
        if (
            thread.last is None
            and thread.origin is None
            and parent.last
            and is_same_store(thread.controller.engine, parent.controller.engine)
        ):
            thread.origin = Origin("subagent", parent.last.view.branch)
            thread.session = thread.session or parent.name_of_child(name)


@dataclass(slots=True)
class CallUnderWay:
    """A call of a tool under way, and what other agents reported in the meantime, by their sessions."""

    caller: Thread
    reports: dict[str, str] = field(default_factory=dict)

    async def shortened(self, result: Any, summaries: Summaries) -> Any:
        """What the tool gave, with a summary instead of each report; a report that has none stays whole."""
        if not isinstance(result, str):
            return result
        for session, text in self.reports.items():
            report = Output(text)
            if text and text in result:
                await best(cross(summaries.summarize(report, name=session)), None)
            if report.context_summary:
                told = f"{report.context_summary}\n\n[a summary; the whole report is in session {session}]"
                result = result.replace(text, told)
        return result


CALLING: ContextVar[CallUnderWay | None] = ContextVar("clew_call", default=None)  # whose tool is running
