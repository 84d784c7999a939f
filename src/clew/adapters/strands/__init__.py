"""Clew in Strands Agents: conversation managers that take Strands' own arguments, and lose nothing.

What leaves an agent's messages is in clew's log, and what stands there instead says how to get it back.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from clew.errors import MissingExtra

try:
    from strands import Agent
except ImportError:
    raise MissingExtra("clew.adapters.strands needs Strands Agents", "strands") from None

from strands.agent import conversation_manager as theirs
from strands.agent.conversation_manager import ProactiveCompressionConfig
from strands.agent.conversation_manager.conversation_manager import DEFAULT_COMPRESSION_THRESHOLD
from strands.types.content import Messages

from clew.adapters.host import Where, renamed
from clew.adapters.strands.context import ClewAgentPlugin, ClewStrategy
from clew.adapters.strands.keeping import Keeping
from clew.adapters.strands.messages import hosted, shortened, written_by, written_by_agent
from clew.adapters.strands.protecting import Leaving, Protecting
from clew.core.bridge import run
from clew.core.items import Scope
from clew.exchange.thread import warn
from clew.steps import ClearResults, Cut, Offload, Trim, summarizing
from clew.steps.chapters.by_model import ByModel
from clew.steps.protocol import Pipeline, Step

__all__ = [
    "DEFAULT_COMPRESSION_THRESHOLD",
    "ClewAgentPlugin",
    "ClewStrategy",
    "NullConversationManager",
    "ProactiveCompressionConfig",
    "SlidingWindowConversationManager",
    "SummarizingConversationManager",
    "hosted",
]

__getattr__ = renamed(__name__, Clew="ClewAgentPlugin")


class NullConversationManager(Keeping, theirs.NullConversationManager):
    """Changes nothing, and has all of it in the log."""

    async def _compress(self, agent: Agent) -> None:
        """As Strands' own, it has nothing to compress with."""

    def apply_management(self, agent: Agent, **kwargs: Any) -> None:
        """Keep what was said."""
        self._keep(agent)


class SlidingWindowConversationManager(Keeping, theirs.SlidingWindowConversationManager):
    """Keeps the newest messages; of what leaves before its time, one line remains with an id to recall it by."""

    def __init__(
        self,
        window_size: int = 40,
        should_truncate_results: bool = True,
        *,
        per_turn: bool | int = False,
        pin_first: int | None = None,
        proactive_compression: bool | ProactiveCompressionConfig | None = None,
        engine: Where = None,
        session: str | None = None,
        scope: Scope = "default",
    ) -> None:
        super().__init__(
            window_size,
            should_truncate_results,
            per_turn=per_turn,
            pin_first=pin_first,
            proactive_compression=proactive_compression,
            engine=engine,
            session=session,
            scope=scope,
        )

    def _step(self) -> Step:
        return Protecting(Cut(), firm=True)

    def reduce_context(self, agent: Agent, e: Exception | None = None, **kwargs: Any) -> None:
        """Cut to the window as Strands does; below it, and where a provider refused, as clew does."""
        theirs = partial(super().reduce_context, agent, e, **kwargs)
        if self.window_size == 0 or (e is None and len(agent.messages) > self.window_size):
            with self._counted(agent):
                self._slide(agent, theirs)
        else:
            shortens = e is not None and self.should_truncate_results
            step = Protecting(Pipeline(Offload(), ClearResults(), Trim())) if shortens else None
            self._shorten(agent, e, step, theirs)

    def _slide(self, agent: Agent, theirs: Callable[[], None]) -> None:
        """What Strands would drop leaves one line; unset, or where nothing would be left to tell it, nothing does."""
        self._keep(agent)
        before = list(agent.messages)
        theirs()
        kept = _tail(before, agent.messages)
        if self._is_on and 0 < kept < len(before):
            dropped, agent.messages[:] = list(agent.messages), before
            try:
                is_said = run(shortened(self._thread(agent), agent, None, Leaving(kept)))
            except Exception as error:
                is_said = False
                warn("clew could not say what left", error)
            if not is_said:
                agent.messages[:] = dropped


def _tail(before: Messages, after: Messages) -> int:
    """How many messages at the end are the same ones."""
    same = 0
    while same < min(len(before), len(after)) and before[-1 - same] is after[-1 - same]:
        same += 1
    return same


class SummarizingConversationManager(Keeping, theirs.SummarizingConversationManager):
    """A summary of what is old, written by the agent's auxiliary model, and checked by code, which writes otherwise."""

    def __init__(
        self,
        summary_ratio: float = 0.3,
        preserve_recent_messages: int = 10,
        summarization_agent: Agent | None = None,
        summarization_system_prompt: str | None = None,
        *,
        pin_first: int | None = None,
        proactive_compression: bool | ProactiveCompressionConfig | None = None,
        engine: Where = None,
        session: str | None = None,
        scope: Scope = "default",
    ) -> None:
        super().__init__(
            summary_ratio,
            preserve_recent_messages,
            summarization_agent,
            summarization_system_prompt,
            pin_first=pin_first,
            proactive_compression=proactive_compression,
            engine=engine,
            session=session,
            scope=scope,
        )

    def _step(self) -> Step:
        return Protecting(summarizing(), self.preserve_recent_messages, self.summary_ratio)

    def _author(self, agent: Agent) -> ByModel | None:
        if self.summarization_agent is not None:
            return written_by_agent(self.summarization_agent, agent)
        return written_by(agent, self.summarization_system_prompt or "")

    def reduce_context(self, agent: Agent, e: Exception | None = None, **kwargs: Any) -> None:
        """Sum up what is old; should no model help, code does it alone."""
        self._shorten(agent, e, None, partial(super().reduce_context, agent, e, **kwargs))
