"""Clew in Strands' newer facade: a plugin that does all of it, and a strategy for a pipeline of strategies."""

from collections.abc import Sequence
from typing import Any, Unpack
from uuid import uuid4
from weakref import WeakKeyDictionary

from strands import Agent
from strands.agent.conversation_manager import ConversationManager, NullConversationManager
from strands.experimental.context_manager import ContextState
from strands.hooks import (
    AfterInvocationEvent,
    AfterModelCallEvent,
    AfterToolCallEvent,
    BeforeInvocationEvent,
    BeforeToolCallEvent,
)
from strands.middleware import InvokeModelStage
from strands.middleware.stages import InvokeModelContext
from strands.plugins import Plugin
from strands.types.agent import LocalAgent
from strands.types.content import Message
from strands.types.exceptions import ContextWindowOverflowException
from strands.types.tools import ToolSpec

from clew.adapters.host import Host, Naming, Where, call_from, caller
from clew.adapters.strands.messages import (
    STRANDS_FORMAT,
    TOO_LONG,
    hear,
    let_go,
    open_thread,
    request,
    request_of,
    shortened,
    taken,
    with_system,
    written_by,
)
from clew.adapters.strands.structured import Structured
from clew.adapters.strands.tools import may_recall, tool_of
from clew.core.bridge import cross
from clew.core.items import Scope
from clew.errors import ClewError, SecretFound
from clew.exchange.thread import Thread, warn
from clew.store.records import Cause, Method, Origin
from clew.wire.formats.plain import fresh

STATUS_START = "<context_status>"  # how the status begins
TAKES_SYSTEM = "strands.models.openai"  # the module of the model that takes system messages anywhere


class ClewStrategy:
    """A strategy for `Agent(context_manager={"strategies": [...]})`: what leaves the messages can be recalled."""

    name = "clew"

    def __init__(
        self,
        engine: Where = None,
        *,
        session: str | None = None,
        scope: Scope = "default",
    ) -> None:
        self.host = Host(engine, session=session, scope=scope, offer=False)
        self._threads: WeakKeyDictionary[LocalAgent, Thread] = WeakKeyDictionary()

    def init(self, agent: Agent, stash: object = None) -> None:
        """Begin with an agent; clew's own log is its stash."""
        agent.add_hook(self._hear, AfterModelCallEvent)

    async def apply(self, context: ContextState) -> bool:
        """Make the messages fit; whether that changed them."""
        agent = context.agent
        try:
            if agent not in self._threads:
                self._threads[agent] = open_thread(agent, self.host)
                self._threads[agent].own = written_by(agent)
            thread = self._threads[agent]
            if context.overflow:
                changed = await shortened(thread, agent, ContextWindowOverflowException(TOO_LONG), None)
            else:
                changed = await taken(thread, agent, (await thread.fit(request_of(agent), STRANDS_FORMAT)).view)
            may_recall(agent, self._threads.__getitem__, agent.messages)
            return changed
        except Exception as error:
            warn("clew could not compress; the other strategies are used", error)
            return False

    def close(self) -> None:
        """Let go of a store that was opened for a path; the next call would open it again."""
        let_go(self._threads, self.host)

    async def _hear(self, event: AfterModelCallEvent) -> None:
        if thread := self._threads.get(event.agent):
            await hear(thread, event)


class Whole(NullConversationManager):
    """Leaves the messages as they are, instead of a manager whose state it keeps."""

    def __init__(self, other: ConversationManager) -> None:
        super().__init__()
        self._other = other

    def get_state(self) -> dict[str, Any]:
        """The other's: whoever goes back to it finds it."""
        return self._other.get_state()

    def restore_from_session(self, state: dict[str, Any]) -> list[Message] | None:
        """What the other would put before the messages."""
        before = self._other.restore_from_session(state)
        self.removed_message_count = self._other.removed_message_count
        return before

    def reduce_context(self, agent: Agent, e: Exception | None = None, **kwargs: Any) -> None:
        """As the other would, where clew could not help."""
        self._other.reduce_context(agent, e, **kwargs)


class ClewAgentPlugin(Plugin):
    """Each call sends what fits of an agent's messages, which themselves stay whole.

    With the method `llm`, the agent is told how full its window is, and may begin a new session. Its auxiliary model
    writes what stands in for old messages, unless it `asks` nobody.
    """

    name = "clew"

    def __init__(self, engine: Where = None, *, asks: bool = True, **options: Unpack[Naming]) -> None:
        super().__init__()
        self.host, self._asks = Host(engine, **options), asks
        self._threads: WeakKeyDictionary[LocalAgent, Thread] = WeakKeyDictionary()
        self._callers: dict[str, Thread | None] = {}
        self._structured = Structured(self._threads.get)

    def init_agent(self, agent: Agent) -> None:
        """Stand between an agent and its model."""
        _take_over(agent)
        try:
            self.thread(agent)
        except Exception as error:
            warn("clew could not open its store; it tries again with the next request", error)
        if self.host.offer:
            agent.tool_registry.process_tools([tool_of(tool, self.thread) for tool in self.host.tools()])
        agent.add_middleware(InvokeModelStage.Input, self._fit)
        agent.add_hook(self._begin, BeforeInvocationEvent)
        agent.add_hook(self._end, AfterInvocationEvent)
        agent.add_hook(self._hear, AfterModelCallEvent)
        agent.add_hook(self._lend, BeforeToolCallEvent)
        agent.add_hook(self._take_back, AfterToolCallEvent)
        self._structured.watch(agent)

    def thread(self, agent: Agent) -> Thread:
        """The conversation of an agent: its `controller` has the method and the engine."""
        if agent not in self._threads:
            thread = open_thread(agent, self.host)
            thread.own = written_by(agent) if self._asks else None
            self._threads[agent] = thread
        return self._threads[agent]

    def close(self) -> None:
        """Let go of a store that was opened for a path; the next request would open it again."""
        let_go(self._threads, self.host)

    async def switch(self, agent: Agent, method: Method) -> None:
        """Who decides from the next call on; remembered where the conversation has a name."""
        thread = self.thread(agent)
        thread.controller.method = method
        if thread.session is not None:
            await cross(thread.controller.save(thread.scope, thread.session))

    async def _fit(self, context: InvokeModelContext) -> InvokeModelContext:
        own = self._own(context.tool_specs)
        thread = self._threads.get(context.agent)
        if thread is None or context.model.stateful:  # then its provider keeps the conversation
            return context.replace(tool_specs=own)
        try:
            asked = request(context.model, context.messages, context.system_prompt, own)
            sent = (await thread.fit(asked, STRANDS_FORMAT)).body
            last = sent["messages"][-1]["content"][-1:]
        except SecretFound:  # somebody said that such a thing must not be sent
            raise
        except Exception as error:
            warn("clew failed; all messages are sent", error)
            return context.replace(tool_specs=own)
        tools = [tool["toolSpec"] for tool in sent.get("toolConfig", {}).get("tools", ())]
        told, messages = any(block.get("text", "").startswith(STATUS_START) for block in last), sent["messages"]
        if told and type(context.model).__module__ == TAKES_SYSTEM:
            told, messages = False, with_system(messages)
        dynamic = context.dynamic_trailing_blocks + told
        return context.replace(messages=messages, tool_specs=tools, dynamic_trailing_blocks=dynamic)

    def _own(self, tools: Sequence[ToolSpec]) -> list[ToolSpec]:
        """The tools that are not of clew: those are offered as the method wants it."""
        return [spec for spec in tools if not self.host.is_ours(spec["name"])]

    async def _end(self, event: AfterInvocationEvent) -> None:
        """Have the answer in the log, too: perhaps nobody asks this agent again."""
        agent, thread = event.agent, self._threads.get(event.agent)
        if thread is None or agent.model.stateful or not agent.messages:
            return
        try:
            own = self._own(agent.tool_registry.get_all_tool_specs())
            await thread.keep(request(agent.model, fresh(agent.messages), agent.system_prompt, own), STRANDS_FORMAT)
        except Exception as error:
            warn("clew could not log the last answer", error)

    async def _hear(self, event: AfterModelCallEvent) -> None:
        """Learn from what the provider reported; after a refusal, have less sent."""
        thread, error = self._threads.get(event.agent), event.exception
        if thread is None:
            return
        await hear(thread, event)
        if isinstance(error, ContextWindowOverflowException):
            try:
                event.retry = await thread.refused(error.__cause__ or error) or await thread.refused(TOO_LONG)
            except Exception as fault:
                warn("clew could not shorten a refused request", fault)

    async def _begin(self, event: BeforeInvocationEvent) -> None:
        """Hang what a tool of another agent begins under that agent's conversation, and what a swarm hands over too."""
        try:
            thread = self.thread(event.agent)
            await self.host.load(thread)
        except Exception as error:
            warn("clew could not find this conversation", error)
            return
        cause: Cause = "subagent" if caller() else "handoff"
        parent = caller() or event.invocation_state.get(self.name)
        if parent is not None and parent is not thread and parent.last is not None and not event.agent.messages:
            thread.origin = Origin(cause, parent.last.view.branch)
            thread.session = f"{parent.session or 'agent'}-{event.agent.name}-{uuid4().hex[:8]}"
        event.invocation_state[self.name] = thread

    def _lend(self, event: BeforeToolCallEvent) -> None:
        """While a tool runs, whoever it calls is called by this agent."""
        self._callers[event.tool_use["toolUseId"]] = caller()
        call_from(self._threads.get(event.agent))

    def _take_back(self, event: AfterToolCallEvent) -> None:
        """And no longer."""
        call_from(self._callers.pop(event.tool_use["toolUseId"], None))


def _take_over(agent: Agent) -> None:
    """Have nobody else drop messages of an agent."""
    manager = agent.conversation_manager
    # Their hooks are there already, and would drop what the log has not seen yet.
    if getattr(manager, "per_turn", False) or getattr(manager, "_compression_threshold", None):
        raise ClewError(
            f"{type(manager).__name__} drops messages before calls, which conflicts with the plugin:  "
            "remove per_turn and proactive_compression"
        )
    if not isinstance(manager, NullConversationManager):
        agent.conversation_manager = Whole(manager)
