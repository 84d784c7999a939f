"""Parts of an agent's work, done by agents of its own: what comes back is all they said, or a summary of it."""

from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from clew.agent.control.controller import TOOL_CHARACTERS, framed
from clew.agent.events import Answered
from clew.agent.loop import Agent
from clew.agent.tasks import Strategy, Summaries
from clew.agent.tools import Plan, Tool, Toolbox
from clew.core.arguments import takes
from clew.errors import ClewError, ToolError
from clew.text.excerpts import excerpt
from clew.text.framing import neutral

DELEGATE, REPORT = "delegate", "read_report"

_NAME = {"type": "string", "description": "A word or two that say what the part is, such as tests."}
_TASK = {"type": "string", "description": "What to do, with all that one must know to do it: it sees nothing else."}
_SESSION = {"type": "string", "description": "The sub-agent, as its report named it."}
_LINES = {"type": "string", "description": "Such as 10-40."}
_PATTERN = {"type": "string", "description": "Only the lines around what matches."}


@dataclass(slots=True)
class DelegationReport:
    """What came of a part of the work, and the session in which it was done."""

    session: str
    raw: str
    context_summary: str | None = None

    def __str__(self) -> str:
        if self.context_summary is None:
            return f"{neutral(self.raw)}\n\n[the report of sub-agent {self.session}]"
        return f"{self.context_summary}\n\n[a summary; {REPORT} has all that sub-agent {self.session} reported]"


@dataclass(frozen=True, slots=True)
class Delegation:
    """Has parts of an agent's work done by its children, who have a toolbox of their own."""

    agent: Agent
    toolbox: Toolbox
    strategy: Strategy = "full"  # how the agent reads what they report
    summaries: Summaries | None = None

    async def ask(self, name: str, task: str) -> DelegationReport:
        """Have a part of the work done. Raises `ToolError` where it was not."""
        child = self.agent.child("-".join(name.split()) or "part", self.toolbox)
        answer: Answered | None = None
        try:
            async with aclosing(child.run(task)) as events:
                async for event in events:
                    answer = event if isinstance(event, Answered) else answer
        except ClewError as error:
            raise ToolError(f"sub-agent {child.session} failed: {error}") from error
        if answer is None or not answer.text.strip():
            raise ToolError(
                f"sub-agent {child.session} reported nothing: {answer.stop if answer else 'it was stopped'}"
            )
        report = DelegationReport(child.session, answer.text)
        if self.strategy == "summarized" and self.summaries:
            await self.summaries.summarize(report, name=child.session)
        return report

    async def read(self, session: str, lines: str = "", pattern: str = "") -> str:
        """What one of the agent's own children reported, or some of it. Raises `ToolError` for anybody else's."""
        engine, scope = self.agent.controller.engine, self.agent.scope
        own, branch = await engine.named(scope, self.agent.session), await engine.named(scope, session)
        if branch is None or own not in {before for before, _ in await engine.store.ancestry(scope, branch)}:
            raise ToolError(f"no sub-agent of yours is called {session}")
        items = [node.item for node in await engine.history(scope, branch)]
        start = max((at + 1 for at, item in enumerate(items) if item.role != "assistant"), default=0)
        text = "\n".join(item.text for item in items[start:] if item.kind == "text")
        return framed(excerpt(text, session, lines, pattern, TOOL_CHARACTERS))

    def tools(self) -> list[Tool]:
        """What the agent can call."""
        return [
            Tool(
                DELEGATE,
                "Have a part of the work done by a sub-agent, which reports when it is done.",
                takes("name", "task", name=_NAME, task=_TASK),
                "read",  # its own tools ask for what they want
                self._plan_ask,
            ),
            Tool(
                REPORT,
                "Read what a sub-agent reported, whole or some lines of it.",
                takes("session", session=_SESSION, lines=_LINES, pattern=_PATTERN),
                "read",
                self._plan_read,
            ),
        ]

    async def _plan_ask(self, name: str, task: str) -> Plan:
        async def work() -> str:
            return str(await self.ask(name, task))

        return Plan(f"{name}: {task}", work)

    async def _plan_read(self, session: str, lines: str = "", pattern: str = "") -> Plan:
        return Plan(session, partial(self.read, session, lines, pattern))


def let_delegate(
    agent: Agent, toolbox: Toolbox, strategy: Strategy = "full", summaries: Summaries | None = None
) -> Delegation:
    """Let an agent have parts of its work done by children with this toolbox, beside the tools that it has."""
    delegation = Delegation(agent, toolbox, strategy, summaries)
    agent.toolbox = agent.toolbox.beside(delegation.tools())  # its children may have the one it had
    return delegation
