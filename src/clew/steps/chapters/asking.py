"""Chapters written while the agent works: asked for before they are needed, kept in the log once they are there."""

import asyncio
import logging
from collections import Counter as Tally
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace as with_
from typing import NamedTuple

from clew import events
from clew.core.items import Scope
from clew.core.view import View
from clew.events import Listener, tell
from clew.facts.chapters import Chapter, Written
from clew.steps.chapters.author import Author, ReaderKnows
from clew.steps.summarize import coming
from clew.steps.worklog.blocks import blocks
from clew.steps.worklog.fold import ChapterStretch
from clew.tokens.target import Target

_LOGGER = logging.getLogger("clew")
EARLY = 0.85  # of the size at which a compaction begins
LEAST_UNREAD = 400  # tokens that nobody has written of: for less, no model is asked
UNREAD_SHARE = 0.3  # of what will be folded: if most of it has been told, the rest can wait for the next time

BranchKey = tuple[Scope, str]  # a scope and a branch in it
# Writes chapters to the log; gives back those whose branch it does not know yet.
ChapterKeeping = Callable[[Scope, str, Sequence[Chapter]], Awaitable[Sequence[Chapter]]]


class Wanted(NamedTuple):
    """What a model shall write of a branch."""

    view: View  # of which it is a part
    asked: tuple[ChapterStretch, ...]


def wanted(view: View, target: Target, chapters: Sequence[Chapter], size: int) -> Wanted | None:
    """The stretches that will be folded and no model has written of, if it is worth asking one."""
    asked = coming(view, target, chapters, size)
    fresh = [one for one in asked if one.tokens >= LEAST_UNREAD]
    told = {id for chapter in chapters for id in chapter.ids}
    known = target.meter.nodes(n for n in view.nodes if n.id in told).tokens
    unread = sum(one.tokens for one in fresh)
    return Wanted(view, tuple(fresh)) if unread and unread >= UNREAD_SHARE * (unread + known) else None


async def written_of(author: Author, want: Wanted, focus: str = "", after: View | None = None) -> Written:
    """What an author writes of all that is wanted."""
    titles = [block.texts[-1] for block, _ in blocks(want.view).values()]
    found = list[Written]()
    for asked in want.asked:
        known = ReaderKnows((*titles, *(c.texts[-1] for one in found for c in one.chapters)), want.view.frame, after)
        found.append(await author.write(asked, known, focus))
    costs = [one.cost for one in found]
    return Written(
        tuple(chapter for one in found for chapter in one.chapters),
        author.name,
        sum(one.spent for one in found),
        None if None in costs else sum(cost or 0.0 for cost in costs),
        tuple(line for one in found for line in one.left_out),
        tuple(dict.fromkeys(fault for one in found for fault in one.faults)),
    )


class Asking:
    """The chapters that are being written, for one branch at a time each."""

    def __init__(self, author: Author, listeners: Sequence[Listener], keep: ChapterKeeping) -> None:
        self.author = author
        self._listeners = listeners
        self._keep = keep
        self._tasks: dict[BranchKey, asyncio.Task[None]] = {}
        self._unwritten: dict[BranchKey, Sequence[Chapter]] = {}  # of a branch that the log does not know yet
        self.declined: Tally[tuple[Scope, str, str]] = Tally()  # by scope, model and fault, since somebody last asked

    def is_running(self, key: BranchKey) -> bool:
        return key in self._tasks

    def unwritten(self, key: BranchKey) -> Sequence[Chapter]:
        """Finished chapters of a branch that the log does not know yet."""
        return self._unwritten.get(key, ())

    def begin(self, key: BranchKey, want: Wanted, after: View | None = None) -> None:
        """Have a model write of what will be folded soon."""
        if key not in self._tasks:
            task = asyncio.create_task(self._write(key, want, after), name=f"clew chapter {key[1]}")
            self._tasks[key] = task
            task.add_done_callback(lambda _: self._tasks.pop(key, None))

    async def _write(self, key: BranchKey, want: Wanted, after: View | None) -> None:
        try:
            written = await written_of(self.author, want, after=after)
        except Exception as error:  # nobody waits for this, so nobody would hear of it
            written = Written(model=self.author.name, faults=(type(error).__name__,))
        try:
            await self.keep(key, written)
        except Exception as error:
            written = with_(written, chapters=(), faults=(*written.faults, type(error).__name__))
        self.tell(key, want.view.seq, written)

    async def keep(self, key: BranchKey, written: Written) -> None:
        """Write chapters to the log; where it does not know their branch yet, they are used from memory."""
        self._unwritten.pop(key, None)
        if written.chapters and (left := await self._keep(*key, written.chapters)):
            self._unwritten[key] = left

    def tell(self, key: BranchKey, seq: int, written: Written) -> None:
        """Say what came of asking."""
        at = *key, seq
        self.declined.update((key[0], written.model, fault) for fault in written.faults)
        found: list[events.Event] = [events.Declined(*at, written.model, fault) for fault in written.faults]
        found += [events.Dropped(*at, written.model, why, line) for why, line in written.left_out]
        if written.left_out:
            reasons = ", ".join(f"{n} {why}" for why, n in Tally(why for why, _ in written.left_out).items())
            _LOGGER.warning("%d lines by %s are left out: %s", len(written.left_out), written.model, reasons)
        if written.chapters:
            nodes = sum(len(chapter.ids) for chapter in written.chapters)
            sizes = nodes, len(written.chapters), len(written.left_out), written.spent
            found.append(events.Drafted(*at, written.model, *sizes, cost=written.cost))
        tell(self._listeners, found)

    async def settle(self, key: BranchKey, seconds: float) -> None:
        """Wait for a chapter, but not for long."""
        task = self._tasks.get(key)
        if task and task.get_loop() is asyncio.get_running_loop():  # one of another loop would not wake this one
            await asyncio.wait([task], timeout=seconds)

    async def close(self) -> None:
        """End what is being written; what was written stays."""
        here = asyncio.get_running_loop()
        tasks = [*self._tasks.values()]
        for task in tasks:
            loop = task.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(task.cancel)
        for task in [task for task in tasks if task.get_loop() is here]:
            with suppress(asyncio.CancelledError):
                await task
