"""Chapters written while the agent works: asked for before they are needed, kept in the log once they are there."""

import asyncio
import logging
from collections import Counter as Tally
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace as with_
from typing import NamedTuple, Protocol

from clew import events
from clew.core.items import Scope
from clew.core.view import View
from clew.errors import StoreError
from clew.events import Listener, tell
from clew.facts.chapters import Chapter, Written
from clew.steps.chapters.author import Author, ReaderKnows
from clew.steps.summarize import coming
from clew.steps.worklog.blocks import blocks
from clew.steps.worklog.fold import ChapterStretch
from clew.tokens.target import Target

_LOGGER = logging.getLogger("clew")
LEAST_UNREAD = 400  # tokens that nobody has written of: for less, no model is asked
STRETCH_SHARE = 0.1  # of those: of a smaller stretch code tells, for each question reads all of a request again
UNREAD_SHARE = 0.3  # of what will be folded: if most of it has been told, the rest can wait for the next time

BranchKey = tuple[Scope, str]  # a scope and a branch in it


class Wanted(NamedTuple):
    """What a model shall write of a branch."""

    view: View  # of which it is a part
    asked: tuple[ChapterStretch, ...]
    window: int | None = None  # of the model, where it is the conversation's own
    sent: int = 0  # tokens of a request that shows the view


def wanted(
    view: View, target: Target, chapters: Sequence[Chapter], size: int, after: View | None = None
) -> Wanted | None:
    """The stretches that will be folded and no model has written of, if it is worth asking one.

    `after` is the view as code alone would fold it, where that is known.
    """
    asked = coming(view, target, chapters, size, after)
    fresh = [one for one in asked if one.tokens >= LEAST_UNREAD and not one.blocks]
    told = {id for chapter in chapters for id in chapter.ids}
    known = target.meter.nodes(n for n in view.nodes if n.id in told).tokens
    unread = sum(one.tokens for one in fresh)
    fresh = [one for one in fresh if one.tokens >= STRETCH_SHARE * unread]
    if not unread or unread < UNREAD_SHARE * (unread + known):
        return None
    return Wanted(view, (*(one for one in asked if one.blocks), *fresh))


async def written_of(author: Author, want: Wanted, focus: str = "", after: View | None = None) -> Written:
    """What an author writes of all that is wanted."""
    anew = {node.id for one in want.asked for node in one.shown}
    before = [block for at, (block, _) in blocks(want.view).items() if want.view.nodes[at].id not in anew]
    told = frozenset(line.strip() for block in before for line in block.text.splitlines())
    titles = [block.texts[-1] for block in before]
    known = ReaderKnows(titles, told, want.view.frame, after, want.window, want.sent)
    return await author.write(want.asked, known, focus)


class ChapterLog(Protocol):
    """The log that chapters are kept in."""

    def alone(self, scope: Scope, branch: str) -> AbstractAsyncContextManager[None]:
        """A turn in which nobody else asks for chapters of a branch, in no process."""

    async def chapters(self, scope: Scope, branch: str) -> Sequence[Chapter]:
        """Those that it has, whoever had them written."""

    async def keep(self, scope: Scope, branch: str, chapters: Sequence[Chapter]) -> Sequence[Chapter]:
        """Write chapters; gives back those whose branch it does not know yet."""


class Asking:
    """The chapters that are being written, for one branch at a time each."""

    def __init__(self, log: ChapterLog, listeners: Sequence[Listener]) -> None:
        self._log = log
        self._listeners = listeners
        self._tasks: dict[BranchKey, asyncio.Task[None]] = {}
        self._giving_way = set[BranchKey]()
        self._unwritten: dict[BranchKey, Sequence[Chapter]] = {}  # of a branch that the log does not know yet
        self.declined: Tally[tuple[Scope, str, str]] = Tally()  # by scope, model and fault, since somebody last asked

    def is_running(self, key: BranchKey) -> bool:
        return key in self._tasks

    def unwritten(self, key: BranchKey) -> Sequence[Chapter]:
        """Finished chapters of a branch that the log does not know yet."""
        return self._unwritten.get(key, ())

    def begin(self, key: BranchKey, author: Author, want: Wanted, after: View | None = None) -> None:
        """Have a model write of what will be folded soon."""
        if key not in self._tasks:
            task = asyncio.create_task(self._write(key, author, want, after), name=f"clew chapter {key[1]}")
            self._tasks[key] = task
            self._giving_way |= {key} if author.gives_way else set()
            task.add_done_callback(lambda _: self._ended(key))

    def _ended(self, key: BranchKey) -> None:
        self._tasks.pop(key, None)
        self._giving_way.discard(key)

    async def _write(self, key: BranchKey, author: Author, want: Wanted, after: View | None) -> None:
        try:
            async with self._log.alone(*key):
                await self._written(key, author, want, after)
        except StoreError as error:  # another process has been asking for long, or the log cannot be written
            self.tell(key, want.view.seq, Written(model=author.name, faults=(type(error).__name__,)))

    async def _written(self, key: BranchKey, author: Author, want: Wanted, after: View | None) -> None:
        known = await self._log.chapters(*key)
        told, whole = {id for chapter in known for id in chapter.ids}, {chapter.ids for chapter in known}

        def is_told(one: ChapterStretch) -> bool:
            ids = tuple(node.id for node in one.nodes)
            return ids in whole if one.blocks else any(id in told for id in ids)

        asked = tuple(one for one in want.asked if not is_told(one))
        if not asked:  # another process had it written: it is paid for once
            return
        try:
            written = await written_of(author, want._replace(asked=asked), after=after)
        except Exception as error:  # nobody waits for this, so nobody would hear of it
            written = Written(model=author.name, faults=(type(error).__name__,))
        try:
            await self.keep(key, written)
        except Exception as error:
            written = with_(written, chapters=(), unused=(), faults=(*written.faults, type(error).__name__))
        self.tell(key, want.view.seq, written)

    async def keep(self, key: BranchKey, written: Written) -> None:
        """Write chapters to the log; where it does not know their branch yet, they are used from memory."""
        self._unwritten.pop(key, None)
        every = *written.chapters, *written.unused
        if every and (left := await self._log.keep(*key, every)):
            self._unwritten[key] = left

    def tell(self, key: BranchKey, seq: int, written: Written) -> None:
        """Say what came of asking."""
        at = *key, seq
        self.declined.update((key[0], written.model, fault) for fault in written.faults)
        found: list[events.Event] = [events.Declined(*at, written.model, fault) for fault in written.faults]
        found += [events.Dropped(*at, written.model, why, line) for why, line in written.left_out]
        if written.left_out:
            reasons = ", ".join(f"{n} {why}" for why, n in Tally(why for why, _ in written.left_out).items())
            _LOGGER.warning("left out of what %s wrote: %s", written.model, reasons)
        if written.chapters:
            nodes = sum(len(chapter.ids) for chapter in written.chapters)
            sizes = nodes, len(written.chapters), len(written.left_out), written.spent
            found.append(events.Drafted(*at, written.model, *sizes, cost=written.cost))
        tell(self._listeners, found)

    def give_way(self) -> None:
        """End what is asked of authors that are asked only while nothing else is."""
        for key in [*self._giving_way]:
            if task := self._tasks.get(key):
                task.get_loop().call_soon_threadsafe(task.cancel)

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
