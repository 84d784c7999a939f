"""What every store in an SQL database does: the functions of this package, run in threads."""

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from clew.core.caches import forget
from clew.core.items import Digests, Node, Scope
from clew.errors import BadRequest, ClewError, StoreError
from clew.store import reading
from clew.store.database import Database, Problem
from clew.store.loading import DAMAGE
from clew.store.records import Batch
from clew.store.sessions import sessions as all_sessions
from clew.store.sessions import state as state_of
from clew.store.waiting import PATIENCE, Wait
from clew.store.writing import label, learn, write

if TYPE_CHECKING:
    from clew.store.upkeep import Progress, Survey
    from clew.store.upkeep.purge import Audit, Purge

P = ParamSpec("P")
T = TypeVar("T")

PURGED_AT_ONCE = 100  # branches


def _question(
    ask: Callable[Concatenate[Database, P], T],
) -> Callable[Concatenate["SQLStore", P], Coroutine[Any, Any, T]]:
    """A question of the protocol, asked in the thread that reads."""

    async def asked(store: "SQLStore", /, *args: P.args, **given: P.kwargs) -> T:
        return await store._read(lambda db: ask(db, *args, **given))

    return asked


class SQLStore(ABC):
    """A store in an SQL database; which one it is, and in which threads it works, is what a kind of store adds."""

    secret: bytes
    place: str  # as people know it: a path, or a URL without its password

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience  # seconds that a call waits for what another process has locked, at most
        self.purged_at_once = PURGED_AT_ONCE  # branches
        self._process = os.getpid()

    async def write(self, scope: Scope, batch: Batch) -> None:
        """Write one turn. When this returns, it survives whatever happens to the process."""
        try:
            await self._put(lambda db: write(db, self.secret, scope, batch))
        except (LookupError, TypeError, AttributeError) as error:  # of rows that are read on the way
            raise error if isinstance(error, ClewError) else self._damaged(error) from error

    find = _question(reading.find)
    alike = _question(reading.alike)
    session = _question(reading.session)
    load = _question(reading.load)
    catch_up = _question(reading.catch_up)
    frame = _question(reading.frame)
    resolve = _question(reading.resolve)
    purged = _question(reading.purged)
    search = _question(reading.search)
    places = _question(reading.places)
    holders = _question(reading.holders)
    ancestry = _question(reading.ancestry)
    calls = _question(reading.calls)
    events = _question(reading.events)
    branches = _question(reading.branches)
    learned = _question(reading.learned)
    idle = _question(reading.idle)
    sessions = _question(all_sessions)
    state = _question(state_of)

    async def nodes(self, scope: Scope, ids: Sequence[str]) -> dict[str, Node]:
        """Nodes with their bodies, by id."""
        return await self._read(lambda db: reading.nodes(db, scope, ids, self._digests(scope)))

    async def originals(self, scope: Scope, id: str) -> list[Node]:
        """What was said behind an id, under any number of stand-ins."""
        return await self._read(lambda db: reading.originals(db, scope, id, self._digests(scope)))

    async def label(
        self, scope: Scope, branch: str, tags: Sequence[str] | None = None, archived: bool | None = None
    ) -> None:
        """Give a branch other tags, or put it out of the way, or back."""
        await self._put(lambda db: label(db, scope, branch, tags, archived))

    async def learn(self, scope: Scope, kind: str, name: str, value: Mapping[str, Any]) -> None:
        """Remember what a provider taught us; what was known under that name before is forgotten."""
        await self._put(lambda db: learn(db, scope, kind, name, value))

    # --- upkeep: an act of somebody who looks after the file, not of a turn -------------------------------------------

    async def purge(
        self,
        scope: Scope,
        branches: Sequence[str],
        reason: str,
        dry_run: bool = False,
        before: float | None = None,
        progress: "Progress | None" = None,
    ) -> "Purge":
        """Take branches out of the log and the file for good; what others refer to stays. Leaves tombstones.

        With `before`, only those on which nothing happened since. Many go some at a time, each time in one transaction:
        whoever writes meanwhile waits for no more. A dry run of many says what at least would go.
        """
        from clew.store.upkeep.purge import Purge, purge_branches  # whoever talks need not wait for it to load

        took = Purge()
        for at in range(0, len(branches), self.purged_at_once):
            some = tuple(branches[at : at + self.purged_at_once])
            those = partial(purge_branches, digests=self._digests(scope), scope=scope, branches=some)
            took.add(await self._delete(partial(those, reason=reason, dry_run=dry_run, before=before)))
            if progress:
                progress(min(at + self.purged_at_once, len(branches)), len(branches))
        return took if dry_run else await self._erase(took)

    async def purge_item(self, scope: Scope, id: str, reason: str, dry_run: bool = False) -> "Purge":
        """Take the words behind an id out of the log and the file, wherever in the scope they were said."""
        from clew.store.upkeep.blank import purge_item  # knows clients' words, which take long to load

        took = await self._delete(lambda db: purge_item(db, self._digests(scope), scope, id, reason, dry_run))
        return took if dry_run else await self._erase(took)

    async def purges(self) -> "list[Audit]":
        """Every purge that was made, the newest first."""
        from clew.store.upkeep.purge import audits

        return await self._read(audits)

    async def survey(self) -> "Survey":
        """What is stored, and what it takes on disk."""
        from clew.store.upkeep import survey

        return await self._read(lambda db: survey(db, self.place))

    async def check(self, deep: bool = False, progress: "Progress | None" = None) -> list[Problem]:
        """What is wrong with the file; `deep` reads every body again, not only some."""
        from clew.store.upkeep import check

        return await self._write(lambda db: check(db, self.secret, deep, progress))

    async def repair(self, progress: "Progress | None" = None) -> bool:
        """Mend what cannot lose anything: the search index, bodies nobody refers to, bytes of what was deleted."""
        from clew.store.upkeep import repair

        await self._write(lambda db: self._soundly(lambda db: repair(db, progress), db))
        return await self.wipe()

    async def _delete(self, act: "Callable[[Database], Purge]") -> "Purge":
        took = await self._write(lambda db: self._soundly(act, db))
        forget()
        return took

    async def _erase(self, took: "Purge") -> "Purge":
        """Let the bytes of what a purge deleted be overwritten, where that can be done at once."""
        took.wiped = await self.wipe()
        return took

    @property
    def lingering(self) -> str:
        """Where the bytes of what was purged may still be, where clew does not reach."""
        return ""

    @abstractmethod
    async def backup(
        self, target: str | os.PathLike[str], force: bool = False, progress: "Progress | None" = None
    ) -> int:
        """Copy the store to a private file while others write; how many bytes it has."""

    @abstractmethod
    async def wipe(self) -> bool:
        """Let the bytes of what was deleted be overwritten; False if that must wait for somebody else."""

    @abstractmethod
    def alone(self, scope: Scope, branch: str) -> AbstractAsyncContextManager[None]:
        """A turn in which nobody else writes on a branch who asks for one, too; a way to wait, no lock."""

    @abstractmethod
    async def close(self) -> None:
        """Finish what was begun and let go of the database."""

    # --- what a kind of store adds ------------------------------------------------------------------------------------

    async def _read(self, act: Callable[[Database], T]) -> T:
        return await self._look(lambda db: self._soundly(act, db))

    def _soundly(self, act: Callable[[Database], T], db: Database) -> T:
        """What is damaged below the rows the database says; what is damaged in them shows when they are read."""
        try:
            return act(db)
        except UnicodeEncodeError:  # of what was asked
            raise
        except DAMAGE as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> StoreError:
        found = f"content cannot be read ({type(error).__name__}: {error})"
        told = f"{self.place}: its {found}: `clew doctor` shows the damage; restore a backup"
        return StoreError(told, damage=found)

    def _digests(self, scope: Scope) -> Digests:
        return Digests(self.secret, scope)

    @abstractmethod
    async def _look(self, act: Callable[[Database], T]) -> T: ...

    @abstractmethod
    async def _write(self, act: Callable[[Database], T]) -> T: ...

    @abstractmethod
    async def _put(self, act: Callable[[Database], None]) -> None:
        """An act that is one short transaction: it may be written together with those of others."""

    @abstractmethod
    def _telling(self) -> AbstractContextManager[None]:
        """Lets what the database raises be said as an error of ours."""

    def _expect_process(self) -> None:
        if os.getpid() != self._process:  # neither its threads nor its connections live on in a fork
            raise StoreError(f"{self.place}: was opened before this process was forked; open it again in this process")

    async def _run(self, thread: Executor, act: Callable[[], T], wait: Wait | None = None) -> T:
        return await self._answer(lambda: thread.submit(act), wait)

    async def _answer(self, begin: Callable[[], Future[T]], wait: Wait | None) -> T:
        self._expect_process()
        with self._telling():
            # A cancelled caller must not leave a half-written turn: the transaction ends by itself.
            begun = begin()
            work = asyncio.wrap_future(begun)
            work.add_done_callback(lambda done: done.cancelled() or done.exception())  # heard, if nobody waits any more
            # What waits behind others who wait for a lock waits no longer than it would for that; what has begun, ends.
            late = asyncio.get_running_loop().call_later(wait.most, begun.cancel) if wait else None
            try:
                return await asyncio.shield(work)
            except asyncio.CancelledError:
                if wait and begun.cancelled():
                    wait.end()
                    raise StoreError(
                        f"{self.place}: timed out after {wait.most:.1f} s waiting for other writers; try again"
                    ) from None
                if wait:
                    wait.left = True
                raise
            except UnicodeEncodeError as error:  # what is said may hold anything, names and scopes may not
                raise BadRequest(
                    f"session or scope name contains an unpaired surrogate (invalid Unicode): {error.object!r:.80}"
                ) from None
            finally:
                if late:
                    late.cancel()
