"""Google ADK: a plugin with which every request of an app's agents fits its window."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

from clew.errors import MissingExtra, ModelError

try:
    from google.adk.agents import BaseAgent, InvocationContext
except ImportError:
    raise MissingExtra("clew.adapters.adk needs Google ADK", "adk") from None

from google.adk.agents.callback_context import CallbackContext
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.telemetry.tracing import tracer
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from clew.adapters.host import CHAPTER, Adapter, Deciding, Host, Hosted, Where, asked_here, call_from, caller
from clew.adapters.restoring import WireMessage, restored
from clew.catalog.usage import Spent, spent
from clew.core import rawjson
from clew.core.caches import Recent
from clew.exchange.thread import Thread, answered, best
from clew.steps.chapters.by_model import ByModel
from clew.steps.chapters.model import Prompt, Reply
from clew.store.records import Cause
from clew.wire.formats.gemini import NAME
from clew.wire.formats.tools import Outcome, ToolDeclaration

__all__ = ["ClewPlugin"]

THREADS = 512  # conversations, and calls under way, that are remembered; the store has the others


@dataclass
class _ModelCall:
    thread: Thread
    frame: dict[str, Any]
    contents: Sequence[types.Content]  # as ADK had them


class ClewPlugin(Adapter, BasePlugin):
    """For `App(plugins=[...])`: each call sends what fits of a session, whose events stay whole.

    A conversation is named `app/user/session`. With the method `llm`, agents are told how full their window is, and may
    begin a new session of clew's.
    """

    def __init__(
        self, engine: Where = None, *, offer: bool = True, name: str = "clew", **options: Unpack[Deciding]
    ) -> None:
        super().__init__(name)
        self.host = Host(engine, offer=offer, **options)
        self._threads: Recent[str, Thread] = Recent(THREADS)
        self._newest: Recent[str, Thread] = Recent(THREADS)  # that was sent something, by session
        self._calls: Recent[tuple[str, str, str], _ModelCall] = Recent(THREADS)
        self._callers: Recent[str, Thread | None] = Recent(THREADS)

    async def close(self) -> None:
        """Let go of a store that was opened for a path; the next call would open it again."""
        self._threads.clear()
        await super().close()

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Put what fits into a request."""
        if not llm_request.previous_interaction_id and llm_request.contents:  # else the provider has the history
            await best(self._fit(callback_context, llm_request), None)
        return None

    async def _fit(self, context: CallbackContext, asked: LlmRequest) -> None:
        thread = await self._thread(context)
        thread.own = self._author(context, asked)
        call = _ModelCall(thread, frame_of(asked), asked.contents)
        self._calls[_key(context)] = call
        contents = await self._fitted(call)
        if has_room_for_tools(asked):
            asked.append_tools([_OwnTool(tool, self._answer) for tool in self.host.tools_of(thread)])
        asked.contents = contents
        self._newest[_session_of(context)] = thread

    def _author(self, context: CallbackContext, asked: LlmRequest) -> ByModel | None:
        """The model of an agent; not where it must call, answer with an object, or has tools of its provider's."""
        running = context.get_invocation_context()
        model = getattr(running.agent, "canonical_model", None)
        calling = asked.config.tool_config and asked.config.tool_config.function_calling_config
        forced = calling and calling.mode == types.FunctionCallingConfigMode.ANY
        if model is None or forced or not has_room_for_tools(asked):
            return None
        return self.host.author(Hosted(asked.model or model.model, asked_here(partial(_asked, model, running))))

    async def _fitted(self, call: _ModelCall) -> list[types.Content]:
        body = {**call.frame, "contents": [dumped(content) for content in call.contents]}
        sent = await call.thread.fit(body, NAME)
        if not sent.view.edits and not sent.status:
            return list(call.contents)
        return back(sent.body["contents"], call.contents)

    async def _thread(self, context: CallbackContext) -> Thread:
        agent, session = context.get_invocation_context().agent, _session_of(context)
        root = agent.root_agent if isinstance(agent, BaseAgent) else None
        name = session if root is None or root.name == context.agent_name else f"{session}/{context.agent_name}"
        if name not in self._threads:
            cause: Cause = "subagent" if caller() else "handoff"
            parent = caller() or self._newest.get(session)
            self._threads[name] = self.host.thread(name, self.host.origin(parent, cause) if parent else None)
        thread = self._threads[name]
        if _key(context) not in self._calls:
            await self.host.load(thread)
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
            await call.thread.keep({**call.frame, "contents": contents}, NAME)

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
        self._callers[_call_id(tool_context)] = caller()
        call = self._calls.get(_key(tool_context))
        call_from(call.thread if call else None)
        return None

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: dict[str, Any]
    ) -> dict[str, Any] | None:
        """And no longer."""
        call_from(self._callers.pop(_call_id(tool_context), None))
        return None

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, Any] | None:
        """Nor after it failed."""
        call_from(self._callers.pop(_call_id(tool_context), None))
        return None

    async def _answer(self, context: ToolContext, name: str, given: Mapping[str, Any]) -> Outcome:
        call = self._calls.get(_key(context))
        return await answered(call.thread if call else None, name, given)


async def _asked(model: BaseLlm, running: InvocationContext, prompt: Prompt) -> Reply:
    """What a model says to a question of clew's, which counts among the calls of its run and has a span there."""
    running.increment_llm_call_count()  # raises where there may be no more
    config = types.GenerateContentConfig(system_instruction=prompt.system or None, max_output_tokens=prompt.max_tokens)
    question = types.Content(role="user", parts=[types.Part(text=prompt.text)])
    asked = LlmRequest(model=model.model, contents=[question], config=config)
    with tracer.start_as_current_span(CHAPTER):
        said = [one async for one in model.generate_content_async(asked, stream=False)][-1]
    parts = (said.content and said.content.parts) or []
    if said.error_code:
        raise ModelError(f"{model.model}: {said.error_code}", "refused")
    text = "".join(part.text or "" for part in parts if not part.thought)
    calls = tuple(part.function_call.name or "" for part in parts if part.function_call)
    cut = said.finish_reason == types.FinishReason.MAX_TOKENS
    return Reply(
        text, spent(said.usage_metadata) if said.usage_metadata else Spent(0), calls, bool(parts) and not text, cut
    )


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


def dumped(content: types.Content) -> dict[str, Any]:
    """A content as JSON has it."""
    return content.model_dump(mode="json", by_alias=True, exclude_none=True)


def frame_of(asked: LlmRequest) -> dict[str, Any]:
    """What a request says beside its contents."""
    config = asked.config
    tools = [
        tool.model_dump(mode="json", by_alias=True, exclude_none=True)
        for tool in config.tools or ()
        if isinstance(tool, types.Tool)
    ]
    given: dict[str, Any] = {"model": asked.model or "", "tools": tools}
    if isinstance(config.system_instruction, str):
        given["systemInstruction"] = {"parts": [{"text": config.system_instruction}]}
    elif isinstance(config.system_instruction, types.Content):
        given["systemInstruction"] = dumped(config.system_instruction)
    if config.max_output_tokens:
        given["generationConfig"] = {"maxOutputTokens": config.max_output_tokens}
    return {key: value for key, value in given.items() if value}


def back(sent: Sequence[WireMessage], contents: Sequence[types.Content]) -> list[types.Content]:
    """The contents to send, ADK's own objects where they are unchanged."""
    return restored(sent, [(content, [dumped(content)]) for content in contents], _content)


def has_room_for_tools(asked: LlmRequest) -> bool:
    """Whether functions may be offered: not beside tools of the provider's own, nor where the answer has a schema."""
    config = asked.config
    if config.response_schema or config.response_json_schema or config.response_mime_type == "application/json":
        return False
    return all(isinstance(tool, types.Tool) and tool.function_declarations for tool in config.tools or ())


def _content(message: WireMessage) -> types.Content:
    return types.Content.model_validate_json(rawjson.dumps(message))  # bytes are base64 in JSON, and only there
