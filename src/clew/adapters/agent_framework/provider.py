"""The provider: what it does before and after each call of a model, and around tools."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import Any

from agent_framework import (
    AgentSession,
    ChatContext,
    ChatMiddleware,
    ChatResponse,
    ChatResponseUpdate,
    ContextProvider,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    Message,
    ResponseStream,
    SessionContext,
    SupportsAgentRun,
)

from clew.adapters.agent_framework.messages import AGENT_FRAMEWORK_FORMAT, WireMessages, frame_of
from clew.adapters.answering import answered
from clew.agent.control import STEERING, ContextController, offered
from clew.core.bridge import cross
from clew.core.items import Scope
from clew.engine.engine import Engine
from clew.exchange.thread import Thread, best, engine_at
from clew.store.records import Method, Origin
from clew.wire.convert.tools import ToolDeclaration

_caller: ContextVar[Thread | None] = ContextVar("clew_agent_framework_caller", default=None)  # whose tool is running


class ClewProvider(ContextProvider):
    """For `Agent(context_providers=[...])`: each call sends what fits of the messages, which themselves stay whole.

    A conversation is known by the id of its session. With the method `llm`, the agent is told how full its window is,
    and may begin a new session of clew's.
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
        source_id: str = "clew",
    ) -> None:
        super().__init__(source_id)
        self._where, self._session, self._scope = engine, session, scope
        self._method, self._when, self._how, self._offer = method, when, how, offer

    @cached_property
    def engine(self) -> Engine:
        """Opened with the first run."""
        return engine_at(self._where)

    async def switch(self, session_id: str, method: Method) -> None:
        """Who decides in a conversation, from its next run on; a `method` that was given here counts more."""
        controller = ContextController(self.engine, offer=False)
        controller.method = method
        await cross(controller.save(self._scope, session_id))

    async def close(self) -> None:
        """Let go of a store that was opened for a path; the next run would open it again."""
        engine = self.__dict__.pop("engine", None)
        if engine is not None:
            await cross(engine.close(store=engine is not self._where))

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Stand between an agent and its model for this run."""
        thread = await best(self._begun(session), None)
        if thread is None:
            return
        context.extend_middleware(self.source_id, [_ChatFitting(thread, self._offer), _CallerLending(thread)])
        if self._offer:
            child = thread.origin is not None
            tools = offered(thread.controller.method, child, self._when, self._how)
            context.extend_tools(self.source_id, [_tool(thread, tool) for tool in tools])

    async def _begun(self, session: AgentSession) -> Thread:
        controller = ContextController(self.engine, when=self._when, how=self._how, offer=self._offer)
        name, parent, origin = self._session or session.session_id, _caller.get(), None
        if parent is not None and parent.last is not None:
            origin, name = Origin("subagent", parent.last.view.branch), session.session_id
        if self._method:
            controller.method = self._method
        else:
            await cross(controller.load(self._scope, name))
        return Thread(controller, name, scope=self._scope, origin=origin)


class _ChatFitting(ChatMiddleware):
    """What fits of the messages goes to the model; what it said is noted."""

    def __init__(self, thread: Thread, offer: bool) -> None:
        self._thread, self._offer = thread, offer

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Send what fits, and less where that was too long."""
        whole, options = list(context.messages), context.options or {}
        if options.get("conversation_id") or options.get("previous_response_id"):  # the provider has the history
            await call_next()
            return
        model = str(options.get("model") or getattr(context.client, "model", None) or "")

        async def fit() -> None:
            fitted = await best(self._fitted(model, options, whole), None)
            context.messages = whole if fitted is None else fitted

        async def note(response: ChatResponse[Any]) -> None:
            await best(self._heard(model, options, whole, response), None)

        await fit()
        if not context.stream:
            await self._asked(call_next, fit)
            if isinstance(context.result, ChatResponse):
                await note(context.result)
            return
        await call_next()
        if isinstance(context.result, ResponseStream):
            context.result = self._streamed(context, call_next, fit, note)

    async def _asked(self, call_next: Callable[[], Awaitable[None]], fit: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await call_next()
                return
            except Exception as error:
                if not await self._is_shorter(error):
                    raise
            await fit()

    def _streamed(
        self,
        context: ChatContext,
        call_next: Callable[[], Awaitable[None]],
        fit: Callable[[], Awaitable[None]],
        note: Callable[[ChatResponse[Any]], Awaitable[None]],
    ) -> ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        """A stream that begins again where a provider refuses before it says anything."""
        stream: Any = context.result

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            nonlocal stream
            while True:
                said = False
                try:
                    async for update in stream:
                        said = True
                        yield update
                    return
                except Exception as error:
                    if said or not await self._is_shorter(error):
                        raise
                await fit()
                await call_next()
                stream = context.result

        async def final(_: Sequence[ChatResponseUpdate]) -> ChatResponse[Any]:
            response: ChatResponse[Any] = await stream.get_final_response()
            await note(response)
            return response

        return ResponseStream(updates(), finalizer=final)

    async def _is_shorter(self, error: Exception) -> bool:
        return await best(self._thread.refused(error.__cause__ or error), False)

    async def _fitted(self, model: str, options: Mapping[str, Any], whole: Sequence[Message]) -> list[Message] | None:
        said = WireMessages(whole)
        sent = await self._thread.fit(self._body(model, options, said), AGENT_FRAMEWORK_FORMAT)
        return said.back(sent.body["messages"]) if sent.view.edits or sent.told else None

    async def _heard(
        self, model: str, options: Mapping[str, Any], whole: Sequence[Message], response: ChatResponse[Any]
    ) -> None:
        usage = response.usage_details or {}
        if read := usage.get("input_token_count"):
            cached = {"cached_tokens": usage.get("cache_read_input_token_count") or 0}
            report = {"prompt_tokens": read, "completion_tokens": usage.get("output_token_count") or 0}
            await self._thread.heard({**report, "prompt_tokens_details": cached})
        contents = [content for message in response.messages for content in message.contents]
        if contents and not any(content.type == "function_call" for content in contents):
            said = WireMessages([*whole, *response.messages])
            await self._thread.keep(self._body(model, options, said), AGENT_FRAMEWORK_FORMAT)

    def _body(self, model: str, options: Mapping[str, Any], said: WireMessages) -> dict[str, Any]:
        frame = frame_of(model, options, said.system)
        # Clew's own tools are in there already: it puts them there again, as its log has them.
        ours = STEERING if self._offer else ()
        tools = [tool for tool in frame.get("tools", ()) if tool["name"] not in ours]
        return {**frame, "tools": tools, "messages": said.messages}


class _CallerLending(FunctionMiddleware):
    """While a tool runs, whoever it asks is asked by this agent."""

    def __init__(self, thread: Thread) -> None:
        self._thread = thread

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Have the caller known while the tool runs."""
        token = _caller.set(self._thread)
        try:
            await call_next()
        finally:
            _caller.reset(token)


def _tool(thread: Thread, tool: ToolDeclaration) -> FunctionTool:
    async def answer(**given: Any) -> str:
        return (await answered(thread, tool.name, given)).text

    schema = dict(tool.schema or {})
    return FunctionTool(name=tool.name, description=tool.description, func=answer, input_model=schema)
