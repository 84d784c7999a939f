"""The log in a PostgreSQL database: a few connections, one transaction a turn."""

import asyncio
import os
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TypeVar

from clew.core.items import Scope
from clew.errors import Conflict, MissingExtra, StoreError
from clew.store import reading
from clew.store.alone import soon
from clew.store.database import Database
from clew.store.sql import SQLStore
from clew.store.upkeep import Progress
from clew.store.waiting import PATIENCE, Wait

try:
    import psycopg

    from clew.store.postgres.database import PostgresDatabase
    from clew.store.postgres.opening import Address, connect, prepare
except ImportError:
    raise MissingExtra("a store in PostgreSQL needs psycopg: pip install 'clew[postgres]'") from None

T = TypeVar("T")

CONNECTIONS = 4  # at most, made when needed

_LATE = (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)


class Postgres(SQLStore):
    """A store in a schema of its own in the database that a URL names.

    Many processes and machines may share it. With `create=False` one that is not there is not made.
    """

    def __init__(self, url: str, schema: str = "clew", create: bool = True, patience: float = PATIENCE) -> None:
        super().__init__(patience)
        self._address = Address(url, schema)
        self.place = self._address.place
        self._idle: list[PostgresDatabase] = []
        self._waiting: list[PostgresDatabase] = []  # one at most
        try:
            with self._telling(), self._taken() as db:
                prepare(db.connection, self._address, create)
                self.secret = reading.secret(db)
        except BaseException:
            _close(self._idle)
            raise
        self._threads = ThreadPoolExecutor(CONNECTIONS, "clew-postgres")
        self._queue = ThreadPoolExecutor(1, "clew-postgres-queue")
        self._held = (self._threads, self._idle), (self._queue, self._waiting)
        self._unused = weakref.finalize(self, _let_go, *self._held, wait=False)

    async def backup(
        self, target: str | os.PathLike[str], force: bool = False, progress: Progress | None = None
    ) -> int:
        """Not ours to do: the server has tools for it."""
        raise StoreError(f"{self.place}: is backed up with pg_dump, and restored with pg_restore")

    @property
    def lingering(self) -> str:
        """The server's own copies."""
        return "the server's write-ahead log, its replicas and backups may hold them until those are recycled"

    async def wipe(self) -> bool:
        """Write the tables anew without what was deleted; False if somebody else keeps the old rows alive."""
        return await self._write(lambda db: db.wipe())

    @asynccontextmanager
    async def alone(self, scope: Scope, branch: str) -> AsyncIterator[None]:
        """Whoever else asks for it waits; the server ends the turn of a process that dies."""

        got: list[bool] = []  # in the queue's thread: who is cancelled while asking does not hear the answer

        def ask() -> bool:
            got.append(self._queued("try_alone", branch))
            return got[-1]

        def end() -> None:
            if any(got):
                self._queued("end_alone", branch)

        try:
            await soon(lambda: self._run(self._queue, ask))
            yield
        finally:
            with suppress(StoreError):  # what was written is written, and a lost connection holds nothing
                await self._run(self._queue, end)

    def _queued(self, statement: str, branch: str) -> bool:
        # On a connection of its own: those that write must not be held up by those that wait to.
        if not self._waiting or not (self._waiting[0].usable() and self._waiting[0].silent()):
            _close(self._waiting)
            self._waiting.append(PostgresDatabase(connect(self._address)))
        row = self._waiting[0].ask(statement, branch=branch).fetchone()
        return bool(row and row[0])

    async def close(self) -> None:
        """Finish what was begun and let go of the server."""
        if self._unused.detach():
            await asyncio.to_thread(_let_go, *self._held, wait=True)

    async def _look(self, act: Callable[[Database], T]) -> T:
        return await self._write(act)

    async def _write(self, act: Callable[[PostgresDatabase], T]) -> T:
        wait = Wait(self.patience)

        def work() -> T:
            with self._taken() as db, self._hurried(db, wait):
                return act(db)

        return await self._run(self._threads, work, wait)

    @contextmanager
    def _hurried(self, db: PostgresDatabase, wait: Wait) -> Iterator[None]:
        """Where a caller has less patience than the store."""
        if wait.most == self.patience:
            yield
            return
        db.be_patient(wait.most)
        try:
            yield
        except psycopg.errors.LockNotAvailable:
            wait.end()
            raise
        finally:
            if db.usable():
                db.be_patient(self.patience)

    @contextmanager
    def _taken(self) -> Iterator[PostgresDatabase]:
        """A connection nobody else uses; one that broke is not used again, nor are those made before it."""
        db = self._pick() or PostgresDatabase(connect(self._address), self.patience)
        try:
            yield db
        finally:
            if db.usable():
                self._idle.append(db)
            else:
                db.close()
                _close(self._idle)

    def _pick(self) -> PostgresDatabase | None:
        """A connection that was used before and still stands, if there is one."""
        with suppress(IndexError):  # not asked before: another thread may take the last one meanwhile
            while not (db := self._idle.pop()).silent():
                db.close()
            return db
        return None

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except _LATE as error:
            raise Conflict(f"{self.place}: {self._address.clean(error)}") from error
        except psycopg.errors.LockNotAvailable as error:
            raise StoreError(f"{self.place}: another process has it locked; try again, or stop that one") from error
        except psycopg.Error as error:
            raise StoreError(f"{self.place}: {self._address.clean(error)}") from error


def _let_go(*held: tuple[ThreadPoolExecutor, list[PostgresDatabase]], wait: bool) -> None:
    # A store nobody holds has nothing under way, and may be collected in one of its own threads: do not wait then.
    for threads, connections in held:
        threads.shutdown(wait)
        _close(connections)


def _close(idle: list[PostgresDatabase]) -> None:
    with suppress(IndexError):
        while True:
            idle.pop().close()
