"""OpenAI's Agents SDK: a session with which each call of a model fits its window, and nothing that was said is lost.

The SDK's own session keeps its items whole. What is sent is a view of them, made before each call of a model.
"""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Unpack

from clew.errors import BadRequest, MissingExtra

try:
    from agents import FunctionTool, Model, RunConfig, SessionSettings, Tool, TResponseInputItem
except ImportError:
    raise MissingExtra("clew.adapters.openai_agents needs OpenAI Agents", "openai-agents") from None

from agents.memory import Session
from agents.models.default_models import get_default_model
from agents.run_config import CallModelData, ModelInputData
from agents.tool_context import ToolContext

from clew.adapters.host import Deciding, Host, Hosted, Where, asked_here
from clew.adapters.openai_agents.provider import FittedInput, HearingProvider
from clew.adapters.openai_agents.writing import asked, may_be_asked
from clew.adapters.restoring import restored
from clew.control import ContextController
from clew.core import rawjson
from clew.core.bridge import run
from clew.core.items import canonical
from clew.exchange.thread import Thread, answered, best, warn
from clew.wire.formats.tools import ToolDeclaration

__all__ = ["ClewSession"]

AGENTS_FORMAT = "openai_responses"  # which the SDK writes for models of all providers
KNOWN_BY = ("role", "content", "call_id", "output", "name", "arguments", "summary")  # keys by which an item is known


_fitted: ContextVar[FittedInput | None] = ContextVar("clew_agents_fitted", default=None)  # what this task sends now


class ClewSession:
    """For `Runner.run(agent, text, session=session, run_config=session.run_config())`.

    `underlying_session` is any session of the SDK's; it keeps all items. With the method `llm`, an agent that has
    `tools` is told how full its window is, and may begin a new session.
    """

    def __init__(
        self,
        underlying_session: Session,
        engine: Where = None,
        **options: Unpack[Deciding],
    ) -> None:
        self.underlying_session = underlying_session
        self.session_id = underlying_session.session_id
        self.session_settings: SessionSettings | None = underlying_session.session_settings
        # The tools are the agent's: nothing can be added to a request here. A call of one that it has not ends its run.
        self.host = Host(engine, offer=False, **options)
        self._is_read = False  # by the SDK, when a run begins
        self._first: str | None = None  # how the conversation begins
        self._main: Thread | None = None
        self._frame: dict[str, Any] = {}  # in which it was last sent

    @cached_property
    def controller(self) -> ContextController:
        """Has the method and the engine, whose store is opened when it is first needed."""
        return self.host.controller()

    @cached_property
    def tools(self) -> list[Tool]:
        """Tools for `Agent(tools=[..., *session.tools])`, with which it recalls what is out of view."""
        try:
            method = self.controller.method
        except Exception as error:
            warn("clew could not open its store; it tries again with the next request", error)
            method = self.host.method or "auto"
        return [self._tool(tool) for tool in self.host.tools(method)]

    def close(self) -> None:
        """Let go of a store that was opened for a path."""
        self.__dict__.pop("controller", None)
        run(self.host.close())

    # What the SDK asks of a session.

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items that the SDK's own session keeps."""
        items = await self.underlying_session.get_items(limit)
        self._is_read, self._first = True, mark_of(items[0]) if items else None
        return items

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Have more items; with an answer, all of them are in the log, for perhaps nobody is asked again."""
        await self.underlying_session.add_items(items)
        if items and self._first is None:
            self._first = mark_of(items[0])
        if items and items[-1].get("role") == "assistant" and self._main is not None:
            await best(self._keep(self._main), None)

    async def _keep(self, thread: Thread) -> None:
        whole = await self.underlying_session.get_items()
        await thread.keep({**self._frame, "input": whole}, AGENTS_FORMAT)

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item out of the SDK's own session; the log keeps it."""
        return await self.underlying_session.pop_item()

    async def clear_session(self) -> None:
        """Empty the SDK's own session; the log keeps what was said."""
        await self.underlying_session.clear_session()
        self._first = None

    # What stands before each call of a model.

    def run_config(self, config: RunConfig | None = None) -> RunConfig:
        """A configuration for a run, which may have others of your wishes in it; a filter of yours comes first."""
        config = config or RunConfig()
        theirs, model = config.call_model_input_filter, config.model

        async def filtered(data: CallModelData[Any]) -> ModelInputData:
            if theirs is not None:
                before = theirs(data)
                data = replace(data, model_data=before if isinstance(before, ModelInputData) else await before)
            return await self.fit(data, model, config)

        provider = HearingProvider(config.model_provider, _fitted.get)
        return replace(config, call_model_input_filter=filtered, model_provider=provider)

    async def fit(
        self, data: CallModelData[Any], model: str | Model | None = None, config: RunConfig | None = None
    ) -> ModelInputData:
        """For `RunConfig(call_model_input_filter=session.fit)`: what fits of what is about to be sent.

        The agent's model is asked to write chapters where the `config` says who serves it.
        """
        _fitted.set(None)
        items = await best(self._fit(data, model, config), None)
        return data.model_data if items is None else replace(data.model_data, input=items)

    async def _fit(
        self, data: CallModelData[Any], model: str | Model | None, config: RunConfig | None
    ) -> list[TResponseInputItem] | None:
        given = data.model_data.input
        if not given:
            return None
        body = request_of(data, model)
        thread = self._thread(given)
        if config is not None and may_be_asked(data.agent, config):
            ask = asked_here(partial(asked, model or data.agent.model, config))
            thread.own = self.host.author(Hosted(body["model"], ask))

        async def again() -> list[TResponseInputItem]:
            return items_of((await thread.fit(body, AGENTS_FORMAT)).body, given)

        sent = await thread.fit(body, AGENTS_FORMAT)
        _fitted.set(FittedInput(thread, again))
        if thread.session is not None:
            self._main, self._frame = thread, {key: value for key, value in body.items() if key != "input"}
        return None if sent.is_unchanged else items_of(sent.body, given)

    def _thread(self, given: list[TResponseInputItem]) -> Thread:
        """Whose items these are.

        An agent that is a tool runs with the same configuration, and an agent that takes over may be given other
        items: these conversations are known by their past, and hang under this one.
        """
        if self._first is None and self._is_read:  # a stream is begun before its first words are here
            self._first = mark_of(given[0])
        if mark_of(given[0]) == self._first:
            return Thread(self.controller, self.session_id, scope=self.host.scope)
        origin = self.host.origin(self._main) if self._main else None
        return Thread(self.controller, scope=self.host.scope, origin=origin)

    def _tool(self, tool: ToolDeclaration) -> FunctionTool:
        async def answer(context: ToolContext[Any], given: str) -> str:
            thread = fitted.thread if (fitted := _fitted.get()) else self._main
            try:
                arguments = rawjson.loads(given or "{}")
            except BadRequest as error:
                return f"Error: {error}"
            return (await answered(thread, tool.name, arguments if isinstance(arguments, dict) else {})).text

        schema = dict(tool.schema or {})
        return FunctionTool(tool.name, tool.description, schema, answer, strict_json_schema=False)


def request_of(data: CallModelData[Any], model: str | Model | None) -> dict[str, Any]:
    """What the SDK is about to send; of its tools, those that are functions."""
    body: dict[str, Any] = {"model": _name(model or data.agent.model), "input": list(data.model_data.input)}
    if data.model_data.instructions:
        body["instructions"] = data.model_data.instructions
    tools = [_declared(tool) for tool in data.agent.tools if isinstance(tool, FunctionTool)]
    if most := data.agent.model_settings.max_tokens:
        body["max_output_tokens"] = most
    return {**body, "tools": tools} if tools else body


def items_of(body: Mapping[str, Any], given: Sequence[TResponseInputItem]) -> list[TResponseInputItem]:
    """The items to send: the SDK's own wherever they are unchanged."""
    held: list[tuple[Any, Sequence[Any]]] = [(item, [item]) for item in given]
    return restored(body["input"], held, lambda item: item)


def mark_of(item: Any) -> str:
    """What an item says, whatever its id and its state: the SDK leaves these out here and there."""
    return canonical({key: item[key] for key in KNOWN_BY if key in item})


def _name(model: str | Model | None) -> str:
    """By which the catalog may know a model."""
    if model is None:
        return get_default_model()
    return model if isinstance(model, str) else str(getattr(model, "model", ""))


def _declared(tool: FunctionTool) -> dict[str, Any]:
    given = {"name": tool.name, "description": tool.description, "parameters": tool.params_json_schema}
    return {"type": "function", **given, "strict": tool.strict_json_schema}
