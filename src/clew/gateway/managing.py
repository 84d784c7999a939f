"""Anthropic's context management for upstreams that lack it: what a request asks for, taken out of it and done here.

From platform.claude.com/docs/en/build-with-claude, "Context editing" and "Compaction": a client sends its whole history
each time, with the edits that it wants; old results of tools become placeholders, or all becomes a summary, which comes
back in a block of the answer. What stands before such a block counts no more, and a client may leave it out.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from clew.agent.control import SentBody
from clew.core import rawjson
from clew.core.bridge import cross
from clew.core.view import Swap, View
from clew.errors import BadRequest, Conflict, StoreError
from clew.exchange.thread import Thread, warn
from clew.gateway.compacting import SUMMED_UP
from clew.gateway.degraded import SpareEngine
from clew.steps.calls import shrunk
from clew.steps.lines import calls_by_result, cleared
from clew.steps.protocol import PureStep
from clew.store.waiting import patience
from clew.tokens.target import Target

Block = dict[str, Any]

CLEAR, COMPACT = "clear_tool_uses_20250919", "compact_20260112"
BETAS = frozenset({"context-management-2025-06-27", "compact-2026-01-12"})  # that such an upstream may not know
CLEAR_TRIGGER, COMPACT_TRIGGER, KEPT_USES = 100_000, 150_000, 3  # tokens, tokens and uses, where nothing is said
_FREED = "cleared_tokens"  # by which a cleared result is known among the edits of a view


@dataclass(frozen=True)
class ClearToolUses(PureStep):
    """Results of all but the newest uses of tools become one line each, whatever the size of the whole.

    What no model has read yet stays, and pins.
    """

    keep: int = KEPT_USES
    least: int = 0  # tokens: where less would go, all stays
    excluded: tuple[str, ...] = ()
    inputs: bool | tuple[str, ...] = False  # long arguments go, too: of all, or of these tools

    def apply(self, view: View, target: Target) -> View:
        swaps = list(self._swaps(view, target))
        freed = sum(swap.evidence[_FREED] for swap in swaps)
        return view.replace_all(swaps, by=self) if swaps and freed >= self.least else view

    def _swaps(self, view: View, target: Target) -> Iterator[Swap]:
        calls, made = calls_by_result(view.nodes), view.stand_ins()
        unread = max((i for i, node in enumerate(view.nodes) if node.item.role == "assistant"), default=0)
        old = sorted(calls)[: max(0, len(calls) - self.keep)]
        going = {i for i in old if i < unread and calls[i].name not in self.excluded}
        losing = {calls[i].call_id for i in going if self._loses_input(calls[i].name)}
        for i, node in enumerate(view.nodes):
            if node.id in made or node.id in view.pinned:
                continue
            if i in going:
                new = cleared(node.item, calls[i], view.short(i, i + 1))
            elif (
                node.item.kind == "call"
                and node.item.call_id in losing
                and (short := shrunk(node.item, view.short(i, i + 1)))
            ):
                new = short
            else:
                continue
            freed = target.meter.node(node).tokens - target.meter.items([new]).tokens
            if freed > 0:
                yield Swap(i, i + 1, [new], {_FREED: freed})

    def _loses_input(self, name: str) -> bool:
        return self.inputs if isinstance(self.inputs, bool) else name in self.inputs


@dataclass(frozen=True)
class Clearing:
    """When results of tools go, and which."""

    step: ClearToolUses
    tokens: int | None = CLEAR_TRIGGER
    uses: int | None = None

    def is_due(self, view: View, tokens: int) -> bool:
        """Whether a view of so many tokens has more than may be."""
        if self.uses is not None:
            return len(calls_by_result(view.nodes)) > self.uses
        return self.tokens is not None and tokens > self.tokens


@dataclass(frozen=True)
class Compacting:
    """When all becomes a summary, and how."""

    tokens: int = COMPACT_TRIGGER
    instructions: str = ""
    pause: bool = False  # the answer is the summary alone


@dataclass(frozen=True)
class ManagedRequest:
    """A request without what it asks of its provider beside an answer, and what that was."""

    body: Block
    asks: bool  # whether its client expects to be told what was done
    clearing: Clearing | None = None
    compacting: Compacting | None = None
    summary: str | None = None  # that was made of its history, for this answer

    @property
    def raw(self) -> bytes:
        return rawjson.dumps(self.body)


def managed(raw: bytes) -> ManagedRequest | None:
    """What a request asks for of Anthropic's context management; None if nothing. Raises `BadRequest`."""
    if b'"context_management"' not in raw and b'"compaction"' not in raw:
        return None
    body = rawjson.loads(raw)
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list):
        return None
    asked = body.get("context_management")
    opened = _opened(messages)
    if asked is None and opened is messages:
        return None
    plain = {key: value for key, value in body.items() if key != "context_management"} | {"messages": opened}
    edits = asked.get("edits") if isinstance(asked, Mapping) else None
    known = {edit.get("type"): edit for edit in edits or () if isinstance(edit, Mapping)}
    clearing = _clearing(known[CLEAR]) if CLEAR in known else None
    compacting = _compacting(known[COMPACT]) if COMPACT in known else None
    return ManagedRequest(plain, asked is not None, clearing, compacting)


class ManagedThread(Thread):
    """A conversation of whose history old results go once there is too much of it."""

    clearing: Clearing | None = None
    spare: SpareEngine | None = None  # for when the store fails
    is_spared = False  # it did

    async def fit(self, body: Mapping[str, Any] | bytes, format: str | None = None) -> SentBody:
        sent = await self._fit(body, format)
        if self.clearing is None or not await cross(self._clear(self.clearing, sent.view)):
            return sent
        return await self._fit(body, format)

    async def _fit(self, body: Mapping[str, Any] | bytes, format: str | None) -> SentBody:
        if self.spare is None:
            return await super().fit(body, format)
        resting = self.spare.is_resting
        try:
            with patience(0) if resting else nullcontext():
                sent = await super().fit(body, format)
            self.spare.works()
            return sent
        except StoreError as error:
            if not resting:
                warn("the store fails; requests are fitted from memory", error)
            if not error.damage and not isinstance(error, Conflict):  # those may be of this conversation alone
                self.spare.failed()
        self.controller, self.origin, self.is_spared = self.spare.controller(self.controller), None, True
        return await super().fit(body, format)

    async def _clear(self, clearing: Clearing, view: View) -> bool:
        engine = self.controller.engine
        if not clearing.is_due(view, await engine.expected(view)):
            return False
        return await engine.compact(view, step=clearing.step, method="client") is not view


def applied_edits(view: View) -> list[Block]:
    """What was cleared in a view, as Anthropic tells it."""
    made = {id: edit for id, edit in view.edits.made.items() if _FREED in edit.evidence}
    shown = [node for node in view.nodes if node.id in made]
    if not shown:
        return []
    freed = sum(made[node.id].evidence[_FREED] for node in shown)
    uses = len({node.item.call_id for node in shown})
    return [{"type": CLEAR, "cleared_tool_uses": uses, "cleared_input_tokens": freed}]


def without_betas(headers: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Headers that do not name what the gateway does itself: an upstream may refuse names that it does not know."""
    kept = list[tuple[str, str]]()
    for name, value in headers:
        if name == "anthropic-beta":
            value = ",".join(beta for beta in map(str.strip, value.split(",")) if beta not in BETAS)
        if value or name != "anthropic-beta":
            kept.append((name, value))
    return kept


# --- what a request says ----------------------------------------------------------------------------------------------


def _clearing(edit: Mapping[str, Any]) -> Clearing:
    inputs = edit.get("clear_tool_inputs")
    step = ClearToolUses(
        _value(edit, "keep", KEPT_USES),
        _value(edit, "clear_at_least", 0),
        tuple(edit.get("exclude_tools") or ()),
        tuple(inputs) if isinstance(inputs, list) else bool(inputs),
    )
    trigger = edit.get("trigger")
    if isinstance(trigger, Mapping) and trigger.get("type") == "tool_uses":
        return Clearing(step, None, _value(edit, "trigger", 0))
    return Clearing(step, _value(edit, "trigger", CLEAR_TRIGGER))


def _compacting(edit: Mapping[str, Any]) -> Compacting:
    instructions = edit.get("instructions")
    return Compacting(
        _value(edit, "trigger", COMPACT_TRIGGER),
        instructions if isinstance(instructions, str) else "",
        bool(edit.get("pause_after_compaction")),
    )


def _value(edit: Mapping[str, Any], key: str, otherwise: int) -> int:
    given = edit.get(key)
    if given is None:
        return otherwise
    value = given.get("value") if isinstance(given, Mapping) else None
    if not isinstance(value, int) or value < 0:
        raise BadRequest(f"context_management.edits: {edit.get('type')}.{key}.value: expected a number of at least 0")
    return value


# --- histories --------------------------------------------------------------------------------------------------------


def _opened(messages: list[Any]) -> list[Any]:
    """A history without the blocks that tell of compactions; the same list where there are none.

    What stands before such a block is in the log with all that was folded of it, and need not be told again. Who sends
    it no more goes on from the text of the block.
    """
    held = [n for n, message in enumerate(messages) if any(map(_is_compaction, _blocks(message)))]
    if not held:
        return messages
    told = [text for block in _blocks(messages[0]) if (text := _summary(block))]
    kept = [_without_blocks(message) if n in held else message for n, message in enumerate(messages)]
    left = [message for message in kept if message["content"]]
    return _continued(told[-1], left) if told else left


def _continued(text: str, messages: list[Any]) -> list[Any]:
    """A history that begins with a summary; two messages of the user's are one."""
    told = {"type": "text", "text": f"{SUMMED_UP}\n\n{text}"}
    if messages and messages[0].get("role") == "user":
        return [{**messages[0], "content": [told, *_blocks(messages[0])]}, *messages[1:]]
    return [{"role": "user", "content": [told]}, *messages]


def _blocks(message: Any) -> list[Any]:
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


def _is_compaction(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "compaction"


def _summary(block: Mapping[str, Any]) -> str:
    """What a compaction says; one that failed says nothing, and counts for nothing."""
    text = block.get("content") if _is_compaction(block) else None
    return text if isinstance(text, str) else ""


def _without_blocks(message: Any) -> Any:
    return {**message, "content": [block for block in _blocks(message) if not _is_compaction(block)]}
