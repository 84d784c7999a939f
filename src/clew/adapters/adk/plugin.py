"""The plugin: what it does before and after each call of a model, and around tools."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from google.adk.agents import BaseAgent, InvocationContext
from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from clew.adapters.adk.requests import ADK_FORMAT, back, dumped, frame_of, has_room_for_tools
from clew.adapters.answering import answered
from clew.agent.control import ContextController, offered
from clew.agent.results import Outcome
from clew.core.bridge import cross
from clew.core.caches import Recent
from clew.core.items import Scope
from clew.engine.engine import Engine
from clew.exchange.thread import Thread, best, engine_at
from clew.store.records import Cause, Method, Origin
from clew.wire.convert.tools import ToolDeclaration

THREADS = 512  # conversations, and calls under way, that are remembered; the store has the others


@dataclass
class _ModelCall:
    thread: Thread
    frame: dict[str, Any]
    contents: Sequence[types.Content]  # as ADK had them


_caller: ContextVar[Thread | None] = ContextVar("clew_adk_caller", default=None)  # whose tool is running


class ClewPlugin(BasePlugin):
    """For `App(plugins=[...])`: each call sends what fits of a session, whose events stay whole.

    With the method `llm`, agents are told how full their window is, and may begin a new session of clew's.
    """

    def __init__(
        self,
        engine: Engine | str | Path | None = None,
        *,
        scope: Scope = "default",
        method: Method | None = None,
        when: str = "",
        how: str = "",
        offer: bool = True,
        name: str = "clew",
    ) -> None:
        super().__init__(name)
        self._where, self._scope = engine, scope
        self._method, self._when, self._how, self._offer = method, when, how, offer
        self._threads: Recent[str, Thread] = Recent(THREADS)
        self._newest: Recent[str, Thread] = Recent(THREADS)  # that was sent something, by session
        self._calls: Recent[tuple[str, str, str], _ModelCall] = Recent(THREADS)
        self._callers: Recent[str, Thread | None] = Recent(THREADS)

    @cached_property
    def engine(self) -> Engine:
        """Opened with the first call."""
        return engine_at(self._where)

    async def switch(self, session: str, method: Method) -> None:
        """Who decides in a conversation, `app/user/session`, from its next run on; a `method` of the plugin wins."""
        controller = ContextController(self.engine, offer=False)
        controller.method = method
        await cross(controller.save(self._scope, session))

    async def close(self) -> None:
        """Let go of a store that was opened for a path; the next call would open it again."""
        engine = self.__dict__.pop("engine", None)
        self._threads.clear()
        if engine is not None:
            await cross(engine.close(store=engine is not self._where))

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Put what fits into a request."""
        if not llm_request.previous_interaction_id and llm_request.contents:  # else the provider has the history
            await best(self._fit(callback_context, llm_request), None)
        return None

    async def _fit(self, context: CallbackContext, asked: LlmRequest) -> None:
        thread = await self._thread(context)
        call = _ModelCall(thread, frame_of(asked), asked.contents)
        self._calls[_key(context)] = call
        contents = await self._fitted(call)
        if self._offer and has_room_for_tools(asked):
            tools = offered(thread.controller.method, _is_child(thread), self._when, self._how)
            asked.append_tools([_OwnTool(tool, self._answer) for tool in tools])
        asked.contents = contents
        self._newest[_session_of(context)] = thread

    async def _fitted(self, call: _ModelCall) -> list[types.Content]:
        body = {**call.frame, "contents": [dumped(content) for content in call.contents]}
        sent = await call.thread.fit(body, ADK_FORMAT)
        if not sent.view.edits and not sent.told:
            return list(call.contents)
        return back(sent.body["contents"], call.contents)

    async def _thread(self, context: CallbackContext) -> Thread:
        agent, session = context.get_invocation_context().agent, _session_of(context)
        root = agent.root_agent if isinstance(agent, BaseAgent) else None
        name = session if root is None or root.name == context.agent_name else f"{session}/{context.agent_name}"
        if name not in self._threads:
            controller = ContextController(self.engine, when=self._when, how=self._how, offer=self._offer)
            cause: Cause = "subagent" if _caller.get() else "handoff"
            parent = _caller.get() or self._newest.get(session)
            sent = parent.last if parent else None
            origin = Origin(cause, sent.view.branch) if sent else None
            self._threads[name] = Thread(controller, name, scope=self._scope, origin=origin)
        thread = self._threads[name]
        if self._method:
            thread.controller.method = self._method
        elif _key(context) not in self._calls:
            await cross(thread.controller.load(self._scope, name))
        return thread

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Take note of what the provider counted, and have the answer in the log."""
        call = self._calls.get(_key(callback_context))
        if call and not llm_response.partial:
            await best(self._heard(call, llm_response), None)
        return None

    async def _heard(self, call: _ModelCall, said: LlmResponse) -> None:
        if said.usage_metadata and said.usage_metadata.prompt_token_count:
            await call.thread.heard(said.usage_metadata)
        if said.content and said.content.parts and not any(part.function_call for part in said.content.parts):
            contents = [dumped(content) for content in (*call.contents, said.content)]
            await call.thread.keep({**call.frame, "contents": contents}, ADK_FORMAT)

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        """Ask again with less where a request was too long."""
        call = self._calls.get(_key(callback_context))
        model = getattr(callback_context.get_invocation_context().agent, "canonical_model", None)
        said: LlmResponse | None = None
        while call and model and said is None and await best(call.thread.refused(error.__cause__ or error), False):
            shorter = await best(self._fitted(call), None)
            if shorter is None:
                return None
            again = llm_request.model_copy(update={"contents": shorter})
            try:
                said = [one async for one in model.generate_content_async(again, stream=False)][-1]
            except Exception as fault:
                error = fault
        return said

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """While a tool runs, whoever it asks is asked by this agent."""
        self._callers[_call_id(tool_context)] = _caller.get()
        call = self._calls.get(_key(tool_context))
        _caller.set(call.thread if call else None)
        return None

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: dict[str, Any]
    ) -> dict[str, Any] | None:
        """And no longer."""
        _caller.set(self._callers.pop(_call_id(tool_context), None))
        return None

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, Any] | None:
        """Nor after it failed."""
        _caller.set(self._callers.pop(_call_id(tool_context), None))
        return None

    async def _answer(self, context: ToolContext, name: str, given: Mapping[str, Any]) -> Outcome:
        call = self._calls.get(_key(context))
        return await answered(call.thread if call else None, name, given)


class _OwnTool(BaseTool):
    """One of clew's tools."""

    def __init__(
        self, tool: ToolDeclaration, answer: Callable[[ToolContext, str, Mapping[str, Any]], Awaitable[Outcome]]
    ) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._schema, self._answer = tool.schema, answer

    def _get_declaration(self) -> types.FunctionDeclaration:
        schema = dict(self._schema or {})
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        came = await self._answer(tool_context, self.name, args)
        return {"error" if came.failed else "result": came.text}


def _session_of(context: CallbackContext | InvocationContext) -> str:
    """A name for a session that no other app or user has."""
    session = context.session
    return f"{session.app_name}/{session.user_id}/{session.id}"


def _key(context: CallbackContext | ToolContext) -> tuple[str, str, str]:
    """Of the call of a model that is under way."""
    return context.invocation_id, context.agent_name, context.get_invocation_context().branch or ""


def _call_id(context: ToolContext) -> str:
    return f"{context.invocation_id}/{context.function_call_id}"


def _is_child(thread: Thread) -> bool:
    return thread.origin is not None and thread.origin.cause == "subagent"
