"""What our conversation managers share: the log, the hook before each call, a state that restores what was there."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from strands import Agent
from strands.agent.conversation_manager import ConversationManager, ProactiveCompressionConfig
from strands.agent.conversation_manager.compression.pin_message import apply_pin_first
from strands.hooks import AfterModelCallEvent, BeforeInvocationEvent, BeforeModelCallEvent, HookRegistry
from strands.types.agent import LocalAgent
from strands.types.content import Message, Messages

from clew.adapters.host import Host, Where
from clew.adapters.strands.messages import STRANDS_FORMAT, hear, let_go, open_thread, request_of, shortened, taken
from clew.adapters.strands.structured import is_structured
from clew.adapters.strands.tools import may_recall
from clew.core.bridge import cross, run
from clew.core.items import Scope
from clew.core.view import View
from clew.engine.settings import Compaction
from clew.errors import SecretFound
from clew.exchange.thread import Thread, warn
from clew.steps import null
from clew.steps.chapters.by_model import ByModel
from clew.steps.protocol import Step
from clew.steps.threshold import of_window

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
        engine: Where = None,
        session: str | None = None,
        scope: Scope = "default",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)  # theirs stays off: its hook would block the loop while it compresses
        self._when = of_window(proactive_compression)
        self._is_on = self._when is not None
        self.host = Host(engine, session=session, scope=scope, offer=False)
        self._threads: WeakKeyDictionary[LocalAgent, Thread] = WeakKeyDictionary()
        self._has_warned = False  # that its threshold cannot hold
        self._head: Messages = []  # what stands now for the messages that were removed

    def _step(self) -> Step:
        """How a history becomes shorter."""
        return null()

    def _author(self, agent: Agent) -> ByModel | None:
        """Who writes chapters, if a model does."""
        return None

    def _thread(self, agent: Agent) -> Thread:
        """The agent's conversation."""
        if agent not in self._threads:
            thread = open_thread(agent, self.host, step=self._step())
            thread.own = self._author(agent)
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
        let_go(self._threads, self.host)

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Always registered, as in Strands: whether there is something to do is seen at each call."""
        super().register_hooks(registry, **kwargs)
        registry.add_callback(BeforeModelCallEvent, self._fit)
        registry.add_callback(BeforeInvocationEvent, self._fit_structured)
        registry.add_callback(AfterModelCallEvent, self._hear)

    async def _fit(self, event: BeforeModelCallEvent) -> None:
        if self._is_on and event.projected_input_tokens is not None:
            await self._compress(event.agent)
        self._offer(event.agent)

    async def _fit_structured(self, event: BeforeInvocationEvent) -> None:
        if self._is_on and is_structured(event) and event.agent.messages:
            await self._compress(event.agent)

    def _offer(self, agent: Agent) -> None:
        """An id is of use to a model that can recall what it stands for."""
        try:
            may_recall(agent, self._thread, self._head)
        except Exception as error:
            warn("clew could not offer its tools", error)

    async def _compress(self, agent: Agent) -> None:
        try:
            with self._counted(agent):
                thread = self._thread(agent)
                self._pin(agent)
                view = (await thread.fit(request_of(agent), STRANDS_FORMAT)).view
                await self._tell_once(thread, view)
                await taken(thread, agent, view)
        except SecretFound:  # somebody said that such a thing must not be sent
            raise
        except Exception as error:
            warn("clew could not compress; all messages are sent", error)

    async def _tell_once(self, thread: Thread, view: View) -> None:
        """Say where the threshold that was asked for cannot hold."""
        if self._when and not self._has_warned:
            self._has_warned = True
            if moved := self._when.moved(
                await cross(thread.controller.engine.limits.target(self.host.scope, view.frame))
            ):
                log.warning("proactive_compression: %s", moved)

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
