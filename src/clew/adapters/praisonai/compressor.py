"""PraisonAI's compressor in the form that was asked for: head and tail stay, one message tells of the middle."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from praisonaiagents.context.compressor import CompressResult
from praisonaiagents.llm.llm import LLM
from praisonaiagents.llm.model_providers import default_auxiliary_model

from clew import catalog
from clew.adapters.askable import askable
from clew.adapters.middle import Middle
from clew.adapters.weaving import ChatMessage, plain
from clew.core.bridge import cross
from clew.core.items import Scope
from clew.core.limits import Budget
from clew.core.view import View
from clew.engine.engine import Engine, Request, body
from clew.engine.settings import Settings
from clew.errors import BadRequest, OverBudget
from clew.exchange.thread import engine_at
from clew.llm import read
from clew.llm.remote import Remote
from clew.sessions.sessions import Sessions
from clew.steps.chapters.allowance import Allowance
from clew.steps.chapters.by_model import SECONDS, ByModel
from clew.store.records import Session
from clew.tokens import Counter, Plain, counter_for
from clew.tokens.meter import Meter
from clew.wire import decode

SUMMARY_HEADING = "[Context summary]\n"
PRAISON_FORMAT = "openai_chat"
SYSTEM_ROLES = ("system", "developer")


@dataclass
class PraisonCompressed(CompressResult):  # type: ignore[misc]
    """PraisonAI's own result, and what went wrong with the model where code alone wrote the summary."""

    faults: tuple[str, ...] = ()


class ContextCompressor:
    """System messages, the first exchange and the newest tokens stay; what lies between becomes one message.

    `llm` is a PraisonAI `LLM`, a client of OpenAI, a function from text to text, a clew model, or a model's name;
    without one, code alone writes the summary. The originals are kept in the store of `engine`, or in memory. Each
    compression opens a child session in `sessions`, a session store of PraisonAI's, if there is one.
    """

    def __init__(
        self,
        llm: Any = None,
        tokenizer: Counter | Callable[[str], int] | None = None,
        *,
        engine: Engine | str | Path | None = None,
        window: int | None = None,
        sessions: Any = None,
        scope: Scope = "default",
        seconds: float = SECONDS,
    ) -> None:
        self.llm = llm
        self.sessions = sessions
        self.scope = scope
        self._seconds = seconds
        self._allowance = Allowance()
        name = llm if isinstance(llm, str) else str(getattr(llm, "model", "") or getattr(llm, "name", ""))
        self._meter = Meter(_counter(tokenizer, name))
        given = engine_at(":memory:" if engine is None else engine)
        budget = Budget(window=window or catalog.window(name))
        # The caller says when and what to compact: this engine only keeps the log, as the given one would.
        own = Settings(
            compaction="off",
            counter=self._meter.counter,
            listeners=given.settings.listeners,
            secrets=given.settings.secrets,
        )
        self._engine = Engine(given.store, budget, own)

    async def compress(
        self,
        messages: Sequence[ChatMessage],
        *,
        protect_last_n_tokens: int = 20_000,
        summary_target_tokens: int = 750,
        auxiliary_model: Any = None,
        parent_session_id: str | None = None,
    ) -> PraisonCompressed:
        """Messages with one summary for their middle; the same ones where there is nothing between head and tail."""
        faults: list[str] = []
        async with self._author(auxiliary_model, summary_target_tokens) as author:
            step = Middle(
                protect_last_n_tokens,
                summary_target_tokens,
                SUMMARY_HEADING,
                author,
                lambda written: faults.extend(written.faults),
            )
            given = plain(sorted(messages, key=lambda m: m.get("role") not in SYSTEM_ROLES))
            view, session = await cross(self._compacted(given, step, parent_session_id))
        result = self._result(given, view, faults)
        result.parent_session_id = parent_session_id
        if not result.tokens_saved:
            result.messages = list(messages)  # the very same, in their own order
        elif session:
            result.session_id = session.id
            result.parent_session_id = parent_session_id or session.parent
            if self.sessions is not None:
                await open_child(self.sessions, self._engine, view, session, result.parent_session_id)
        return result

    @asynccontextmanager
    async def _author(self, auxiliary: Any, size: int) -> AsyncIterator[ByModel | None]:
        given = self.llm if auxiliary is None else auxiliary
        if given is None:
            yield None
            return
        if isinstance(given, str) and hasattr(self.llm, "chat"):  # another model behind the same client
            model = askable(self.llm, given)
        else:
            model = askable(_reached(given), default_auxiliary_model())
        try:
            yield ByModel(model, size, seconds=self._seconds, allowance=self._allowance)
        finally:
            if isinstance(model, Remote) and model is not given:  # one that we made, we close
                await cross(model.close())

    async def _compacted(self, given: list[ChatMessage], step: Middle, name: str | None) -> tuple[View, Session | None]:
        """The conversation as it is then, and the session in which it is."""
        name = await self._begun_as(name) if name else None
        request = Request({"messages": given}, PRAISON_FORMAT, self.scope, name)
        view = await self._engine.prepare(request)
        while step.is_other(view):  # made for other sizes than are asked for now
            try:
                await self._engine.undo(view.scope, view.branch)
            except OverBudget:
                break  # all of it has no room in the window: what is folded stays so
            view = await self._engine.prepare(request)
        view = await self._engine.compact(view, step=step)
        return view, await newest(self._engine, view)

    async def _begun_as(self, session: str) -> str | None:
        """The host's name for a conversation, of which this may be a child that an earlier compression opened."""
        if await self._engine.named(self.scope, session) is not None:
            return session
        return next((s.name for s in await Sessions(self._engine, self.scope).all() if s.id == session), session)

    def _result(self, given: list[ChatMessage], view: View, faults: Sequence[str]) -> PraisonCompressed:
        """What was given against what is left of it: a history that comes again is already folded."""
        frame, items = decode({"messages": given}, PRAISON_FORMAT)
        out = body(view)["messages"]
        known = [m.get("content") for m in given]
        new = [n for n in view.nodes if n.item.kind == "summary" and n.item.text not in known]
        had = self._meter.frame(frame).plus(self._meter.items(items)).tokens
        if not new:
            return PraisonCompressed(given, 0, had, had, 1.0, head_preserved_count=len(given))
        has = self._meter.frame(view.frame).plus(self._meter.nodes(view.nodes)).tokens
        told = [n.item.text for n in new]
        head = next(i for i, m in enumerate(out) if m.get("content") in told)
        tail = len(out) - len(new) - head
        return PraisonCompressed(
            messages=out,
            tokens_saved=had - has,
            original_tokens=had,
            final_tokens=has,
            compression_ratio=has / had,
            summary_token_count=self._meter.nodes(new).tokens,
            head_preserved_count=head,
            tail_preserved_count=tail,
            middle_compressed_count=len(given) - head - tail,
            faults=tuple(faults),
        )


def _reached(given: Any) -> Any:
    """What is given, or the `LLM` for a name that only PraisonAI knows whom to ask for."""
    if isinstance(given, str):
        try:
            read(given)
        except BadRequest:
            return LLM(model=given)
    return given


def _counter(tokenizer: Any, model: str) -> Counter:
    if isinstance(tokenizer, Counter):
        return tokenizer
    count = getattr(tokenizer, "estimate", tokenizer)  # an estimator of PraisonAI's, or a function
    return Counter(Plain("given", count), PRAISON_FORMAT) if callable(count) else counter_for(model, PRAISON_FORMAT)


async def newest(engine: Engine, view: View) -> Session | None:
    """The session in which the branch of a view is now."""
    return max(await engine.store.sessions(view.scope, view.branch), key=lambda s: s.number, default=None)


async def open_child(sessions: Any, engine: Engine, view: View, began: Session, parent: str | None) -> None:
    """Put a session that a compaction began into PraisonAI's store: what the run has now, and whence it came."""
    # From the log, which has no secret that the policy masks and no status of a moment that has passed.
    kept = body(await cross(engine.view(view.scope, view.branch)))["messages"]
    said = [m for m in kept if m.get("role") not in SYSTEM_ROLES]
    await asyncio.to_thread(sessions.set_chat_history, began.id, said)
    lineage = began.name or began.branch
    await asyncio.to_thread(sessions.update_session_metadata, began.id, parent_session_id=parent, lineage_id=lineage)
