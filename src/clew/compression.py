"""One call, no store: messages in, fewer messages out, and the way back to what is missing."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from clew import catalog
from clew.core.bounds import ITEMS_SEARCHED, SEARCHED, TEXT_SEARCHED, newest
from clew.core.bridge import run
from clew.core.items import SHORT, Digests, Edit, Frame, Item, Node
from clew.core.limits import Budget
from clew.core.view import View, originals
from clew.errors import Ambiguous, BadRequest, NotFound
from clew.steps import default, over_budget, repair
from clew.steps import preset as preset_named
from clew.steps.bound import unbound
from clew.steps.chapters.by_model import ByModel
from clew.steps.chapters.model import Model
from clew.steps.chapters.with_chapters import WithChapters
from clew.steps.expand import ALL, MOST_TOKENS, question, recalled
from clew.steps.protocol import Step
from clew.text.excerpts import SIZE, excerpt, full_text
from clew.text.search import Found, Index, texts
from clew.tokens import counter_for
from clew.tokens.meter import Meter
from clew.tokens.target import Target
from clew.wire import decode, detect_list, encode, named
from clew.wire.rules.binding import is_refused

if TYPE_CHECKING:
    from clew.llm import Held


NEARLY = 0.6  # of the room for a note: with less of it used, the rest is for the history
RECALLED = 100  # tokens: with less room nothing is recalled for a question
SHORT_ID = re.compile(rf"\b[0-9a-f]{{{SHORT}}}\b")
LEAST_TARGET = 256  # tokens: with less nothing can be said of what is out of view


@dataclass(frozen=True)
class Compressed:
    """Messages that fit, what it took, and everything they stand for."""

    messages: list[dict[str, Any]]
    tokens_before: int
    tokens_after: int
    edits: tuple[Edit, ...]
    exact: bool  # whether the counts are the model's own, or an estimate
    _originals: Mapping[str, Node] = field(repr=False)
    _handles: Mapping[str, tuple[str, ...]] = field(repr=False)

    @property
    def tokens_saved(self) -> int:
        return self.tokens_before - self.tokens_after

    def recall(self, id: str) -> str:
        """The original text behind an id that stands in a message, byte for byte."""
        return "\n".join(node.item.text for node in self.recall_nodes(id))

    def excerpt(self, id: str, lines: str = "", pattern: str = "", size: int = SIZE) -> str:
        """Some of what an id stands for, in about `size` characters: lines such as 10-40, or those around a match."""
        return excerpt(full_text(self.recall_nodes(id)), id, lines, pattern, size)

    def recall_nodes(self, id: str) -> list[Node]:
        """The original nodes behind an id."""
        found = [key for key in (*self._originals, *self._handles) if key.startswith(id)] if id else []
        if not found:
            raise NotFound(f"no item has the id {id!r}; ids follow the word recall in the messages")
        if len(set(found)) > 1:
            raise Ambiguous(f"{id} matches {len(set(found))} ids; give more of it")
        return [self._originals[s] for s in self._handles.get(found[0], (found[0],))]

    def search(self, text: str, limit: int = 20) -> list[tuple[str, str]]:
        """(id, text) of what was said that a question is about, best first."""
        return [(f.id[:SHORT], self._originals[f.id].item.text) for f in self.find(text, limit)]

    def find(self, text: str, limit: int = 20) -> list[Found]:
        """What was said that a question is about, best first, with the lines that say so."""
        return self._index.find(text, limit)

    def answer(self, text: str, size: int = SIZE) -> str:
        """What was said that a question is about, in `size` characters of lines and names."""
        return self._index.answer(text, size)

    def places(self) -> dict[str, tuple[int, int]]:
        """For each id that stands in the messages, the first and the last item of the history that it is for."""
        named = set(SHORT_ID.findall(json.dumps(self.messages, default=str)))
        order = {id: n for n, id in enumerate(self._originals)}
        whole = {id: (id,) for id in self._originals} | dict(self._handles)
        found = {id[:SHORT]: [order[one] for one in ids] for id, ids in whole.items() if id[:SHORT] in named}
        return {id: (min(at), max(at)) for id, at in sorted(found.items(), key=lambda one: (one[1], one[0])) if at}

    @cached_property
    def _index(self) -> Index:
        return Index(texts(self._originals.values()))


def compress(
    messages: Sequence[Mapping[str, Any]],
    *,
    model: str | None = None,
    window: int | None = None,
    target_tokens: int | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    format: str | None = None,
    protect_last_n_tokens: int = Budget.tail,
    summary_target_tokens: int | None = None,
    auxiliary_model: str | Model | None = None,
    instructions: str | None = None,
    preset: str = "default",
) -> Compressed:
    """Make messages fit: their history under `target_tokens` if given, else as the window (given or known) asks for.

    The summary takes what is left of that, or `summary_target_tokens` at most. An `auxiliary_model` writes it, by the
    user's `instructions`, and code checks it; code writes it where there is none. A `preset` is one of
    `clew.steps.PRESETS`.

    >>> messages = [{"role": "user", "content": "Count the words of this. " * 400}] * 20
    >>> result = clew.compress(messages, window=8_000)
    >>> result.tokens_after < 8_000 < result.tokens_before
    True
    """
    return run(
        acompress(
            messages,
            model=model,
            window=window,
            target_tokens=target_tokens,
            tools=tools,
            format=format,
            protect_last_n_tokens=protect_last_n_tokens,
            summary_target_tokens=summary_target_tokens,
            auxiliary_model=auxiliary_model,
            instructions=instructions,
            preset=preset,
        )
    )


async def acompress(
    messages: Sequence[Mapping[str, Any]],
    *,
    model: str | None = None,
    window: int | None = None,
    target_tokens: int | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    format: str | None = None,
    protect_last_n_tokens: int = Budget.tail,
    summary_target_tokens: int | None = None,
    auxiliary_model: str | Model | None = None,
    instructions: str | None = None,
    preset: str = "default",
) -> Compressed:
    """`compress` for async code.

    >>> result = clew.run(clew.acompress([{"role": "user", "content": "Hello"}], window=8_000))
    >>> result.messages
    [{'role': 'user', 'content': 'Hello'}]
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise BadRequest(f"messages: expected a list of messages, got {type(messages).__name__}")
    form = format or detect_list(messages)
    body: dict[str, Any] = {named(form).LIST: list(messages)}
    if tools:
        body |= named(form).declaring(list(tools))
    frame, items = decode(body, form)
    digests = Digests()
    said = digests.chain(items)
    view = View(frame, tuple(said), digests)
    target = _target(model or "", view, window, target_tokens, protect_last_n_tokens)
    writing = None if auxiliary_model is None else _model(auxiliary_model)
    step = _step(preset, summary_target_tokens, writing, instructions)
    before = target.size(view)
    fitted = repair(view)
    if (size := target.size(fitted)) and target.exceeded(size):
        try:
            fitted = await _fitted(step, fitted, target.aim(size))
        finally:
            if isinstance(auxiliary_model, str):  # one that we made, we close
                await cast("Held", writing).close()
    if is_refused(frame, model or ""):
        fitted = unbound(fitted, view)
    after = target.size(fitted)
    if not after.within(target.limit):
        raise over_budget(fitted, target, after)
    out = encode(fitted.frame, (n.item for n in fitted.nodes))[named(form).LIST]
    return Compressed(
        out,
        before.tokens,
        after.tokens,
        fitted.edits,
        target.meter.counter.exact,
        {n.id: n for n in said},
        _handles(fitted),
    )


async def _fitted(step: Step, view: View, target: Target) -> View:
    """The view after a step, with what is out of it and the newest message is about beside that message."""
    asked = question(view)
    most = min(MOST_TOKENS, int(ALL * target.room)) if asked else 0
    if asked is None or most < RECALLED:
        return await step(view, target)
    for _ in range(2):  # with room for as much as may be, then for as much as there is
        after = await step(view, with_(target, aimed=target.goal._replace(tokens=target.goal.tokens - most)))
        shown = {n.id for n in after.nodes}
        hidden = [n for n in view.nodes if n.id not in shown]
        if not hidden or (asked := question(after)) is None:
            break
        searched = newest(hidden, ITEMS_SEARCHED, SEARCHED, TEXT_SEARCHED)
        index = await asyncio.to_thread(Index, texts(searched, own=False))
        left = min(most, target.limit.tokens - target.size(after).tokens)
        noted = await asyncio.to_thread(recalled, after, target, asked, index, left)
        if noted is after:
            break
        taken = target.size(noted).tokens - target.size(after).tokens
        if taken > NEARLY * most:
            return noted
        most = taken
    else:
        return noted
    return await step(view, target)


def _target(model: str, view: View, window: int | None, tokens: int | None, tail: int) -> Target:
    for name, value in (("window", window), ("target_tokens", tokens)):
        if value is not None and value <= 0:
            raise BadRequest(f"{name}: expected a positive number, got {value}")
    meter = Meter(counter_for(model, view.frame.format))
    if tokens is None:
        budget = Budget(window=window or catalog.window(model), tail=tail)
    else:
        budget = with_(bounds(tokens, view.frame, [n.item for n in view.nodes], meter), tail=tail)
    return Target(budget, meter).around(view.frame)


def bounds(target: int, frame: Frame, items: Sequence[Item], meter: Meter) -> Budget:
    """The budget for a history of so many tokens: system prompt and tools come on top, for nobody can compress them."""
    said = meter.items(items).tokens
    if target < min(LEAST_TARGET, said):
        raise BadRequest(
            f"target: {target:,} tokens are too few for a history of {said:,}; use at least {min(LEAST_TARGET, said):,}"
        )
    whole = meter.frame(frame).tokens + target
    return Budget(window=whole, reserve=0, high=1, low=1)


def _step(preset: str, size: int | None, model: Model | None, instructions: str | None) -> Step:
    if size is not None and size <= 0:
        raise BadRequest(f"summary_target_tokens: expected a positive number, got {size}")
    if size is not None and preset != default.__name__:
        raise BadRequest(f"summary_target_tokens: the preset {preset} has no size to set; use {default.__name__}")
    step = preset_named(preset) if size is None else default(size)
    if model is None:
        return step
    author = ByModel(model, instructions=instructions or "")
    return WithChapters(author if size is None else with_(author, size=size), step)


def _model(given: str | Model) -> Model:
    if not isinstance(given, str):
        return given
    from clew.llm import named as model_named  # needs an extra

    return model_named(given)


def _handles(view: View) -> dict[str, tuple[str, ...]]:
    """Every id a stand-in names, and the originals behind it."""
    handles: dict[str, tuple[str, ...]] = {}
    for edit in view.edits:
        sources = tuple(originals(edit.sources, view.edits.made))
        handles |= {n.id: sources for n in edit.stand_ins}
        if len(edit.old) > 1:
            handles[view.digests.handle(edit.old)] = sources
    return handles
