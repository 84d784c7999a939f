"""Pydantic AI: a capability with which every request of an agent fits its window."""

from dataclasses import dataclass, field
from dataclasses import replace as with_
from functools import partial
from typing import Any, Unpack

from clew.errors import MissingExtra

try:
    from pydantic_ai import RunContext, Tool
except ImportError:
    raise MissingExtra("clew.adapters.pydantic_ai needs Pydantic AI", "pydantic-ai") from None

from pydantic_ai.capabilities import (
    AbstractCapability,
    CapabilityOrdering,
    ValidatedToolArgs,
    WrapRunHandler,
    WrapToolExecuteHandler,
)
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import RetryModelRequest, ToolFailed
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import AgentDepsT, ToolDefinition
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RequestUsage

from clew.adapters.host import CHAPTER, Adapter, Host, Hosted, Naming, Where, asked_here, calling
from clew.adapters.pydantic_ai.messages import PYDANTIC_FORMAT, Converted, frame_of
from clew.catalog.usage import Spent
from clew.exchange.thread import Thread, answered, best
from clew.steps.chapters.by_model import ByModel
from clew.steps.chapters.model import Prompt, Reply
from clew.wire.formats.tools import ToolDeclaration

__all__ = ["ClewCapability"]

PYDANTIC_ELSEWHERE = ("openai_previous_response_id", "openai_conversation_id")  # the provider has the history itself


@dataclass
class _AgentRun:
    thread: Thread
    frame: dict[str, Any] = field(default_factory=dict)  # of the last request


class ClewCapability(Adapter, AbstractCapability[AgentDepsT]):
    """For `Agent(capabilities=[...])`: each request sends what fits of the messages, which themselves stay whole.

    A conversation is known by the `conversation_id` of Pydantic AI. With the method `llm`, the agent is told how full
    its window is, and may begin a new session.
    """

    id = "clew"

    def __init__(self, engine: Where = None, **options: Unpack[Naming]) -> None:
        self.host = Host(engine, **options)
        self._runs: dict[str, _AgentRun] = {}

    def get_ordering(self) -> CapabilityOrdering:
        """Next to the model: what others do to a request is done then."""
        return CapabilityOrdering(position="innermost")

    async def wrap_run(self, ctx: RunContext[AgentDepsT], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Find the conversation of a run, and have its last answer in the log, too."""
        run_id = str(ctx.run_id)
        if run := await best(self._begun(ctx), None):
            self._runs[run_id] = run
        try:
            result = await handler()
            if run and run.frame:
                await best(run.thread.keep(_body(run.frame, Converted(result.all_messages())), PYDANTIC_FORMAT), None)
            return result
        finally:
            self._runs.pop(run_id, None)

    async def _begun(self, ctx: RunContext[AgentDepsT]) -> _AgentRun:
        return _AgentRun(await self.host.begin(ctx.conversation_id))

    async def prepare_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """The request with what fits of its messages, for the model that is about to read it."""
        run = self._runs.get(str(ctx.run_id))
        if run is None or any(map((request_context.model_settings or {}).get, PYDANTIC_ELSEWHERE)):
            return request_context
        messages = await best(self._fitted(run, ctx, request_context), None)
        return request_context if messages is None else with_(request_context, messages=messages)

    async def _fitted(
        self, run: _AgentRun, ctx: RunContext[AgentDepsT], asked: ModelRequestContext
    ) -> list[ModelMessage] | None:
        run.frame = frame_of(asked)
        # ClewCapability's own tools are in there already: it puts them there again, as its log has them.
        run.frame["tools"] = [tool for tool in run.frame.get("tools", ()) if not self.host.is_ours(tool["name"])]
        self.host.tell_window(asked.model.model_name, asked.model.context_window)
        run.thread.own = self._author(ctx, asked)
        said = Converted(asked.messages)
        sent = await run.thread.fit(_body(run.frame, said), PYDANTIC_FORMAT)
        return said.back(sent.body["messages"]) if sent.view.edits or sent.status else None

    def _author(self, ctx: RunContext[AgentDepsT], asked: ModelRequestContext) -> ByModel | None:
        """The model of a run; not where it must answer with an object, nor where its provider runs tools."""
        told = asked.model_request_parameters
        if told.output_object or not told.allow_text_output or told.native_tools:
            return None
        ask = asked_here(partial(_asked, asked.model, ctx))
        return self.host.author(Hosted(asked.model.model_name, ask, asked.model.context_window))

    async def after_model_request(
        self, ctx: RunContext[AgentDepsT], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Take note of what the provider counted."""
        run = self._runs.get(str(ctx.run_id))
        if run and response.usage.input_tokens:
            await best(run.thread.heard(_spent(response.usage)), None)
        return response

    async def on_model_request_error(
        self, ctx: RunContext[AgentDepsT], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Ask again with less where a request was too long."""
        run = self._runs.get(str(ctx.run_id))
        shorter = await best(run.thread.refused(error.__cause__ or error), False) if run else False
        if shorter:
            raise RetryModelRequest() from error
        raise error

    def get_toolset(self) -> FunctionToolset[AgentDepsT] | None:
        """The tools with which an agent looks after its context."""
        if not self.host.offer:
            return None
        return FunctionToolset([self._tool(tool) for tool in self.host.tools()], id=self.id)

    async def prepare_tools(self, ctx: RunContext[AgentDepsT], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        """Of clew's own tools those that go with the method."""
        run = self._runs.get(str(ctx.run_id))
        names = {tool.name for tool in self.host.tools_of(run.thread)} if run else set()
        return [tool for tool in tool_defs if tool.name in names or not self.host.is_ours(tool.name)]

    async def wrap_tool_execute(
        self,
        ctx: RunContext[AgentDepsT],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: ValidatedToolArgs,
        handler: WrapToolExecuteHandler,
    ) -> Any:
        """While a tool runs, whoever it asks is asked by this agent."""
        run = self._runs.get(str(ctx.run_id))
        with calling(run.thread if run else None):
            return await handler(args)

    def _tool(self, tool: ToolDeclaration) -> Tool[AgentDepsT]:
        async def answer(ctx: RunContext[AgentDepsT], **given: Any) -> str:
            run = self._runs.get(str(ctx.run_id))
            came = await answered(run.thread if run else None, tool.name, given)
            if came.failed:
                raise ToolFailed(came.text)
            return came.text

        return Tool.from_schema(answer, tool.name, tool.description, dict(tool.schema or {}), takes_ctx=True)


def _body(frame: dict[str, Any], said: Converted) -> dict[str, Any]:
    return {**frame, "messages": said.messages}


async def _asked(model: Model, ctx: RunContext[Any], prompt: Prompt) -> Reply:
    """What a model says to a question of clew's, which counts in its run and has a span there."""
    system = [SystemPromptPart(prompt.system)] if prompt.system else []
    question = ModelRequest(parts=[*system, UserPromptPart(prompt.text)])
    with ctx.tracer.start_as_current_span(CHAPTER):
        answer = await model_request(model, [question], model_settings=ModelSettings(max_tokens=prompt.max_tokens))
    ctx.usage.incr(answer.usage)
    ctx.usage.requests += 1
    calls = tuple(call.tool_name for call in answer.tool_calls)
    return Reply(answer.text or "", _spent(answer.usage), calls, cut=answer.finish_reason == "length")


def _spent(usage: RequestUsage) -> Spent:
    """A report of Pydantic AI, whose input includes what was cached."""
    return Spent(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
