"""The log in one SQLite file: one writer thread, one reader thread, one transaction a turn."""

import asyncio
import os
import sqlite3
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from clew.errors import StoreError
from clew.items import Frame, Node, Scope
from clew.store import reading
from clew.store.opening import connect, prepare_file
from clew.store.records import Batch, BranchInfo, Call, Found, Trace
from clew.store.writing import write

T = TypeVar("T")


class SQLite:
    """A store in one file, or in memory with `:memory:`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = str(path)
        memory = self.path == ":memory:"
        self._writer = ThreadPoolExecutor(1, "clew-writer")
        self._reader = self._writer if memory else ThreadPoolExecutor(1, "clew-reader")
        try:
            if not memory:
                self.path = str(Path(self.path).expanduser())
                self._writer.submit(prepare_file, Path(self.path)).result()
            self._out = self._writer.submit(connect, self.path, migrate=True).result()
            self._in = self._out if memory else self._reader.submit(connect, self.path).result()
            self.secret: bytes = self._reader.submit(reading.secret, self._in).result()
            held = self._writer, self._reader, self._out, self._in
            self._unused = weakref.finalize(self, _let_go, *held, wait=False)
        except BaseException as error:
            self._writer.shutdown()
            self._reader.shutdown()
            if isinstance(error, sqlite3.Error):
                raise StoreError(f"{self.path}: {error}") from error
            raise

    async def write(self, scope: Scope, batch: Batch) -> None:
        """Write one turn. When this returns, it survives whatever happens to the process."""
        await self._run(self._writer, lambda: write(self._out, self.secret, scope, batch))

    async def find(self, scope: Scope, chains: Sequence[str]) -> list[Found]:
        """Known histories among these chain digests, longest first."""
        return await self._read(lambda db: reading.find(db, scope, chains))

    async def alike(self, scope: Scope, contents: Sequence[str]) -> str | None:
        """The branch in which most of these contents were said."""
        return await self._read(lambda db: reading.alike(db, scope, contents))

    async def session(self, scope: Scope, session: str) -> str | None:
        """The newest branch of a session."""
        return await self._read(lambda db: reading.session(db, scope, session))

    async def load(self, scope: Scope, branch: str, until: int | None = None) -> Trace:
        """A branch replayed, up to and with event `until`."""
        return await self._read(lambda db: reading.load(db, scope, branch, until))

    async def nodes(self, scope: Scope, ids: Sequence[str]) -> dict[str, Node]:
        """Nodes with their bodies, by id."""
        return await self._read(lambda db: reading.nodes(db, scope, ids))

    async def frame(self, scope: Scope, digest: str) -> Frame:
        """A frame by its digest."""
        return await self._read(lambda db: reading.frame(db, scope, digest))

    async def originals(self, scope: Scope, id: str) -> list[Node]:
        """What was said behind an id, under any number of stand-ins."""
        return await self._read(lambda db: reading.originals(db, scope, id))

    async def resolve(self, scope: Scope, short: str) -> list[str]:
        """All ids that begin like this."""
        return await self._read(lambda db: reading.resolve(db, scope, short))

    async def search(self, scope: Scope, text: str, among: Sequence[str], limit: int) -> list[str]:
        """Content digests, of those given, of bodies that hold these words; best first."""
        return await self._read(lambda db: reading.search(db, scope, text, among, limit))

    async def calls(self, scope: Scope, branch: str) -> list[Call]:
        """The calls of a branch, its past included."""
        return await self._read(lambda db: reading.calls(db, scope, branch))

    async def branches(self, scope: Scope) -> list[BranchInfo]:
        """All branches, newest first."""
        return await self._read(lambda db: reading.branches(db, scope))

    async def close(self) -> None:
        """Finish what was begun and let go of the file."""
        if self._unused.detach():
            await asyncio.to_thread(_let_go, self._writer, self._reader, self._out, self._in, wait=True)

    async def _read(self, act: Callable[[sqlite3.Connection], T]) -> T:
        return await self._run(self._reader, lambda: act(self._in))

    async def _run(self, thread: ThreadPoolExecutor, act: Callable[[], T]) -> T:
        try:
            # A cancelled caller must not leave a half-written turn: the transaction ends by itself.
            work = asyncio.get_running_loop().run_in_executor(thread, act)
            work.add_done_callback(lambda done: done.cancelled() or done.exception())  # heard, if nobody waits any more
            return await asyncio.shield(work)
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {error}") from error


def _let_go(
    writer: ThreadPoolExecutor,
    reader: ThreadPoolExecutor,
    out: sqlite3.Connection,
    into: sqlite3.Connection,
    wait: bool,
) -> None:
    # A store nobody holds has nothing under way, and may be collected in one of its own threads: do not wait then.
    writer.shutdown(wait)
    reader.shutdown(wait)
    into.close()
    out.close()
