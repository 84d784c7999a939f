"""PraisonAI: SUMMARIZE that asks a model, agents whose requests always fit, and the compressor that was asked for."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from inspect import Parameter, Signature
from itertools import takewhile
from pathlib import Path
from typing import Any, Unpack
from uuid import uuid4

from clew.core.own_tools import RECALL
from clew.errors import MissingExtra

try:
    from praisonaiagents.context.manager import ContextManager
except ImportError:
    raise MissingExtra("clew.adapters.praisonai needs PraisonAI", "praisonai") from None

from praisonaiagents.context.models import ContextConfig, ContextLedger, OptimizationResult, OptimizerStrategy
from praisonaiagents.context.optimizer import OPTIMIZER_REGISTRY, BaseOptimizer
from praisonaiagents.context.tokens import estimate_messages_tokens, get_estimator
from praisonaiagents.hooks import BeforeLLMInput, HookEvent, HookRegistry
from praisonaiagents.tools.schema import build_tool_definition

from clew.adapters.host import Deciding, Host, Where, renamed
from clew.adapters.praisonai.backend import ClewBackend
from clew.adapters.praisonai.compressor import PRAISON_FORMAT, SYSTEM_ROLES, ContextCompressor, PraisonCompressed
from clew.adapters.praisonai.conversation import Conversation
from clew.adapters.weaving import ChatMessage, plain
from clew.compression import compress
from clew.core.bridge import run
from clew.core.items import SHORT
from clew.core.view import View
from clew.engine.append import Addition
from clew.engine.engine import Engine
from clew.exchange.thread import best
from clew.sessions.about import results_of
from clew.steps.handoff import NEW_SESSION
from clew.steps.lines import preview
from clew.store.records import Origin
from clew.wire.formats.tools import ToolDeclaration

__all__ = ["ClewBackend", "ClewContext", "ContextCompressor", "PraisonCompressed", "register"]

__getattr__ = renamed(__name__, Backend="ClewBackend", Context="ClewContext")

SUMMARY_PART = 4  # of the tokens that an optimizer may leave, for the summary; the tail has what the head leaves
LEAST_SUMMARY_TOKENS = 150
NO_ROOM_TOKENS = 750  # of a summary, where PraisonAI finds no room for a history at all
ANY = 1_000_000_000  # tokens: how many may stay is said with each call
HEAD_PER_TOKEN = 2  # characters of a result's beginning for each token that it may have; of its end, half of that


def register(
    engine: Engine | str | Path | None = None, *, llm: Any = None, sessions: Any = None, auxiliary_model: Any = None
) -> ExitStack:
    """Let SUMMARIZE ask a model, for all agents of this process; close what you get, or leave its block, to undo it."""
    compressor = ContextCompressor(llm, get_estimator(), engine=engine, sessions=sessions, window=ANY)

    class Optimizer(BaseOptimizer):  # type: ignore[misc]
        """SUMMARIZE as PraisonAI looks it up: by its class, which gets the settings that its constructor names."""

        def __init__(self) -> None:
            super().__init__()

        def optimize(
            self, messages: list[ChatMessage], target_tokens: int, ledger: ContextLedger | None = None
        ) -> tuple[list[ChatMessage], OptimizationResult]:
            """Messages in about so many tokens; the same ones if they are no more, or if nothing can be done."""
            had = estimate_messages_tokens(messages)
            out = messages
            if had > target_tokens:
                out = run(best(self._compressed(messages, target_tokens), messages))
            has = estimate_messages_tokens(out)
            removed = len(messages) - len(out)
            return out, OptimizationResult(
                had, has, had - has, OptimizerStrategy.SUMMARIZE, removed, summary_added=out is not messages
            )

        async def _compressed(self, messages: list[ChatMessage], target: int) -> list[ChatMessage]:
            size = max(LEAST_SUMMARY_TOKENS, target // SUMMARY_PART) if target > 0 else NO_ROOM_TOKENS
            tail = max(0, target - size - estimate_messages_tokens(_head(messages)))
            result = await compressor.compress(
                messages,
                protect_last_n_tokens=tail,
                summary_target_tokens=size,
                auxiliary_model=auxiliary_model,
            )
            return result.messages if result.tokens_saved else messages

    undoing = ExitStack()
    summarize = OptimizerStrategy.SUMMARIZE
    undoing.callback(OPTIMIZER_REGISTRY.__setitem__, summarize, OPTIMIZER_REGISTRY[summarize])
    OPTIMIZER_REGISTRY[summarize] = Optimizer
    return undoing


class ClewContext(ContextManager):  # type: ignore[misc]
    """`Agent(context=...)`: each turn of a chat fits and nothing of it is lost, with `tools` to look it up.

    PraisonAI asks it once a turn. Where one turn makes many calls, `ClewBackend` sees each of them.
    """

    def __init__(
        self,
        engine: Where = None,
        *,
        session: str | None = None,
        model: str = "gpt-4o-mini",
        sessions: Any = None,
        config: ContextConfig | None = None,
        **options: Unpack[Deciding],
    ) -> None:
        super().__init__(model, config, session or "")
        # PraisonAI runs tools that are functions of its agent: they are offered in `tools`, not in a request.
        self.host = Host(engine, offer=False, **options)
        self.conversation = Conversation(self.host.thread(session), sessions)
        self._sent: list[ChatMessage] = []  # what was last given back
        self._name = uuid4().hex[:8]
        self._aside: View | None = None  # results that were too large, each with its call

    @property
    def tools(self) -> list[Callable[..., str]]:
        """Functions for the agent's own list of tools."""
        controller = self.conversation.thread.controller
        controller.recall = RECALL  # who never takes them has them not, and is told of none
        return [_function(tool, self._answer) for tool in self.host.tools(controller.method)]

    @property
    def engine(self) -> Engine:
        """What keeps its conversations."""
        return self.host.engine

    @property
    def hooks(self) -> HookRegistry:
        """For agents that are awaited, which ask their context nothing: `Agent(context=..., hooks=...)`."""
        registry = HookRegistry()
        registry.register_function(HookEvent.BEFORE_LLM, self._fit, is_async=True)
        return registry

    async def _fit(self, call: BeforeLLMInput) -> None:
        if call.messages is not self._sent:  # else the context was asked after all
            call.messages = await self._fitted({"model": self.model, "messages": plain(call.messages)})

    async def _fitted(self, asked: ChatMessage) -> list[ChatMessage]:
        self._sent = (await self.conversation.fit(asked))["messages"]
        return self._sent

    def process(
        self,
        messages: list[ChatMessage],
        system_prompt: str = "",
        tools: Sequence[Any] | None = None,
        trigger: str = "turn",
    ) -> dict[str, Any]:
        """What PraisonAI sends instead of its messages, and how many tokens that saves."""
        lead = (
            []
            if not system_prompt or any(m.get("role") in SYSTEM_ROLES for m in messages)
            else [_system_message(system_prompt)]
        )
        asked: ChatMessage = {"model": self.model, "messages": [*lead, *plain(messages)]}
        if schemas := [schema for tool in tools or () if (schema := _schema(tool))]:
            asked["tools"] = schemas
        out = self._sent = run(self._fitted(asked))[len(lead) :]
        had, has = estimate_messages_tokens(messages), estimate_messages_tokens(out)
        return {
            "messages": out,
            "optimized": has < had,
            "tokens_before": had,
            "tokens_after": has,
            "tokens_saved": max(0, had - has),
            "utilization": self._ledger.get_utilization(),
            "warnings": [],
            "optimization_result": None,
        }

    def emergency_truncate(self, messages: list[ChatMessage], target_tokens: int) -> list[ChatMessage]:
        """Messages in so many tokens, pairs whole, with a line where something is missing."""
        short = run(best(self._shortened(messages, target_tokens), None))
        if short is None:
            return list(super().emergency_truncate(messages, target_tokens))
        return short

    async def _shortened(self, messages: list[ChatMessage], target: int) -> list[ChatMessage]:
        return await asyncio.to_thread(
            lambda: compress(plain(messages), model=self.model, target_tokens=target).messages
        )

    def truncate_tool_output(
        self, tool_name: str, output: str, tool_call_id: str | None = None, run_id: str | None = None
    ) -> str:
        """A result within its budget as it is; of a larger one both ends, and the id by which it can be recalled."""
        most = self.get_tool_budget(tool_name)
        if self.estimate_tokens(output)[0] <= most:
            return output
        short = run(best(self._put_aside(tool_name, output, tool_call_id or uuid4().hex, most), None))
        if short is None:
            return str(super().truncate_tool_output(tool_name, output, tool_call_id, run_id))
        return short

    async def _put_aside(self, tool: str, output: str, call: str, most: int) -> str:
        """A preview of a result that PraisonAI's history will not have, kept in a conversation of its own."""
        thread = self.conversation.thread
        made = {"id": call, "type": "function", "function": {"name": tool, "arguments": "{}"}}
        said = [
            {"role": "assistant", "content": None, "tool_calls": [made]},
            {"role": "tool", "tool_call_id": call, "content": output},
        ]
        origin = Origin("task", thread.last.view.branch if thread.last else None)
        name = results_of(thread.session or self._name)
        aside = Addition({"model": self.model, "messages": said}, name, PRAISON_FORMAT, thread.scope, origin)
        await self.engine.append(aside)
        self._aside = await self.engine.open(aside)
        kept = self._aside.nodes[-1]
        return preview(kept.item, kept.id[:SHORT], HEAD_PER_TOKEN * most, most, ()).text

    def _answer(self, name: str, given: Mapping[str, Any]) -> str:
        return run(self._answered(name, given))

    async def _answered(self, name: str, given: Mapping[str, Any]) -> str:
        """A turn's own calls are not in the history that PraisonAI keeps, so a new session is begun here and now."""
        thread = self.conversation.thread
        came = await thread.answer(name, given)
        if self._aside and came.failed:
            came = await thread.controller.answer(self._aside, name, given)
        if name == NEW_SESSION and not came.failed and thread.last:
            await self.engine.begin(thread.last.view, str(given["summary"]), "llm")
        return came.text


def _head(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """What stays at the beginning, more or less: up to the first answer, with the results of its calls."""
    roles = [str(message.get("role")) for message in messages]
    answer = roles.index("assistant") if "assistant" in roles else len(roles)
    return messages[: answer + 1 + len([*takewhile("tool".__eq__, roles[answer + 1 :])])]


def _function(tool: ToolDeclaration, answer: Callable[[str, Mapping[str, Any]], str]) -> Callable[..., str]:
    """A tool as a function with the signature that PraisonAI reads its schema from."""

    def function(**given: Any) -> str:
        return answer(tool.name, given)

    schema = tool.schema or {}
    parameters = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if name in schema["required"] else None,
            annotation=bool if kind["type"] == "boolean" else str,
        )
        for name, kind in schema["properties"].items()
    ]
    function.__name__ = tool.name
    function.__doc__ = " ".join(tool.description.split())  # PraisonAI shows a model the first paragraph only
    function.__signature__ = Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]
    return function


def _schema(tool: Any) -> Any:
    return tool if isinstance(tool, dict) else build_tool_definition(tool) if callable(tool) else None


def _system_message(text: str) -> ChatMessage:
    return {"role": "system", "content": text}
