"""LangChain, LangGraph and deepagents: a middleware with which each call of a model fits its window.

The agent's state keeps every message. What is sent is a view of them, and what is out of view can be recalled.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from typing import Any, NamedTuple, Unpack

from clew.errors import MissingExtra

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
except ImportError:
    raise MissingExtra("clew.adapters.langchain needs LangChain", "langchain") from None

from langchain.tools.tool_node import ToolCallRequest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.config import get_config
from langgraph.runtime import ExecutionInfo
from langgraph.types import Command

from clew.adapters.host import Host, Naming, Where, caller, calling
from clew.adapters.langchain.call import FittedCall
from clew.control import SentBody
from clew.core.bridge import cross, run
from clew.core.caches import Recent
from clew.engine.engine import Engine
from clew.exchange.thread import UNAVAILABLE, Thread, answered, best, warn
from clew.wire.formats.tools import ToolDeclaration

__all__ = ["ClewMiddleware"]

CONVERSATIONS = 1_000  # of which it is known what was last sent


class _Place(NamedTuple):
    """Where a node runs: the names of its conversation and of LangGraph's thread, and who called its agent."""

    session: str | None
    thread_id: str | None
    parent: Thread | None


_place: ContextVar[_Place | None] = ContextVar("clew_langchain_place", default=None)  # where the running tool is


class ClewMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """For `create_agent(..., middleware=[ClewMiddleware("agent.db")])`: each call fits; the state stays whole.

    With the method `llm`, the agent is told how full its window is, and may begin a new session.
    """

    def __init__(self, engine: Where = None, **options: Unpack[Naming]) -> None:
        super().__init__()
        self.host = Host(engine, **options)
        # All of them: which ones a model is offered is seen at each call.
        self.tools = [_tool(tool) for tool in self.host.tools()] if self.host.offer else []
        self._threads: Recent[str, Thread] = Recent(CONVERSATIONS)

    @property
    def name(self) -> str:
        """The name of what it replaces: deepagents has it instead of its own, and no agent has both."""
        return "SummarizationMiddleware"

    @property
    def engine(self) -> Engine:
        """Opened with the first request."""
        return self.host.engine

    def close(self) -> None:
        """Let go of a store that was opened for a path; the next call would open it again."""
        run(self.host.close())

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Send what fits; what is refused as too long is sent again, shorter."""
        call, place = FittedCall(request, self.tools, self.host), self._place(request.runtime)
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
        call, place = FittedCall(request, self.tools, self.host), self._place(request.runtime)
        # LangGraph's server lets nobody open a file in its event loop.
        thread = self._thread(place) if self.host.is_open else await asyncio.to_thread(self._thread, place)
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
        with self._calling(request, place):
            return handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """The same for agents that are awaited."""
        place = self._place(request.runtime)
        if self._is_ours(request):
            return await self._answered(request, place)
        with self._calling(request, place):
            return await handler(request)

    @contextmanager
    def _calling(self, request: ToolCallRequest, place: _Place) -> Iterator[None]:
        token = _place.set(place)
        try:
            with calling(self._known(request, place)):
                yield
        finally:
            _place.reset(token)

    def _is_ours(self, request: ToolCallRequest) -> bool:
        return any(request.tool is tool for tool in self.tools)  # others may have a tool of the same name

    def _place(self, runtime: Any) -> _Place:
        """Whose call this is: LangGraph's thread, an agent that is a node of a larger graph, or one that a tool asked.

        Without a thread and without a name from the user, a conversation is known by its past.
        """
        told: ExecutionInfo | None = getattr(runtime, "execution_info", None)  # a request made by hand has no runtime
        thread_id = told.thread_id if told else None
        outer = told.checkpoint_ns.split("|")[:-1] if told else []
        parent, called_from = caller(), _place.get()
        if called_from is not None and outer and thread_id == called_from.thread_id:
            # Once for each time that the tool asks an agent, and the same again after an interruption.
            which = blake2b("|".join(outer).encode(), digest_size=4).hexdigest()
            agent = get_config().get("metadata", {}).get("lc_agent_name") or "agent"
            return _Place(f"{called_from.session or 'agent'}-{agent}-{which}", thread_id, parent)
        base = self.host.session or (str(thread_id) if thread_id is not None else None)
        nodes = "/".join(part.partition(":")[0] for part in outer)
        return _Place(f"{base}/{nodes}" if base and nodes and parent is None else base, thread_id, parent)

    def _thread(self, place: _Place) -> Thread | None:
        try:
            return self.host.thread(place.session, self.host.origin(place.parent) if place.parent else None)
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
        thread = self._known(request, place) or await best(self._reopened(place), None)
        came = await answered(thread, call["name"], call["args"])
        status: Any = "error" if came.failed else "success"
        return ToolMessage(came.text, name=call["name"], tool_call_id=call["id"] or "", status=status)

    async def _reopened(self, place: _Place) -> Thread:
        """A conversation whose last call another process made: somebody had to approve of what it wants to do."""
        thread, engine = self.host.thread(place.session), self.engine
        branch = await cross(engine.named(thread.scope, place.session)) if place.session else None
        if branch is not None:
            thread.last = SentBody(await cross(engine.view(thread.scope, branch)))
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
