"""The log in one SQLite file: one writer thread, one reader thread, one transaction a turn."""

import asyncio
import os
import sqlite3
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import TypeVar

from clew.errors import StoreError
from clew.items import Scope
from clew.store import reading
from clew.store.alone import alone_in
from clew.store.backup import backup
from clew.store.database import Database
from clew.store.opening import connect, prepare_file
from clew.store.sql import SQLStore
from clew.store.sqlite_db import SQLiteDatabase
from clew.store.upkeep import Progress

T = TypeVar("T")


class SQLite(SQLStore):
    """A store in one file, or in memory with `:memory:`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self.path = str(path)
        memory = self.path == ":memory:"
        self._writer = ThreadPoolExecutor(1, "clew-writer")
        self._reader = self._writer if memory else ThreadPoolExecutor(1, "clew-reader")
        try:
            if not memory:
                self.path = str(Path(self.path).expanduser())
                self._writer.submit(prepare_file, Path(self.path)).result()
            self.place = self.path
            out = self._writer.submit(connect, self.path, migrate=True).result()
            self._out = SQLiteDatabase(out, self.path)
            into = out if memory else self._reader.submit(connect, self.path).result()
            self._in = SQLiteDatabase(into, self.path)
            self.secret = self._reader.submit(reading.secret, self._in).result()
            held = self._writer, self._reader, self._out, self._in
            self._unused = weakref.finalize(self, _let_go, *held, wait=False)
        except BaseException as error:
            self._writer.shutdown()
            self._reader.shutdown()
            if isinstance(error, sqlite3.Error):
                raise StoreError(f"{self.path}: {error}") from error
            raise

    async def backup(
        self, target: str | os.PathLike[str], force: bool = False, progress: Progress | None = None
    ) -> int:
        """Copy the store to a private file while others write; how many bytes it has."""
        if self.path == ":memory:":
            return await self._run(self._reader, lambda: backup(self._in.connection, Path(target), force, progress))
        # On a connection of its own: turns go on meanwhile.
        with closing(await asyncio.to_thread(connect, self.path)) as db, self._telling():
            return await asyncio.to_thread(backup, db, Path(target), force, progress)

    async def wipe(self) -> bool:
        """Write the file anew without what was deleted; False if another process keeps the old pages alive."""
        return await self._run(self._writer, self._out.wipe)

    def alone(self, scope: Scope, branch: str) -> AbstractAsyncContextManager[None]:
        """Whoever else asks for it waits: a file has one writer at a time, so it is one wait for all branches."""
        return nullcontext() if self.path == ":memory:" else alone_in(f"{self.path}-turn")

    async def close(self) -> None:
        """Finish what was begun and let go of the file."""
        if self._unused.detach():
            await asyncio.to_thread(_let_go, self._writer, self._reader, self._out, self._in, wait=True)

    async def _read(self, act: Callable[[Database], T]) -> T:
        return await self._run(self._reader, lambda: act(self._in))

    async def _write(self, act: Callable[[Database], T]) -> T:
        return await self._run(self._writer, lambda: act(self._out))

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {error}") from error


def _let_go(
    writer: ThreadPoolExecutor,
    reader: ThreadPoolExecutor,
    out: SQLiteDatabase,
    into: SQLiteDatabase,
    wait: bool,
) -> None:
    # A store nobody holds has nothing under way, and may be collected in one of its own threads: do not wait then.
    writer.shutdown(wait)
    reader.shutdown(wait)
    into.close()
    out.close()
