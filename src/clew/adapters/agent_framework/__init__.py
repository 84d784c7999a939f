"""Microsoft Agent Framework: a context provider with which every request fits."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Unpack

from clew.errors import MissingExtra

try:
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
        SupportsChatGetResponse,
    )
except ImportError:
    raise MissingExtra("clew.adapters.agent_framework needs Microsoft Agent Framework", "agent-framework") from None

from clew.adapters.agent_framework.messages import AGENT_FRAMEWORK_FORMAT, WireMessages, frame_of
from clew.adapters.host import Adapter, Host, Hosted, Naming, Where, asked_here, calling
from clew.catalog.usage import Spent
from clew.core.lazy import gone
from clew.exchange.thread import Thread, answered, best
from clew.steps.chapters.by_model import ByModel
from clew.steps.chapters.model import Prompt, Reply
from clew.wire.formats.tools import ToolDeclaration

__all__ = ["ClewProvider"]

__getattr__ = gone(__name__, ClewCompactionStrategy="`ClewProvider` does what it did, and offers recall")


class ClewProvider(Adapter, ContextProvider):
    """For `Agent(context_providers=[...])`: each call sends what fits of the messages, which themselves stay whole.

    A conversation is known by the id of its session. With the method `llm`, the agent is told how full its window is,
    and may begin a new session of clew's.
    """

    def __init__(self, engine: Where = None, *, source_id: str = "clew", **options: Unpack[Naming]) -> None:
        super().__init__(source_id)
        self.host = Host(engine, **options)

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Stand between an agent and its model for this run."""
        thread = await best(self.host.begin(session.session_id), None)
        if thread is None:
            return
        context.extend_middleware(self.source_id, [_ChatFitting(thread, self.host), _CallerLending(thread)])
        context.extend_tools(self.source_id, [_tool(thread, tool) for tool in self.host.tools_of(thread)])


class _ChatFitting(ChatMiddleware):
    """What fits of the messages goes to the model; what it said is noted."""

    def __init__(self, thread: Thread, host: Host) -> None:
        self._thread, self._host = thread, host

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Send what fits, and less where that was too long."""
        whole, options = list(context.messages), context.options or {}
        if options.get("conversation_id") or options.get("previous_response_id"):  # the provider has the history
            await call_next()
            return
        model = str(options.get("model") or getattr(context.client, "model", None) or "")
        self._thread.own = self._author(model, context)

        async def fit() -> None:
            fitted = await best(self._fitted(model, options, whole), None)
            context.messages = whole if fitted is None else fitted

        async def note(response: ChatResponse[Any]) -> None:
            await best(self._heard(model, options, whole, response), None)

        await fit()
        if not context.stream:
            await self._sent(call_next, fit)
            if isinstance(context.result, ChatResponse):
                await note(context.result)
            return
        await call_next()
        if isinstance(context.result, ResponseStream):
            context.result = self._streamed(context, call_next, fit, note)

    def _author(self, model: str, context: ChatContext) -> ByModel | None:
        """The model of an agent; not where it must call, answer with an object, or has tools of its provider's."""
        options = context.options or {}
        forced = options.get("tool_choice") not in (None, "auto", "none", {"mode": "auto"}, {"mode": "none"})
        served = not all(isinstance(tool, FunctionTool) for tool in options.get("tools") or ())
        if forced or served or options.get("response_format"):
            return None
        return self._host.author(Hosted(model, asked_here(partial(_asked, context.client))))

    async def _sent(self, call_next: Callable[[], Awaitable[None]], fit: Callable[[], Awaitable[None]]) -> None:
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
        return said.back(sent.body["messages"]) if sent.view.edits or sent.status else None

    async def _heard(
        self, model: str, options: Mapping[str, Any], whole: Sequence[Message], response: ChatResponse[Any]
    ) -> None:
        if spent := _spent(response):
            await self._thread.heard(spent)
        contents = [content for message in response.messages for content in message.contents]
        if contents and not any(content.type == "function_call" for content in contents):
            said = WireMessages([*whole, *response.messages])
            await self._thread.keep(self._body(model, options, said), AGENT_FRAMEWORK_FORMAT)

    def _body(self, model: str, options: Mapping[str, Any], said: WireMessages) -> dict[str, Any]:
        frame = frame_of(model, options, said.system)
        # Clew's own tools are in there already: it puts them there again, as its log has them.
        tools = [tool for tool in frame.get("tools", ()) if not self._host.is_ours(tool["name"])]
        return {**frame, "tools": tools, "messages": said.messages}


class _CallerLending(FunctionMiddleware):
    """While a tool runs, whoever it asks is asked by this agent."""

    def __init__(self, thread: Thread) -> None:
        self._thread = thread

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Have the caller known while the tool runs."""
        with calling(self._thread):
            await call_next()


def _tool(thread: Thread, tool: ToolDeclaration) -> FunctionTool:
    async def answer(**given: Any) -> str:
        return (await answered(thread, tool.name, given)).text

    schema = dict(tool.schema or {})
    return FunctionTool(name=tool.name, description=tool.description, func=answer, input_model=schema)


async def _asked(client: SupportsChatGetResponse[Any], prompt: Prompt) -> Reply:
    """What a model says to a question of clew's, through the client that the agent has, with its telemetry."""
    system = [Message("system", [prompt.system])] if prompt.system else []
    question = [*system, Message("user", [prompt.text])]
    answer = await client.get_response(question, options={"max_tokens": prompt.max_tokens})
    contents = [content for message in answer.messages for content in message.contents]
    calls = tuple(content.name or "" for content in contents if content.type == "function_call")
    return Reply(answer.text, _spent(answer) or Spent(0), calls, cut=answer.finish_reason == "length")


def _spent(response: ChatResponse[Any]) -> Spent | None:
    """What a provider counted, whose input includes what was cached."""
    usage = response.usage_details or {}
    if not (read := usage.get("input_token_count")):
        return None
    return Spent(read, usage.get("output_token_count") or 0, usage.get("cache_read_input_token_count") or 0)
