"""The log in a PostgreSQL database: a few connections, one transaction a turn."""

import asyncio
import os
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from typing import TypeVar
from weakref import WeakValueDictionary

from clew.core.bridge import Lock
from clew.core.items import Scope
from clew.errors import Conflict, MissingExtra, StoreError
from clew.store import reading
from clew.store.database import Database
from clew.store.sql import SQLStore
from clew.store.upkeep import Progress
from clew.store.upkeep.purge import Purge
from clew.store.waiting import PATIENCE, Wait

try:
    import psycopg

    from clew.store.postgres.connections import Connections
    from clew.store.postgres.database import PostgresDatabase
    from clew.store.postgres.opening import Address, connect, prepare
    from clew.store.postgres.turns import BranchTurn, TurnConnection
except ImportError:
    raise MissingExtra("a store in PostgreSQL needs psycopg", "postgres") from None

T = TypeVar("T")

CONNECTIONS = 4  # at most, made when needed, to read and write on
LINES = 4  # more, to wait on for a turn, and one for turns that nobody waited for
REWRITTEN = 1 << 30  # bytes of a store, at most, that a purge writes anew: whoever comes meanwhile waits half a minute

_LATE = (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)


class Postgres(SQLStore):
    """A store in a schema of its own in the database that a URL names.

    Many processes and machines may share it. With `create=False` one that is not there is not made.
    """

    def __init__(self, url: str, schema: str = "clew", create: bool = True, patience: float = PATIENCE) -> None:
        super().__init__(patience)
        self._address = Address(url, schema)
        self.place = self._address.place
        with self._telling(), closing(connect(self._address)) as connection:
            db = PostgresDatabase(connection)
            db.be_patient(patience)
            prepare(connection, self._address, create)
            self.secret = reading.secret(db)
        self._connections = Connections(self._address, CONNECTIONS + LINES + 1)
        self._shared = TurnConnection(self._connections)
        self._here: WeakValueDictionary[str, Lock] = WeakValueDictionary()  # by branch: this process asks once
        self._threads = ThreadPoolExecutor(CONNECTIONS, "clew-postgres")
        self._asking = ThreadPoolExecutor(1, "clew-postgres-turns")
        self._waiting = ThreadPoolExecutor(LINES, "clew-postgres-lines")
        self._held = (self._threads, self._asking, self._waiting), self._shared, self._connections
        self._unused = weakref.finalize(self, _let_go, *self._held, wait=False)

    async def backup(
        self, target: str | os.PathLike[str], force: bool = False, progress: Progress | None = None
    ) -> int:
        """Not ours to do: the server has tools for it."""
        raise StoreError(f"{self.place}: use pg_dump and pg_restore for PostgreSQL")

    @property
    def lingering(self) -> str:
        """The server's own copies."""
        return "the server's write-ahead log, its replicas and backups may hold them until those are recycled"

    async def wipe(self) -> bool:
        """Write the tables anew without what was deleted; False if somebody else keeps the old rows alive."""
        return await self._write(lambda db: db.wipe())

    async def _erase(self, took: Purge) -> Purge:
        if await self._write(lambda db: db.leave_to_vacuum(REWRITTEN)):
            took.left_to_vacuum = True
            return took
        return await super()._erase(took)

    @asynccontextmanager
    async def alone(self, scope: Scope, branch: str) -> AsyncIterator[None]:
        """Whoever else asks for it waits in line; the server ends the turn of a process that dies."""
        self._expect_process()
        async with self._here.setdefault(branch, Lock()):
            turn, wait = BranchTurn(self._connections, branch), Wait(self.patience)
            try:
                if not await self._run(self._asking, lambda: turn.at_once(self._shared)):
                    await self._run(self._waiting, lambda: turn.in_line(wait), wait)
                yield
            finally:
                with suppress(StoreError):  # what was written is written, and a lost connection holds nothing
                    await self._run(self._asking, turn.end)

    async def close(self) -> None:
        """Finish what was begun and let go of the server."""
        if self._unused.detach():
            await asyncio.to_thread(_let_go, *self._held, wait=True)

    async def _look(self, act: Callable[[Database], T]) -> T:
        return await self._write(act)

    async def _put(self, act: Callable[[Database], None]) -> None:
        await self._write(act)

    async def _write(self, act: Callable[[PostgresDatabase], T]) -> T:
        wait = Wait(self.patience)

        def work() -> T:
            with self._connections.taken() as db, db.hurried(wait):
                return act(db)

        return await self._run(self._threads, work, wait)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except _LATE as error:
            raise Conflict(f"{self.place}: {self._address.clean(error)}") from error
        except psycopg.errors.LockNotAvailable as error:
            raise StoreError(f"{self.place}: locked by another process; try again, or stop that process") from error
        except psycopg.errors.InsufficientPrivilege as error:
            told = f"{self.place}: {self._address.clean(error)}"
            raise StoreError(f"{told}: your role lacks that right, which whoever runs the server can grant") from error
        except psycopg.Error as error:
            raise StoreError(f"{self.place}: {self._address.clean(error)}") from error


def _let_go(
    executors: tuple[ThreadPoolExecutor, ...], shared: TurnConnection, connections: Connections, wait: bool
) -> None:
    # A store nobody holds has nothing under way, and may be collected in one of its own threads: do not wait then.
    for threads in executors:
        threads.shutdown(wait)
    shared.close()
    connections.close(wait)
