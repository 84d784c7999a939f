"""Turns on the branches of a file, where several processes write on it: nothing depends on them but time.

A turn is a lock on one byte of a file beside the store, the byte that the branch's name says. Who finds it locked waits
for it in the kernel, in a thread: there is nothing to look at again and again, and whoever came first is first.
"""

import asyncio
import os
import struct
import threading
import weakref
from collections import deque
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from hashlib import sha256
from weakref import WeakValueDictionary

from clew.core.bridge import Lock
from clew.store.waiting import Wait

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

THREADS = 8  # that wait for locks of one file; whoever comes after them waits for a thread
WRITERS_BYTE = 0  # the byte of whoever writes, whatever the branch
BRANCHES_FROM = 1  # the first byte of a branch


class _LockFile:
    """An open file, closed with the last who uses it: one who waits in the kernel cannot be called back."""

    def __init__(self, path: str) -> None:
        self.number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        _files.add(self)

    def lock(self, place: int, wait: bool) -> None:
        """Have a byte; raises `OSError` where somebody else has it, or where there are no locks."""
        self._do(fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB, place)

    def free(self, place: int) -> None:
        with suppress(OSError):
            self._do(fcntl.LOCK_UN, place)

    def _do(self, how: int, place: int) -> None:
        if not hasattr(fcntl, "F_OFD_SETLKW"):
            # These belong to the process: for two stores in one they are no locks, and the kernel sees deadlocks among
            # processes where there are none among their threads. Then one goes on without.
            fcntl.lockf(self.number, how, 1, place)
            return
        act = fcntl.F_OFD_SETLK if how & fcntl.LOCK_NB or how == fcntl.LOCK_UN else fcntl.F_OFD_SETLKW
        kind = fcntl.F_UNLCK if how == fcntl.LOCK_UN else fcntl.F_WRLCK
        fcntl.fcntl(self.number, act, struct.pack("@hhqqi0q", kind, os.SEEK_SET, place, 1, 0))

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):
            os.close(self.number)


_files = weakref.WeakSet[_LockFile]()


def _forget() -> None:
    """A fork would go on holding what its parent had when that dies."""
    for file in _files:
        with suppress(OSError):
            os.close(file.number)
        file.number = -1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class FileTurns:
    """The turns of one store. A process that dies ends its own."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._here: WeakValueDictionary[str, Lock] = WeakValueDictionary()  # by branch: this store asks once
        self._file: _LockFile | None = None
        self._guard = threading.Lock()
        self._waiting: deque[tuple[_LockFile, int, Future[None]]] = deque()
        self._threads = 0

    @asynccontextmanager
    async def alone(self, branch: str, most: float) -> AsyncIterator[None]:
        """Nobody else who asks for it is in this; who has waited for so many seconds goes on without it."""
        async with self._here.setdefault(branch, Lock()):
            file, place = self._opened(), BRANCHES_FROM + (int.from_bytes(sha256(branch.encode()).digest()[:8]) >> 2)
            if file is None:
                yield
                return
            turn = self._asked(file, place)
            try:
                await _had(turn, Wait(most))
                yield
            finally:
                if not turn.cancel():
                    file.free(place)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """In line with those who write, in this thread; each for as long as a short transaction takes."""
        if (file := self._opened()) is None:
            yield
            return
        with suppress(OSError):
            file.lock(WRITERS_BYTE, wait=True)
        try:
            yield
        finally:
            file.free(WRITERS_BYTE)

    def _asked(self, file: _LockFile, place: int) -> Future[None]:
        """One that is answered when the lock is there; unless it is cancelled first, the lock must be freed then."""
        turn: Future[None] = Future()
        try:
            file.lock(place, wait=False)
        except (BlockingIOError, PermissionError):  # as systems differ
            self._line_up(file, place, turn)
        except OSError:  # there are no locks here
            turn.set_result(None)
        else:
            turn.set_result(None)
        return turn

    def _line_up(self, file: _LockFile, place: int, turn: Future[None]) -> None:
        with self._guard:
            self._waiting.append((file, place, turn))
            if self._threads == THREADS:
                return
            self._threads += 1
        # A daemon: a process may end while it waits.
        threading.Thread(target=self._wait, name="clew-turns", daemon=True).start()

    def _wait(self) -> None:
        while True:
            with self._guard:
                if not self._waiting:
                    self._threads -= 1
                    return
                file, place, turn = self._waiting.popleft()
            if turn.cancelled():
                continue
            with suppress(OSError):  # what the kernel takes for a deadlock is none
                file.lock(place, wait=True)
            if turn.set_running_or_notify_cancel():
                turn.set_result(None)
            else:  # too late
                file.free(place)

    def _opened(self) -> _LockFile | None:
        """The file to lock; None where that cannot be: then whoever comes second tries again."""
        if self._file is None and fcntl is not None:
            with suppress(OSError):
                self._file = _LockFile(self._path)
        return self._file

    def close(self) -> None:
        """Let go of the file."""
        self._file = None


async def _had(turn: Future[None], wait: Wait) -> None:
    """Wait until it is had, or for as long as that makes sense: whoever has it may hang."""
    if turn.done():
        return
    try:
        await asyncio.wait_for(asyncio.wrap_future(turn), wait.most)
    except TimeoutError:
        wait.end()
