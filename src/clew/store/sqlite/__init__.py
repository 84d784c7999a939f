"""The log in one SQLite file: one writer thread, one reader thread, what waits for it in one transaction."""

import asyncio
import os
import sqlite3
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from clew.core.items import Scope
from clew.errors import ClewError, StoreError
from clew.store import reading
from clew.store.alone import FileTurns
from clew.store.database import REPAIR, Database, Problem
from clew.store.loading import DAMAGE
from clew.store.sql import SQLStore
from clew.store.sqlite.database import GLANCE, SQLiteDatabase
from clew.store.sqlite.grouping import Group
from clew.store.sqlite.opening import connect, connect_readonly, hold, is_readonly, refuse_older, release
from clew.store.sqlite.watching import Watch, is_busy
from clew.store.waiting import PATIENCE, Wait

if TYPE_CHECKING:
    from clew.store.upkeep import Progress
    from clew.store.upkeep.purge import Purge

T = TypeVar("T")


class SQLite(SQLStore):
    """A store in one file, or in memory with `:memory:`; what cannot be written here can be read.

    Where another process has it locked, a call waits `patience` seconds at most.

    >>> store = clew.SQLite("agent.db")
    >>> clew.run(store.sessions("default"))
    []
    """

    def __init__(self, path: str | os.PathLike[str], patience: float = PATIENCE) -> None:
        super().__init__(patience)
        self.path = str(path)
        self._memory = self.path == ":memory:"
        self.path = self.path if self._memory else str(Path(self.path).expanduser())
        self.place = self.path
        # Where it is, whatever becomes the current folder.
        self._file = self.path if self._memory else str(Path(self.path).absolute())
        self.readonly = not self._memory and is_readonly(Path(self._file))
        one = self._memory or self.readonly
        self._writer = ThreadPoolExecutor(1, "clew-writer")
        self._reader = self._writer if one else ThreadPoolExecutor(1, "clew-reader")
        held = None if self._memory else hold(Path(self._file))
        opened: tuple[SQLiteDatabase, ...] = ()
        try:
            opened = self._out, self._in = self._writer.submit(self._open).result()
            self.secret = self._reader.submit(self._secret).result()
            self._watch = None if one else self._writer.submit(self._begin).result()
        except BaseException as error:
            release(held)
            self._writer.shutdown()
            self._reader.shutdown()
            for database in opened:
                database.close()
            if isinstance(error, sqlite3.Error):
                raise self._store_error(error) from error
            if isinstance(error, DAMAGE) and not isinstance(error, ClewError):
                raise self._damaged(error) from error
            raise
        self._turns = FileTurns(f"{self._file}-turn")
        self._group = Group(self._writer, self._out, self._turns)
        self._held = self._writer, self._reader, self._out, self._in, self._watch, self._turns, held
        self._unused = weakref.finalize(self, _let_go, *self._held, wait=False)

    def _open(self) -> tuple[SQLiteDatabase, SQLiteDatabase]:
        """Connections to write on and to read on."""
        if self.readonly:
            db = connect_readonly(Path(self._file))
            refuse_older(db, self.path)
        else:
            db = connect(self._file, migrate=True, patience=self.patience)
        out = SQLiteDatabase(db, self._file, self.readonly)
        out.patience = self.patience
        one = self._memory or self.readonly
        return out, out if one else SQLiteDatabase(connect(self._file, patience=GLANCE), self._file)

    def _secret(self) -> bytes:
        return Wait(self.patience).patiently(lambda: reading.secret(self._in), is_busy)

    def _begin(self) -> Watch:
        """Watch over the file, and see whether it holds all that was ever acknowledged."""
        logged = self._out.connection.execute("pragma journal_mode").fetchone()[0] == "wal"
        watch = Watch(Path(self._file), self.secret, self._out.turns(), logged)
        self._out.watch = watch
        self._out.note_lost(watch.mark.get)
        return watch

    async def backup(
        self, target: str | os.PathLike[str], force: bool = False, progress: "Progress | None" = None
    ) -> int:
        """Copy the store to a private file while others write; how many bytes it has."""
        from clew.store.upkeep.backup import backup  # whoever talks need not wait for it to load

        if self._memory or self.readonly:
            return await self._run(self._reader, lambda: backup(self._in.connection, Path(target), force, progress))
        # On a connection of its own: turns go on meanwhile.
        with closing(await asyncio.to_thread(connect, self._file)) as db, self._telling():
            return await asyncio.to_thread(backup, db, Path(target), force, progress)

    async def check(self, deep: bool = False, progress: "Progress | None" = None) -> list[Problem]:
        """What is wrong with the file, or beside it; `deep` reads every body again, not only some."""
        found = await super().check(deep, progress)
        if left := self._leftovers():
            from clew.store.upkeep.backup import copied_to

            names = ", ".join(str(copied_to(path)) if path.is_symlink() else path.name for path in left)
            found.append(
                Problem(f"partial copies left by an interrupted backup or restore: {names}", len(left), REPAIR)
            )
        return found

    async def repair(self, progress: "Progress | None" = None) -> bool:
        """Mend what cannot lose anything; delete copies that a killed backup or restore left."""
        self._sweep()
        return await super().repair(progress)

    async def _erase(self, took: "Purge") -> "Purge":
        await super()._erase(took)
        self._sweep()
        return took

    @property
    def lingering(self) -> str:
        """Stores that were moved aside."""
        from clew.store.upkeep.backup import asides

        found = [] if self._memory else asides(Path(self._file))
        names = ", ".join(path.name for path in found)
        return f"what a restore moved aside may hold them: {names}; delete it if you do not need it" * bool(found)

    def _leftovers(self) -> list[Path]:
        from clew.store.upkeep.backup import leftovers

        return [] if self._memory else leftovers(Path(self._file).parent)

    def _sweep(self) -> None:
        if not self._memory:
            from clew.store.upkeep.backup import sweep

            sweep(Path(self._file).parent)

    async def wipe(self) -> bool:
        """Write the file anew without what was deleted; False if another process keeps the old pages alive."""
        return await self._run(self._writer, self._out.wipe)

    def alone(self, scope: Scope, branch: str) -> AbstractAsyncContextManager[None]:
        """Whoever else asks for it waits in line; the kernel ends the turn of a process that dies."""
        self._expect_process()
        return nullcontext() if self._memory else self._turns.alone(branch, self.patience)

    async def close(self) -> None:
        """Finish what was begun and let go of the file."""
        if self._unused.detach():
            await asyncio.to_thread(_let_go, *self._held, wait=True)

    async def _look(self, act: Callable[[Database], T]) -> T:
        def look() -> T:
            if self._watch:
                self._watch.look()
            return act(self._in)

        return await self._patiently(self._reader, look)

    async def _write(self, act: Callable[[Database], T]) -> T:
        return await self._patiently(self._writer, lambda: act(self._out))

    async def _put(self, act: Callable[[Database], None]) -> None:
        wait = Wait(self.patience)
        await self._answer(lambda: self._group.submit(lambda: act(self._out), wait), wait)

    async def _patiently(self, thread: ThreadPoolExecutor, act: Callable[[], T]) -> T:
        wait = Wait(self.patience)
        return await self._run(thread, lambda: wait.patiently(act, is_busy), wait)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._store_error(error) from error

    def _store_error(self, error: sqlite3.Error) -> StoreError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if is_busy(error):
            return StoreError(f"{self.path}: locked by another process ({error}); try again, or stop that process")
        if self.readonly and code == sqlite3.SQLITE_READONLY:
            return StoreError(f"{self.path}: cannot be written: the file or its folder is read-only")
        if self.readonly and code == sqlite3.SQLITE_CANTOPEN:
            return StoreError(
                f"{self.path}: is read-only here, and has a write-ahead log that cannot be read so; copy both to where "
                "they can be written"
            )
        # The latter is Python's own: text that is no text any more.
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or "decode" in str(error):
            told = f"{self.path}: {error}: `clew doctor` shows the damage; restore a backup"
            return StoreError(told, damage=str(error))
        return StoreError(f"{self.path}: {error}")


def _let_go(
    writer: ThreadPoolExecutor,
    reader: ThreadPoolExecutor,
    out: SQLiteDatabase,
    into: SQLiteDatabase,
    watch: Watch | None,
    turns: FileTurns,
    held: tuple[int, int] | None,
    wait: bool,
) -> None:
    # A store nobody holds has nothing under way, and may be collected in one of its own threads: do not wait then.
    writer.shutdown(wait)
    reader.shutdown(wait)
    into.close()
    out.close()
    turns.close()
    release(held)
    if watch:
        watch.end()
