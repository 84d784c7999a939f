"""Clew in Strands Agents: conversation managers that take Strands' own arguments, and lose nothing.

What leaves an agent's messages is in clew's log, and what stands there instead says how to get it back.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from clew.errors import MissingExtra, SecretFound

try:
    from strands import Agent
except ImportError:
    raise MissingExtra("clew.adapters.strands needs Strands Agents", "strands") from None

from strands.agent import conversation_manager as theirs
from strands.agent.conversation_manager import ConversationManager, ProactiveCompressionConfig
from strands.agent.conversation_manager.compression.pin_message import apply_pin_first
from strands.agent.conversation_manager.conversation_manager import DEFAULT_COMPRESSION_THRESHOLD
from strands.hooks import AfterModelCallEvent, BeforeInvocationEvent, BeforeModelCallEvent, HookRegistry
from strands.types.agent import LocalAgent
from strands.types.content import Message, Messages

from clew.adapters.strands.context import Clew, ClewStrategy
from clew.adapters.strands.messages import (
    STRANDS_FORMAT,
    hear,
    hosted,
    let_go,
    open_thread,
    request_of,
    shortened,
    taken,
    written_by,
    written_by_agent,
)
from clew.adapters.strands.protecting import Protecting
from clew.adapters.strands.structured import is_structured
from clew.core.bridge import run
from clew.core.items import Scope
from clew.engine.engine import Engine
from clew.engine.settings import Compaction
from clew.exchange.thread import Thread, warn
from clew.steps import ClearResults, Cut, Offload, Trim, null, summarizing
from clew.steps.notes.writer import Writer
from clew.steps.protocol import Pipeline, Step
from clew.steps.threshold import of_window

__all__ = [
    "DEFAULT_COMPRESSION_THRESHOLD",
    "Clew",
    "ClewStrategy",
    "NullConversationManager",
    "ProactiveCompressionConfig",
    "SlidingWindowConversationManager",
    "SummarizingConversationManager",
    "hosted",
]

HEAD_KEY = "head"  # under which a manager's state has the messages that stand for those it removed

log = logging.getLogger("clew")


class Keeping(ConversationManager):
    """What our managers share: the log, the hook before each call, and a state that restores what was there."""

    pin_first: int | None = None
    _pin_first_applied = False  # as in those managers of Strands that pin: they look at it too

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
        self._when = of_window(proactive_compression)
        self._is_on = self._when is not None
        self._where, self._session, self._scope = engine, session, scope
        self._threads: WeakKeyDictionary[LocalAgent, Thread] = WeakKeyDictionary()
        self._head: Messages = []  # what stands now for the messages that were removed

    def _step(self) -> Step:
        """How a history becomes shorter."""
        return null()

    def _writer(self, agent: Agent) -> Writer | None:
        """Who writes notes, if anybody does."""
        return None

    def _thread(self, agent: Agent) -> Thread:
        """The agent's conversation."""
        if agent not in self._threads:
            given: dict[str, Any] = {"step": self._step()}
            if writer := None if isinstance(self._where, Engine) else self._writer(agent):
                given["writer"] = writer
            thread = open_thread(agent, self._where, self._session, self._scope, **given)
            engine = thread.controller.engine
            on: Compaction = "on" if self._when else "off"
            engine.settings = replace(engine.settings, threshold=self._when, compaction=on)
            self._threads[agent] = thread
        return self._threads[agent]

    def _pin(self, agent: Agent) -> None:
        """Pin what the conversation begins with, once it is that long."""
        if self.pin_first and not self._pin_first_applied and len(agent.messages) >= self.pin_first:
            self._pin_first_applied = True
            apply_pin_first(agent.messages, self.pin_first)

    def close(self) -> None:
        """Let go of a store that was opened for a path; the next call would open it again."""
        let_go(self._threads, self._where)

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Always registered, as in Strands: whether there is something to do is seen at each call."""
        super().register_hooks(registry, **kwargs)
        registry.add_callback(BeforeModelCallEvent, self._fit)
        registry.add_callback(BeforeInvocationEvent, self._fit_structured)
        registry.add_callback(AfterModelCallEvent, self._hear)

    async def _fit(self, event: BeforeModelCallEvent) -> None:
        if self._is_on and event.projected_input_tokens is not None:
            await self._compress(event.agent)

    async def _fit_structured(self, event: BeforeInvocationEvent) -> None:
        if self._is_on and is_structured(event) and event.agent.messages:
            await self._compress(event.agent)

    async def _compress(self, agent: Agent) -> None:
        try:
            with self._counted(agent):
                thread = self._thread(agent)
                self._pin(agent)
                await taken(thread, agent, (await thread.fit(request_of(agent), STRANDS_FORMAT)).view)
        except SecretFound:  # somebody said that such a thing must not be sent
            raise
        except Exception as error:
            warn("clew could not compress; all messages are sent", error)

    async def _hear(self, event: AfterModelCallEvent) -> None:
        if self._is_on and (thread := self._threads.get(event.agent)):
            await hear(thread, event)

    def _shorten(self, agent: Agent, e: Exception | None, step: Step | None, otherwise: Callable[[], None]) -> None:
        """Have the agent hold less; where clew fails or finds nothing after a refusal, as Strands does `otherwise`."""
        shorter = None
        try:
            with self._counted(agent):
                thread = self._thread(agent)
                self._pin(agent)
                shorter = run(shortened(thread, agent, e, step))
        except Exception as error:
            warn("clew could not compress; Strands' own method is used", error)
        if shorter is None or (e is not None and not shorter):
            with self._counted(agent):
                otherwise()  # raises where it finds nothing either
        elif not shorter:
            log.warning("there is nothing to compress in %d messages", len(agent.messages))

    def _keep(self, agent: Agent) -> None:
        """Have all that is said now in the log."""
        try:
            run(self._thread(agent).keep(request_of(agent), STRANDS_FORMAT))
        except Exception as error:
            warn("clew could not log the messages", error)

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

    def get_state(self) -> dict[str, Any]:
        """As Strands has it, and what stands for the messages that were removed."""
        return {**super().get_state(), HEAD_KEY: self._head}

    def restore_from_session(self, state: dict[str, Any]) -> list[Message] | None:
        """What to put before the messages of the session; a state that Strands' own manager saved will do."""
        before = super().restore_from_session(state) or []
        self._head = state.get(HEAD_KEY, before)
        self._pin_first_applied = self.removed_message_count > 0  # it has them, and begins otherwise now
        return list(self._head) or None


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

    def _step(self) -> Step:
        return Protecting(Cut(), firm=True)

    def reduce_context(self, agent: Agent, e: Exception | None = None, **kwargs: Any) -> None:
        """Cut to the window as Strands does; below it, and where a provider refused, as clew does."""
        theirs = partial(super().reduce_context, agent, e, **kwargs)
        if self.window_size == 0 or (e is None and len(agent.messages) > self.window_size):
            self._keep(agent)
            with self._counted(agent):
                theirs()
        else:
            shortens = e is not None and self.should_truncate_results
            step = Protecting(Pipeline(Offload(), ClearResults(), Trim())) if shortens else None
            self._shorten(agent, e, step, theirs)


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

    def _writer(self, agent: Agent) -> Writer | None:
        if self.summarization_agent is not None:
            return written_by_agent(self.summarization_agent, agent)
        return written_by(agent, self.summarization_system_prompt or "")

    def reduce_context(self, agent: Agent, e: Exception | None = None, **kwargs: Any) -> None:
        """Sum up what is old; should no model help, code does it alone."""
        self._shorten(agent, e, None, partial(super().reduce_context, agent, e, **kwargs))
