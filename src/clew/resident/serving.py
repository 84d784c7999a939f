"""The process of a user that does clew's work: it listens on a socket of theirs alone, and ends when nobody calls.

It listens before anything large is imported. Where clew's files changed since, as by an upgrade, it takes no more and
ends with what is under way: who calls then starts the new one.
"""

import asyncio
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from clew.core.bridge import stay
from clew.core.processes import FileMark, file_mark, private_file, try_lock
from clew.resident.calling import READY, ResidentPlace, folder, own_folder, peer, place

if TYPE_CHECKING:
    from clew.resident.work import Work

IDLE = 600.0  # seconds without a line after which it ends
LOOK = 2.0  # seconds between two looks whether it shall
CLAIMING = 2.0  # seconds for another one to let go that is on its way out
ENDING = 5.0  # seconds for what is under way when it ends
LONGEST_LINE = 256 << 20  # bytes: a history with pictures in it
BACKLOG = 128


class Resident:
    """One that listens, until nobody needs it."""

    def __init__(self, env: Mapping[str, str], idle: float = IDLE) -> None:
        self._env, self._idle = env, idle
        self._place = place(env)
        self._lines = set[asyncio.Task[None]]()
        self._last = time.monotonic()
        self._known = dict[str, FileMark]()  # the files of clew's code, as they were when they were imported
        self._ended = asyncio.Event()
        self._is_replaced = False
        self._work: Work | None = None
        self._importing = asyncio.Lock()

    async def run(self) -> None:
        """Answer until nobody calls any more; at once where another one does."""
        stay()
        held = _claimed(self._place)
        if held is None:
            return
        with held:
            listener = _listening(self._place.socket)
            mark = self._mark()
            server = await asyncio.start_unix_server(self._take, sock=listener, limit=LONGEST_LINE)
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, self._ended.set)
            self._is_changed()  # what is imported by now
            warming = asyncio.create_task(self._working())
            while not self._ended.is_set() and self._mark() == mark and not self._is_idle():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), LOOK)
            server.close()
            if self._mark() == mark:  # else another one has its place
                self._tidy()
        # From here on, another one may begin.
        await self._let_end()
        warming.cancel()
        if self._work:
            await self._work.close()

    def _mark(self) -> tuple[FileMark, int]:
        """By which it knows that this is still its own place: not so where its home was removed."""
        return file_mark(self._place.socket), file_mark(self._place.held)[0]

    def _is_idle(self) -> bool:
        return not self._lines and time.monotonic() - self._last > self._idle

    async def _let_end(self) -> None:
        if self._lines:
            await asyncio.wait(self._lines, timeout=ENDING)
        for task in self._lines:
            task.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)

    def _tidy(self) -> None:
        """Leave nothing behind but a log that says something."""
        with suppress(OSError):
            for file in (self._place.socket, self._place.held):
                file.unlink(missing_ok=True)
            if self._is_replaced:  # the next one begins in this moment
                return
            self._place.held.with_suffix(".start").unlink(missing_ok=True)
            if self._place.log.exists() and not self._place.log.stat().st_size:
                self._place.log.unlink()
            self._place.held.parent.rmdir()
            self._place.held.parent.parent.rmdir()

    # --- a line -------------------------------------------------------------------------------------------------------

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a line is a task"
        self._lines.add(task)
        try:
            await self._converse(reader, writer)
        except (ConnectionError, asyncio.CancelledError):  # the caller is gone, or this ends
            pass
        except Exception as error:  # one line that fails is the end of no other: its caller goes on as without clew
            from clew.exchange.thread import warn

            warn("clew failed at what a client asked", error)
        finally:
            self._lines.discard(task)
            self._last = time.monotonic()
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if peer(writer.get_extra_info("socket")) != os.getuid():
            return
        if self._is_changed():
            self._is_replaced = True  # the caller is not answered, and starts another one
            self._ended.set()
            return
        asked: dict[str, Any] = json.loads(await reader.readline())
        writer.write(READY)
        await (await self._working()).converse(asked, reader, writer)

    async def _working(self) -> "Work":
        async with self._importing:
            if self._work is None:
                self._work = await asyncio.to_thread(_work, self._env)
                self._is_changed()
        return self._work

    def _is_changed(self) -> bool:
        """Whether a file of the code that runs here is no longer what it was when it was imported."""
        root = str(Path(__file__).parents[1])
        files = [file for m in [*sys.modules.values()] if (file := getattr(m, "__file__", None) or "").startswith(root)]
        now = {file: file_mark(Path(file)) for file in files}
        changed = any(self._known.get(file, mark) != mark for file, mark in now.items())
        self._known |= {file: mark for file, mark in now.items() if file not in self._known}
        return changed


def _work(env: Mapping[str, str]) -> "Work":
    from clew.resident.work import Work  # takes a good part of a second

    return Work(env)


def _claimed(where: ResidentPlace, patience: float = CLAIMING) -> IO[str] | None:
    """What it holds as long as it lives; None: another one does, and goes on."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        own_folder(where.held.parent)
        own_folder(where.socket.parent)
        file = private_file(where.held, "a")
        if try_lock(file) and os.fstat(file.fileno()).st_ino == file_mark(where.held)[0]:  # else one that was removed
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            return file
        file.close()
        time.sleep(LOOK / 100)
    return None


def _listening(path: Path) -> socket.socket:
    """A socket that only this user opens, in the place of one that somebody left who was killed."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(before)
    listener.listen(BACKLOG)
    return listener


def end_all(env: Mapping[str, str]) -> int:
    """End all of this user's, and wait until they have; how many there were."""
    ended = 0
    for held in folder(env).glob("*.lock"):
        with suppress(OSError, ValueError), held.open("r+") as file:
            if not try_lock(file):
                os.kill(int(file.read()), signal.SIGTERM)
                ended += 1
                until = time.monotonic() + ENDING + 1
                while not try_lock(file) and time.monotonic() < until:
                    time.sleep(LOOK / 100)
    return ended
