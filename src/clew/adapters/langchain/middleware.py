"""The middleware: it finds out whose conversation a call belongs to, and answers calls of clew's tools."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.tools.tool_node import ToolCallRequest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.config import get_config
from langgraph.runtime import ExecutionInfo
from langgraph.types import Command

from clew import catalog
from clew.adapters.langchain.call import FittedCall
from clew.agent.control import ContextController, SentBody, offered
from clew.agent.results import Outcome
from clew.core.bridge import cross, run
from clew.core.caches import Recent
from clew.core.items import Scope
from clew.engine.engine import Engine
from clew.exchange.thread import Thread, best, engine_at, warn
from clew.steps.chapters.allowance import Allowance
from clew.store.records import Method, Origin
from clew.wire.convert.tools import ToolDeclaration

CONVERSATIONS = 1_000  # of which it is known what was last sent
UNAVAILABLE = Outcome("Error: recall is unavailable right now; continue without it", failed=True)


class _Place(NamedTuple):
    """Where a node runs: the names of its conversation and of LangGraph's thread, and who called its agent."""

    session: str | None
    thread_id: str | None
    parent: Thread | None


class _Caller(NamedTuple):
    thread: Thread | None
    place: _Place


_caller: ContextVar[_Caller | None] = ContextVar("clew_langchain_caller", default=None)  # whose tool is running


class ClewMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """For `create_agent(..., middleware=[ClewMiddleware("agent.db")])`: each call fits; the state stays whole.

    With the method `llm`, the agent is told how full its window is, and may begin a new session.
    """

    def __init__(
        self,
        engine: Engine | str | Path | None = None,
        *,
        session: str | None = None,
        scope: Scope = "default",
        method: Method | None = None,
        when: str = "",
        how: str = "",
        offer: bool = True,
    ) -> None:
        super().__init__()
        self._where, self._session, self._scope = engine, session, scope
        self._method, self._when, self._how, self._offer = method, when, how, offer
        # All of them: which ones a model is offered is seen at each call.
        self.tools = [_tool(tool) for tool in offered("llm", False, when, how)] if offer else []
        self._threads: Recent[str, Thread] = Recent(CONVERSATIONS)
        self._controller: ContextController | None = None
        self._opening = Lock()
        self._allowance = Allowance()

    @property
    def name(self) -> str:
        """The name of what it replaces: deepagents has it instead of its own, and no agent has both."""
        return "SummarizationMiddleware"

    @property
    def controller(self) -> ContextController:
        """Has the method and the engine, whose store is opened when it is first needed."""
        with self._opening:
            if self._controller is None:
                engine = engine_at(self._where)
                catalog.lookup("")  # which reads a file; each call looks into it
                self._controller = ContextController(engine, when=self._when, how=self._how, offer=self._offer)
                if self._method:
                    self._controller.method = self._method
            return self._controller

    def close(self) -> None:
        """Let go of a store that was opened for a path."""
        known, self._controller = self._controller, None
        if known is not None and not isinstance(self._where, Engine):
            run(known.engine.close(store=True))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Send what fits; what is refused as too long is sent again, shorter."""
        call, place = FittedCall(request, self.tools, self._allowance), self._place(request.runtime)
        thread = self._thread(place)
        while True:
            try:
                response = handler(run(call.fit(thread)))
            except Exception as error:
                if not run(call.refused(thread, error)):
                    raise
            else:
                run(call.heard(thread, response))
                self._remember(place, thread, response)
                return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """The same for agents that are awaited."""
        call, place = FittedCall(request, self.tools, self._allowance), self._place(request.runtime)
        # LangGraph's server lets nobody open a file in its event loop.
        thread = self._thread(place) if self._controller else await asyncio.to_thread(self._thread, place)
        while True:
            try:
                response = await handler(await call.fit(thread))
            except Exception as error:
                if not await call.refused(thread, error):
                    raise
            else:
                await call.heard(thread, response)
                self._remember(place, thread, response)
                return response

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Answer calls of clew's tools; an agent that another tool asks is a part of this conversation."""
        place = self._place(request.runtime)
        if self._is_ours(request):
            return run(self._answered(request, place))
        token = _caller.set(_Caller(self._known(request, place), place))
        try:
            return handler(request)
        finally:
            _caller.reset(token)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """The same for agents that are awaited."""
        place = self._place(request.runtime)
        if self._is_ours(request):
            return await self._answered(request, place)
        token = _caller.set(_Caller(self._known(request, place), place))
        try:
            return await handler(request)
        finally:
            _caller.reset(token)

    def _is_ours(self, request: ToolCallRequest) -> bool:
        return any(request.tool is tool for tool in self.tools)  # others may have a tool of the same name

    def _place(self, runtime: Any) -> _Place:
        """Whose call this is: LangGraph's thread, an agent that is a node of a larger graph, or one that a tool asked.

        Without a thread and without a name from the user, a conversation is known by its past.
        """
        told: ExecutionInfo | None = getattr(runtime, "execution_info", None)  # a request made by hand has no runtime
        thread_id = told.thread_id if told else None
        outer = told.checkpoint_ns.split("|")[:-1] if told else []
        caller = _caller.get()
        if caller is not None and outer and thread_id == caller.place.thread_id:
            # Once for each time that the tool asks an agent, and the same again after an interruption.
            which = blake2b("|".join(outer).encode(), digest_size=4).hexdigest()
            agent = get_config().get("metadata", {}).get("lc_agent_name") or "agent"
            return _Place(f"{caller.place.session or 'agent'}-{agent}-{which}", thread_id, caller.thread)
        parent = caller.thread if caller is not None else None
        base = self._session or (str(thread_id) if thread_id is not None else None)
        nodes = "/".join(part.partition(":")[0] for part in outer)
        return _Place(f"{base}/{nodes}" if base and nodes and parent is None else base, thread_id, parent)

    def _thread(self, place: _Place) -> Thread | None:
        try:
            parent = place.parent.last if place.parent else None
            origin = Origin("subagent", parent.view.branch) if parent else None
            return Thread(self.controller, place.session, scope=self._scope, origin=origin)
        except Exception as error:
            warn("clew could not open its store; the original request is sent unchanged", error)
            return None

    def _remember(self, place: _Place, thread: Thread | None, response: ModelResponse[Any]) -> None:
        """Have the conversation at hand while its tools run; without a name it goes by the message that called."""
        said = next((message for message in response.result if isinstance(message, AIMessage)), None)
        key = place.session or (said.id if said else None)
        if thread is not None and key and said and said.tool_calls:
            self._threads.pop(key, None)
            self._threads[key] = thread

    def _known(self, request: ToolCallRequest, place: _Place) -> Thread | None:
        return self._threads.get(place.session or _calling(request))

    async def _answered(self, request: ToolCallRequest, place: _Place) -> ToolMessage:
        call = request.tool_call
        came = await best(self._answer(request, place), UNAVAILABLE)
        status: Any = "error" if came.failed else "success"
        return ToolMessage(came.text, name=call["name"], tool_call_id=call["id"] or "", status=status)

    async def _answer(self, request: ToolCallRequest, place: _Place) -> Outcome:
        thread = self._known(request, place) or await self._reopened(place)
        return await thread.answer(request.tool_call["name"], request.tool_call["args"])

    async def _reopened(self, place: _Place) -> Thread:
        """A conversation whose last call another process made: somebody had to approve of what it wants to do."""
        thread, engine = Thread(self.controller, place.session, scope=self._scope), self.controller.engine
        branch = await cross(engine.named(self._scope, place.session)) if place.session else None
        if branch is not None:
            thread.last = SentBody(await cross(engine.view(self._scope, branch)))
        return thread


def _calling(request: ToolCallRequest) -> str:
    """The id of the message that a call is in."""
    messages = request.state.get("messages", ()) if isinstance(request.state, dict) else ()
    said = (message for message in reversed(messages) if isinstance(message, AIMessage))
    return next((message.id or "" for message in said), "")


def _tool(tool: ToolDeclaration) -> BaseTool:
    def answer(**given: Any) -> str:
        return UNAVAILABLE.text  # the middleware answers before this is asked

    schema = dict(tool.schema or {})
    return StructuredTool.from_function(answer, name=tool.name, description=tool.description, args_schema=schema)
