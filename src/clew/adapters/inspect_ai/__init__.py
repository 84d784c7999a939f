"""Inspect AI: a compaction strategy with which what leaves an agent's view is in clew's log and can be recalled."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from operator import is_
from typing import Any
from uuid import uuid4

from clew.errors import MissingExtra

try:
    from inspect_ai.model import CompactionStrategy
except ImportError:
    raise MissingExtra("clew.adapters.inspect_ai needs Inspect AI", "inspect-ai") from None

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    CompactionTrim,
    Content,
    ContentImage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    Model,
    get_model_info,
    messages_to_openai,
)
from inspect_ai.tool import Tool, ToolCall, ToolDef, ToolInfo, ToolParam, ToolParams

from clew.adapters.host import CHAPTER, Host, Hosted, Where, asked_here, call_from, caller
from clew.adapters.restoring import restored
from clew.adapters.weaving import plain
from clew.catalog.usage import Spent
from clew.control import ContextController
from clew.control.pointers import recall_name, with_names
from clew.core.bridge import cross
from clew.core.items import Scope
from clew.engine.engine import body
from clew.exchange.thread import Thread, answered, best
from clew.steps.chapters.model import Prompt, Reply
from clew.wire.formats.tools import ToolDeclaration
from clew.wire.rules.binding import binds

__all__ = ["ClewCompaction"]

INSPECT_FORMAT = "openai_chat"
SESSION_MARK = "clew_session"  # in the metadata of a message, by which its conversation is known again
UNDESCRIBED = {"description": "As the tool's description says."}  # Inspect wants one for each parameter


class ClewCompaction(CompactionStrategy):
    """`react(compaction=...)`: a work log and previews instead of what is old, with `tools` to look it up.

    The log has all that was said when Inspect compacts. Should clew fail, Inspect trims as `CompactionTrim` does.
    """

    def __init__(
        self,
        engine: Where = None,
        *,
        threshold: int | float = 0.8,
        memory: bool = True,
        scope: Scope = "default",
    ) -> None:
        super().__init__(type="summary", threshold=threshold, memory=memory)
        # Nobody is told anything here, and the tools are the agent's.
        self.host = Host(engine, scope=scope, method="auto", offer=False, tell=False)
        self._controllers: dict[int | None, ContextController] = {}  # by how much may stay

    @property
    def preserve_prefix(self) -> bool:
        """Only system messages: what a user asked is in the work log."""
        return False

    @property
    def tools(self) -> list[Tool]:
        """For the agent's own list of tools: `recall` and `search_history`."""
        return [_tool(tool) for tool in self.host.tools("auto")]

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
        ask = asked_here(partial(_asked, model))
        thread.own = self.host.author(Hosted(model.name, ask, self._window(model)))
        # Inspect says when: what is to leave is written of now, and then it leaves.
        view = (await thread.fit(asked, INSPECT_FORMAT)).view
        view = await cross(controller.engine.compact(view, method="reactive"))
        name = str(thread.session)
        named = with_names(view, recall_name(asked, view))
        sent = restored(plain(body(named)["messages"]), held, lambda wire: made(wire, messages, name))
        if _is_same(sent, messages):
            return None
        # Claude's thinking is bound to what stood before it, which is no longer what it was.
        return unbound(sent) if binds("anthropic", model.name) else sent

    def _thread(self, controller: ContextController, messages: list[ChatMessage]) -> Thread:
        """The conversation of these messages; one that begins in a tool of another agent is a part of that one's."""
        known = session_in(messages)
        origin = self.host.origin() if known is None else None
        session = known or f"inspect-{uuid4().hex}"
        call_from(thread := Thread(controller, session, scope=self.host.scope, origin=origin))
        return thread

    def _controller(self, model: Model) -> ContextController:
        limit = self._limit(model)
        if limit not in self._controllers:
            engine = self.host.engine_in(limit).variant(compaction="off")
            self._controllers[limit] = self.host.controller(engine)
        return self._controllers[limit]

    def _limit(self, model: Model) -> int | None:
        """Tokens that may stay, as Inspect reckons; None where it knows no window, and clew's catalog may."""
        if isinstance(self.threshold, int) or self.threshold > 1:
            return int(self.threshold)
        window = self._window(model)
        return int(self.threshold * window) if window else None

    def _window(self, model: Model) -> int | None:
        known = get_model_info(model)
        return known.context_length if known else None


async def _asked(model: Model, prompt: Prompt) -> Reply:
    """What a model says to a question of clew's, which counts against the limits of its sample."""
    system = [ChatMessageSystem(content=prompt.system)] if prompt.system else []
    question: list[ChatMessage] = [*system, ChatMessageUser(content=prompt.text, metadata={"clew": CHAPTER})]
    answer = await model.generate(question, config=GenerateConfig(max_tokens=prompt.max_tokens))
    used, said = answer.usage, answer.choices[0].message if answer.choices else None
    cached = ((used.input_tokens_cache_read or 0), (used.input_tokens_cache_write or 0)) if used else (0, 0)
    took = Spent(used.input_tokens + sum(cached), used.output_tokens, *cached) if used else Spent(0)
    calls = tuple(call.function for call in (said and said.tool_calls) or ())
    return Reply(answer.completion, took, calls, cut=answer.stop_reason in ("max_tokens", "model_length"))


def _is_same(some: list[ChatMessage], others: list[ChatMessage]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _declared(tool: ToolInfo) -> dict[str, Any]:
    parameters = tool.parameters.model_dump(exclude_none=True)
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def _tool(declared: ToolDeclaration) -> Tool:
    """One of clew's tools as one of Inspect's."""

    async def execute(**kwargs: Any) -> str:
        if (thread := caller()) is None:
            return "Nothing has left the view yet: all that was said is above."
        return (await answered(thread, declared.name, kwargs)).text

    schema: Mapping[str, Any] = declared.schema or {}
    parameters = ToolParams(
        properties={name: ToolParam.model_validate({**UNDESCRIBED, **of}) for name, of in schema["properties"].items()},
        required=list(schema["required"]),
    )
    return ToolDef(execute, name=declared.name, description=declared.description, parameters=parameters).as_tool()


def session_in(messages: Sequence[ChatMessage]) -> str | None:
    """The conversation of messages that clew compacted before."""
    marks = ((message.metadata or {}).get(SESSION_MARK) for message in messages)
    return next((str(mark) for mark in marks if mark), None)


def made(wire: Mapping[str, Any], messages: Sequence[ChatMessage], session: str) -> ChatMessage:
    """A message of Inspect's that says what this one says."""
    content, metadata = _content(wire.get("content")), {SESSION_MARK: session}
    match wire["role"]:
        case "system" | "developer":
            return ChatMessageSystem(content=content, metadata=metadata)
        case "assistant":
            calls = [
                ToolCall(
                    id=call["id"],
                    function=call["function"]["name"],
                    arguments=_arguments(call["function"]["arguments"]),
                )
                for call in wire.get("tool_calls") or ()
            ]
            return ChatMessageAssistant(content=content, tool_calls=calls or None, metadata=metadata)
        case "tool":
            id = wire["tool_call_id"]
            function = next((m.function for m in messages if m.role == "tool" and m.tool_call_id == id), None)
            return ChatMessageTool(content=content, tool_call_id=id, function=function, metadata=metadata)
    return ChatMessageUser(content=content, metadata=metadata)


def _content(said: Any) -> str | list[Content]:
    if not isinstance(said, list):
        return str(said or "")
    return [
        ContentImage(image=part["image_url"]["url"])
        if part.get("type") == "image_url"
        else ContentText(text=str(part.get("text", "")))
        for part in said
    ]


def _arguments(written: str) -> dict[str, Any]:
    try:
        read = json.loads(written)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def unbound(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages without the thinking of a model."""
    return [
        message.model_copy(update={"content": [c for c in message.content if not isinstance(c, ContentReasoning)]})
        if message.role == "assistant" and isinstance(message.content, list)
        else message
        for message in messages
    ]
