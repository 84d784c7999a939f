"""Drafts made while the agent works: begun before they are needed, used only if what they read still stands."""

import asyncio
import logging
from collections import Counter as Tally
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from clew import events
from clew.core.items import Node, Scope
from clew.core.view import View
from clew.events import Listener, tell
from clew.facts.claims import Draft
from clew.steps.notes.placing import notes_of
from clew.steps.notes.writer import Writer
from clew.steps.summarize import next_folded
from clew.tokens.target import Target

_LOGGER = logging.getLogger("clew")
EARLY = 0.85  # of the size at which a compaction begins
LEAST_UNREAD = 400  # tokens that nobody has read: for less, no model is asked
UNREAD_SHARE = 0.3  # of what will be folded: if most of it has been read, the rest can wait for the next time


def middle(view: View, target: Target) -> list[Node]:
    """What the next blocks of the log may stand for."""
    return next_folded(view, target)


def unread(view: View, target: Target, draft: Draft | None = None) -> list[Node]:
    """What of it no model has read, if it is worth asking one."""
    nodes = middle(view, target)
    read = notes_of(view, draft).read
    fresh = [n for n in nodes if n.id not in read]
    whole = target.meter.nodes(nodes).tokens
    return fresh if target.meter.nodes(fresh).tokens >= max(LEAST_UNREAD, UNREAD_SHARE * whole) else []


@dataclass(slots=True)
class Notebook:
    """What a model noted of one branch, kept from one compaction to the next."""

    draft: Draft | None = None

    async def fill(
        self, writer: Writer, view: View, nodes: Sequence[Node], focus: str = "", after: View | None = None
    ) -> Draft:
        """Have nodes read; what came of it joins what was noted before and is not told yet."""
        before = self.draft
        known = notes_of(view, before)
        draft = await writer.draft(nodes, (*known.told, *known.claims), focus, after)
        if draft.read:
            paid = before and any(e.evidence.get("draft") == before.key for e in view.edits)
            self.draft = before.and_then(draft, known.claims, not paid) if before and known.drafted else draft
        return draft


class Drafts:
    """The drafts that are being made, one a branch."""

    def __init__(self, writer: Writer, listeners: Sequence[Listener]) -> None:
        self.writer = writer
        self._listeners = listeners
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}
        self.declined: Tally[tuple[Scope, str, str]] = Tally()  # by scope, model and fault, since somebody last asked

    def is_running(self, key: Hashable) -> bool:
        return key in self._tasks

    def wanted(self, view: View, target: Target, draft: Draft | None) -> list[Node]:
        """What a model should read now; nothing if none may be asked."""
        return [] if self.writer.allowance.refusal(0, 0, 0) else unread(view, target, draft)

    def begin(self, key: Hashable, view: View, nodes: Sequence[Node], book: Notebook) -> None:
        """Have a model read what will be folded soon."""
        task = asyncio.create_task(self._make(view, nodes, book), name=f"clew draft {view.branch}")
        self._tasks[key] = task
        task.add_done_callback(lambda _: self._tasks.pop(key, None))

    async def _make(self, view: View, nodes: Sequence[Node], book: Notebook) -> None:
        try:
            draft = await book.fill(self.writer, view, nodes, after=view)
        except Exception as error:  # nobody waits for this, so nobody would hear of it
            self.writer.allowance.fail()
            draft = Draft((), (), self.writer.model.name, faults=(type(error).__name__,))
        self.tell(view, draft)

    def tell(self, view: View, draft: Draft) -> None:
        """Say what came of a draft."""
        at = view.scope, view.branch, view.seq
        self.declined.update((view.scope, draft.model, fault) for fault in draft.faults)
        found: list[events.Event] = [events.Declined(*at, draft.model, fault) for fault in draft.faults]
        found += [events.Dropped(*at, draft.model, why, line) for why, line in draft.dropped]
        if draft.dropped:
            reasons = ", ".join(f"{n} {why}" for why, n in Tally(why for why, _ in draft.dropped).items())
            _LOGGER.warning("%d lines of the notes by %s are not used: %s", len(draft.dropped), draft.model, reasons)
        if draft.read:
            sizes = len(draft.read), len(draft.claims), draft.rejected, draft.spent
            found.append(events.Drafted(*at, draft.model, *sizes, cost=draft.cost))
        tell(self._listeners, found)

    async def settle(self, key: Hashable, seconds: float) -> None:
        """Wait for a draft, but not for long."""
        task = self._tasks.get(key)
        if task and task.get_loop() is asyncio.get_running_loop():  # one of another loop would not wake this one
            await asyncio.wait([task], timeout=seconds)

    async def close(self) -> None:
        """End what is being made; what was made stays."""
        here = asyncio.get_running_loop()
        tasks = [*self._tasks.values()]
        for task in tasks:
            loop = task.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(task.cancel)
        for task in [task for task in tasks if task.get_loop() is here]:
            with suppress(asyncio.CancelledError):
                await task
