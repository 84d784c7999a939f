"""The capability: what it does before and after each request of an agent, and around its tools."""

from contextvars import ContextVar
from dataclasses import dataclass, field
from dataclasses import replace as with_
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic_ai import RunContext, Tool
from pydantic_ai.capabilities import (
    AbstractCapability,
    CapabilityOrdering,
    ValidatedToolArgs,
    WrapRunHandler,
    WrapToolExecuteHandler,
)
from pydantic_ai.exceptions import RetryModelRequest, ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import AgentDepsT, ToolDefinition
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RequestUsage

from clew import catalog
from clew.adapters.answering import answered
from clew.adapters.pydantic_ai.messages import PYDANTIC_FORMAT, Converted, frame_of
from clew.agent.control import STEERING, ContextController, offered
from clew.core.bridge import cross
from clew.core.items import Scope
from clew.engine.engine import Engine
from clew.exchange.thread import Thread, best, engine_at
from clew.store.records import Method, Origin
from clew.wire.convert.tools import ToolDeclaration

PYDANTIC_ELSEWHERE = ("openai_previous_response_id", "openai_conversation_id")  # the provider has the history itself


@dataclass
class _AgentRun:
    thread: Thread
    frame: dict[str, Any] = field(default_factory=dict)  # of the last request


_caller: ContextVar[Thread | None] = ContextVar("clew_pydantic_ai_caller", default=None)  # whose tool is running


class ClewCapability(AbstractCapability[AgentDepsT]):
    """For `Agent(capabilities=[...])`: each request sends what fits of the messages, which themselves stay whole.

    A conversation is known by the `conversation_id` of Pydantic AI. With the method `llm`, the agent is told how full
    its window is, and may begin a new session.
    """

    id = "clew"

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
        self._where, self._session, self._scope = engine, session, scope
        self._method, self._when, self._how, self._offer = method, when, how, offer
        self._runs: dict[str, _AgentRun] = {}

    @cached_property
    def engine(self) -> Engine:
        """Opened with the first run."""
        return engine_at(self._where)

    def get_ordering(self) -> CapabilityOrdering:
        """Next to the model: what others do to a request is done then."""
        return CapabilityOrdering(position="innermost")

    async def switch(self, conversation_id: str, method: Method) -> None:
        """Who decides in a conversation, from its next run on; a `method` that was given here counts more."""
        controller = ContextController(self.engine, offer=False)
        controller.method = method
        await cross(controller.save(self._scope, conversation_id))

    async def close(self) -> None:
        """Let go of a store that was opened for a path; the next run would open it again."""
        engine = self.__dict__.pop("engine", None)
        if engine is not None:
            await cross(engine.close(store=engine is not self._where))

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
        controller = ContextController(self.engine, when=self._when, how=self._how, offer=self._offer)
        session = self._session or ctx.conversation_id
        parent, origin = _caller.get(), None
        if parent is not None and parent.last is not None:
            origin = Origin("subagent", parent.last.view.branch)
            session = ctx.conversation_id  # a name is of one conversation
        if self._method:
            controller.method = self._method
        elif session:
            await cross(controller.load(self._scope, session))
        return _AgentRun(Thread(controller, session, scope=self._scope, origin=origin))

    async def prepare_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """The request with what fits of its messages, for the model that is about to read it."""
        run = self._runs.get(str(ctx.run_id))
        if run is None or any(map((request_context.model_settings or {}).get, PYDANTIC_ELSEWHERE)):
            return request_context
        messages = await best(self._fitted(run, request_context), None)
        return request_context if messages is None else with_(request_context, messages=messages)

    async def _fitted(self, run: _AgentRun, asked: ModelRequestContext) -> list[ModelMessage] | None:
        run.frame = frame_of(asked)
        # ClewCapability's own tools are in there already: it puts them there again, as its log has them.
        run.frame["tools"] = [tool for tool in run.frame.get("tools", ()) if not self._is_ours(tool["name"])]
        self._tell_window(asked.model)
        said = Converted(asked.messages)
        sent = await run.thread.fit(_body(run.frame, said), PYDANTIC_FORMAT)
        return said.back(sent.body["messages"]) if sent.view.edits or sent.told else None

    def _tell_window(self, model: Model) -> None:
        """What the profile of a model says counts where the catalog knows no better, or more."""
        known, window = catalog.lookup(model.model_name), model.context_window
        if window and (not known.exact or window < known.window):
            self.engine.limits.windows.tell(model.model_name, window)

    async def after_model_request(
        self, ctx: RunContext[AgentDepsT], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Take note of what the provider counted."""
        run = self._runs.get(str(ctx.run_id))
        if run and response.usage.input_tokens:
            await best(run.thread.heard(_reported(response.usage)), None)
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
        if not self._offer:
            return None
        return FunctionToolset([self._tool(tool) for tool in offered("llm", False, self._when, self._how)], id=self.id)

    async def prepare_tools(self, ctx: RunContext[AgentDepsT], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        """Of clew's own tools those that go with the method."""
        run = self._runs.get(str(ctx.run_id))
        method: Method = run.thread.controller.method if run else "auto"
        names = {tool.name for tool in offered(method, bool(run and run.thread.origin), "", "")} if run else set()
        return [tool for tool in tool_defs if tool.name in names or not self._is_ours(tool.name)]

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
        token = _caller.set(run.thread if run else None)
        try:
            return await handler(args)
        finally:
            _caller.reset(token)

    def _is_ours(self, name: str) -> bool:
        return self._offer and name in STEERING

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


def _reported(usage: RequestUsage) -> dict[str, Any]:
    """A report of Pydantic AI, whose input includes what was cached, as OpenAI would write it."""
    cached = {"cached_tokens": usage.cache_read_tokens}
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "prompt_tokens_details": cached,
    }
