"""Clew in Strands Agents: conversation managers that take Strands' own arguments, and lose nothing.

What leaves an agent's messages is in clew's log, and what stands there instead says how to get it back.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from clew.errors import ClewError

try:
    from strands import Agent
except ImportError:
    raise ClewError("clew.adapters.strands needs Strands Agents: pip install 'clew[strands]'") from None

from strands.agent import conversation_manager as theirs
from strands.agent.conversation_manager import ConversationManager, ProactiveCompressionConfig
from strands.agent.conversation_manager.compression.pin_message import apply_pin_first
from strands.agent.conversation_manager.conversation_manager import DEFAULT_COMPRESSION_THRESHOLD
from strands.hooks import AfterModelCallEvent, BeforeModelCallEvent, HookRegistry
from strands.types.content import Message, Messages
from strands.types.exceptions import ContextWindowOverflowException

from clew.adapters.strands.context import Clew, ClewStrategy
from clew.adapters.strands.messages import (
    FORMAT,
    Protecting,
    hear,
    open_thread,
    request_of,
    shortened,
    taken,
    written_by,
    written_by_agent,
)
from clew.adapters.thread import Thread
from clew.bridge import run
from clew.drafting.writing import Writer
from clew.engine import Engine
from clew.items import Scope
from clew.proactive import proactive
from clew.step import Pipeline, Step
from clew.steps import ClearResults, Offload, Trim, sliding, summarizing

__all__ = [
    "DEFAULT_COMPRESSION_THRESHOLD",
    "Clew",
    "ClewStrategy",
    "NullConversationManager",
    "ProactiveCompressionConfig",
    "SlidingWindowConversationManager",
    "SummarizingConversationManager",
]

HEAD = "head"  # under which a manager's state has the messages that stand for those it removed

log = logging.getLogger("clew")


class Keeping(ConversationManager):
    """What our managers share: the log, the hook before each call, and a state that restores what was there."""

    pin_first: int | None = None

    def __init__(
        self,
        *args: Any,
        proactive_compression: bool | ProactiveCompressionConfig | None = None,
        engine: Engine | str | Path | None = None,
        session: str | None = None,
        scope: Scope = "default",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)  # theirs stays off: its hook would block the loop while it compresses
        self._is_on = proactive(proactive_compression) is not None
        self._when = proactive_compression
        self._where, self._session, self._scope = engine, session, scope
        self._thread: Thread | None = None
        self._head: Messages = []  # what stands now for the messages that were removed
        self._has_pinned = False

    def _step(self) -> Step:
        """How a history becomes shorter."""
        return sliding()

    def _writer(self, agent: Agent) -> Writer | None:
        """Who writes notes, if anybody does."""
        return None

    def _open(self, agent: Agent) -> Thread:
        """The agent's conversation, with the pins that it begins with once it is that long."""
        if self._thread is None:
            given = {"step": self._step(), "writer": self._writer(agent)}
            self._thread = open_thread(agent, self._where, self._session, self._scope, **given)
            if self._is_on or not isinstance(self._where, Engine):
                self._thread.helm.engine.proactive = self._when
        if self.pin_first and not self._has_pinned and len(agent.messages) >= self.pin_first:
            self._has_pinned = True
            if not self.removed_message_count:  # a restored one has them, and begins otherwise now
                apply_pin_first(agent.messages, self.pin_first)
        return self._thread

    # --- before and after each call -------------------------------------------------------------------------------

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Always registered, as in Strands: whether there is something to do is seen at each call."""
        super().register_hooks(registry, **kwargs)
        registry.add_callback(BeforeModelCallEvent, self._fit)
        registry.add_callback(AfterModelCallEvent, self._hear)

    async def _fit(self, event: BeforeModelCallEvent) -> None:
        if not self._is_on or event.projected_input_tokens is None:
            return
        agent = event.agent
        try:
            with self._counted(agent):
                thread = self._open(agent)
                await taken(thread, agent, (await thread.fit(request_of(agent), FORMAT)).view)
        except Exception:
            log.warning("clew could not compress: the call goes on with all that was said", exc_info=True)

    async def _hear(self, event: AfterModelCallEvent) -> None:
        if self._is_on and self._thread is not None:
            await hear(self._thread, event)

    # --- shorter messages -----------------------------------------------------------------------------------------

    def _shorten(self, agent: Agent, e: Exception | None, step: Step | None, otherwise: Callable[[], None]) -> None:
        """Have the agent hold less; what Strands does `otherwise` is done only where clew fails."""
        try:
            with self._counted(agent):
                shorter = run(shortened(self._open(agent), agent, e, step))
        except Exception:
            log.warning("clew could not compress: it is left to Strands", exc_info=True)
            with self._counted(agent):
                otherwise()
            return
        if not shorter and e is not None:
            raise ContextWindowOverflowException("Unable to compress the conversation: nothing may leave it") from e
        if not shorter:
            log.warning("there is nothing to compress in %d messages", len(agent.messages))

    def _keep(self, agent: Agent) -> None:
        """Have all that is said now in the log."""
        try:
            run(self._open(agent).fit(request_of(agent), FORMAT))
        except Exception:
            log.warning("clew could not keep what is about to leave the messages", exc_info=True)

    @contextmanager
    def _counted(self, agent: Agent) -> Iterator[None]:
        """Count the messages that are gone afterwards, not those that were meant to go."""
        before, removed = list(agent.messages), self.removed_message_count
        try:
            yield
        finally:
            self.removed_message_count = removed
            self._count(before, agent.messages)

    def _count(self, before: Messages, after: Messages) -> None:
        """A session has every message that was ever added. Those after `removed_message_count` follow the head."""
        head = len(self._head) if before[: len(self._head)] == self._head else 0
        rest = 0
        while rest < min(len(before) - head, len(after)) and before[-1 - rest] is after[-1 - rest]:
            rest += 1
        self.removed_message_count += len(before) - head - rest
        self._head = after[: len(after) - rest]

    # --- state ----------------------------------------------------------------------------------------------------

    def get_state(self) -> dict[str, Any]:
        """As Strands has it, and what stands for the messages that were removed."""
        return {**super().get_state(), HEAD: self._head}

    def restore_from_session(self, state: dict[str, Any]) -> list[Message] | None:
        """What to put before the messages of the session; a state that Strands' own manager saved will do."""
        before = super().restore_from_session(state) or []
        self._head = state.get(HEAD, before)
        return list(self._head) or None


class NullConversationManager(Keeping, theirs.NullConversationManager):
    """Changes nothing, and has all of it in the log."""

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
        engine: Engine | str | Path | None = None,
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

    def reduce_context(self, agent: Agent, e: Exception | None = None, **kwargs: Any) -> None:
        """Cut to the window as Strands does; below it, and where a provider refused, as clew does."""
        theirs = partial(super().reduce_context, agent, e, **kwargs)
        if self.window_size == 0 or (e is None and len(agent.messages) > self.window_size):
            self._keep(agent)
            with self._counted(agent):
                theirs()
        else:
            cheap = (Offload(), ClearResults()) if e is not None and self.should_truncate_results else ()
            self._shorten(agent, e, Protecting(Pipeline(*cheap, Trim())), theirs)


class SummarizingConversationManager(Keeping, theirs.SummarizingConversationManager):
    """A summary of what is old, written by code; the agent's auxiliary model adds notes, which code checks."""

    def __init__(
        self,
        summary_ratio: float = 0.3,
        preserve_recent_messages: int = 10,
        summarization_agent: Agent | None = None,
        summarization_system_prompt: str | None = None,
        *,
        pin_first: int | None = None,
        proactive_compression: bool | ProactiveCompressionConfig | None = None,
        engine: Engine | str | Path | None = None,
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

    def _writer(self, agent: Agent) -> Writer:
        if self.summarization_agent is not None:
            return written_by_agent(self.summarization_agent)
        return written_by(agent.aux_model, self.summarization_system_prompt or "")

    def reduce_context(self, agent: Agent, e: Exception | None = None, **kwargs: Any) -> None:
        """Sum up what is old; should no model help, code does it alone."""
        self._shorten(agent, e, None, partial(super().reduce_context, agent, e, **kwargs))
