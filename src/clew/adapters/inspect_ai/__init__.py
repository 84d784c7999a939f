"""Inspect AI: a compaction strategy with which what leaves an agent's view is in clew's log and can be recalled."""

from collections.abc import Mapping
from contextvars import ContextVar
from operator import is_
from pathlib import Path
from typing import Any
from uuid import uuid4

from clew.errors import MissingExtra

try:
    from inspect_ai.model import CompactionStrategy
except ImportError:
    raise MissingExtra("clew.adapters.inspect_ai needs Inspect AI", "inspect-ai") from None

from inspect_ai.model import ChatMessage, ChatMessageUser, CompactionTrim, Model, get_model_info, messages_to_openai
from inspect_ai.tool import Tool, ToolDef, ToolInfo, ToolParam, ToolParams

from clew.adapters.inspect_ai.messages import INSPECT_FORMAT, made, session_in, unbound
from clew.adapters.restoring import restored
from clew.adapters.weaving import plain
from clew.agent.control import ContextController, offered
from clew.core.bridge import cross
from clew.core.items import Scope
from clew.core.limits import Budget
from clew.engine.engine import Engine, body
from clew.exchange.thread import Thread, best, engine_at
from clew.store.records import Origin
from clew.wire.convert.tools import ToolDeclaration
from clew.wire.rules.binding import binds

__all__ = ["ClewCompaction"]

UNDESCRIBED = {"description": "As the tool's description says."}  # Inspect wants one for each parameter

_TALKING: ContextVar[Thread | None] = ContextVar("clew_talking", default=None)  # the conversation of this agent


class ClewCompaction(CompactionStrategy):
    """`react(compaction=...)`: a work log and previews instead of what is old, with `tools` to look it up.

    The log has all that was said when Inspect compacts. Should clew fail, Inspect trims as `CompactionTrim` does.
    """

    def __init__(
        self,
        engine: Engine | str | Path | None = None,
        *,
        threshold: int | float = 0.8,
        memory: bool = True,
        scope: Scope = "default",
    ) -> None:
        super().__init__(type="summary", threshold=threshold, memory=memory)
        self.scope = scope
        self._where = engine
        self._controllers: dict[int | None, ContextController] = {}  # by how much may stay

    @property
    def preserve_prefix(self) -> bool:
        """Only system messages: what a user asked is in the work log."""
        return False

    @property
    def tools(self) -> list[Tool]:
        """For the agent's own list of tools: `recall` and `search_history`."""
        return [_tool(tool) for tool in offered("auto", False, "", "")]

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """What to send instead of these messages."""
        out = await best(self._compacted(model, messages, tools), None)
        if out is None:
            return await CompactionTrim(threshold=self.threshold, memory=self.memory).compact(model, messages, tools)
        return out, None

    async def _compacted(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> list[ChatMessage] | None:
        held = [(message, plain(await messages_to_openai([message]))) for message in messages]
        asked: dict[str, Any] = {"model": model.name, "messages": [part for _, parts in held for part in parts]}
        if tools:
            asked["tools"] = [{"type": "function", "function": _declared(tool)} for tool in tools]
        controller = self._controller(model)
        thread = self._thread(controller, messages)
        view = (await thread.fit(asked, INSPECT_FORMAT)).view
        name = str(thread.session)
        sent = restored(plain(body(view)["messages"]), held, lambda wire: made(wire, messages, name))
        if _is_same(sent, messages):  # small enough for clew, and not for Inspect, which counts in its own way
            view = await cross(controller.engine.compact(view, method="reactive"))
            sent = restored(plain(body(view)["messages"]), held, lambda wire: made(wire, messages, name))
        if _is_same(sent, messages):
            return None
        # Claude's thinking is bound to what stood before it, which is no longer what it was.
        return unbound(sent) if binds("anthropic", model.name) else sent

    def _thread(self, controller: ContextController, messages: list[ChatMessage]) -> Thread:
        """The conversation of these messages; one that begins in a tool of another agent is a part of that one's."""
        known, caller = session_in(messages), _TALKING.get()
        origin = None
        if known is None and caller is not None and caller.last is not None:
            origin = Origin("subagent", caller.last.view.branch)
        thread = Thread(controller, known or f"inspect-{uuid4().hex}", scope=self.scope, origin=origin)
        _TALKING.set(thread)
        return thread

    def _controller(self, model: Model) -> ContextController:
        limit = self._limit(model)
        if limit not in self._controllers:
            controller = ContextController(
                engine_at(self._where, Budget(window=limit) if limit else None), offer=False, tell=False
            )
            controller.method = "auto"
            self._controllers[limit] = controller
        return self._controllers[limit]

    def _limit(self, model: Model) -> int | None:
        """Tokens that may stay, as Inspect reckons; None where it knows no window, and clew's catalog may."""
        if isinstance(self.threshold, int) or self.threshold > 1:
            return int(self.threshold)
        known = get_model_info(model)
        window = known.context_length if known else None
        return int(self.threshold * window) if window else None


def _is_same(some: list[ChatMessage], others: list[ChatMessage]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _declared(tool: ToolInfo) -> dict[str, Any]:
    parameters = tool.parameters.model_dump(exclude_none=True)
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def _tool(declared: ToolDeclaration) -> Tool:
    """One of clew's tools as one of Inspect's."""

    async def execute(**kwargs: Any) -> str:
        thread = _TALKING.get()
        if thread is None:
            return "Nothing has left the view yet: all that was said is above."
        return (await thread.answer(declared.name, kwargs)).text

    schema: Mapping[str, Any] = declared.schema or {}
    parameters = ToolParams(
        properties={name: ToolParam.model_validate({**UNDESCRIBED, **of}) for name, of in schema["properties"].items()},
        required=list(schema["required"]),
    )
    return ToolDef(execute, name=declared.name, description=declared.description, parameters=parameters).as_tool()
