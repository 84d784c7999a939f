"""Processes that leave nothing behind: not when they take too long, not when whoever waits for them is cancelled."""

import asyncio
import os
import signal
import sys
from codecs import getincrementaldecoder
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from clew.agent.tools.bounds import Ends
from clew.agent.tools.marked import MARK_VARIABLE, ProcessMark, pipe_of
from clew.errors import ToolError

LINGER = 1.0  # seconds that output may stay open after the process itself has ended
GRACE = 2.0  # seconds between asking a process to end and ending it
REAPED = 5.0  # seconds that the system may take to end it
LOOK_PAUSE = 0.05  # seconds between two looks whether it did

How = Literal["itself", "late", "lingering"]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: by itself, late by our hand, or with others still at its output, and its exit code."""

    how: How
    code: int | None
    left: bool = False  # something that it started goes on, and could not be ended


class _Listening(asyncio.SubprocessProtocol):
    """Hears a process: what it writes, and that it ended."""

    def __init__(self, output: Ends) -> None:
        self.exited = asyncio.Event()
        self.silent = asyncio.Event()  # nobody can write any more
        self._output = output
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._output.add(self._decoder.decode(data))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._output.add(self._decoder.decode(b"", final=True))
        self.silent.set()

    def process_exited(self) -> None:
        self.exited.set()


async def finish(
    command: Sequence[str], folder: Path, seconds: float, output: Ends, env: Mapping[str, str] | None = None
) -> Ended:
    """Run a command to its end or for so many seconds; what it and its children write goes to `output`."""
    mark = ProcessMark()
    env = {**(os.environ if env is None else env), MARK_VARIABLE: mark.value}
    starting = asyncio.ensure_future(_start(command, folder, output, env))
    how: How = "late"
    left = False
    try:
        async with asyncio.timeout(seconds):
            _, heard = await asyncio.shield(starting)
            await heard.exited.wait()
            how = "lingering"
            async with asyncio.timeout(LINGER):
                await heard.silent.wait()
            how = "itself"
    except TimeoutError:
        pass
    finally:
        # Also a cancel that comes while the process is starting must not leave it running.
        transport, heard = await starting
        try:
            if how != "itself":
                at = _output(transport) if how == "lingering" else ""  # what sent its output elsewhere goes on
                left = await _end(transport.get_pid(), heard, mark, at)
        finally:
            transport.close()
    return Ended(how, transport.get_returncode(), left)


def _output(transport: asyncio.SubprocessTransport) -> str:
    pipe = transport.get_pipe_transport(1)
    return pipe_of(pipe.get_extra_info("pipe").fileno()) if pipe else ""


async def _start(
    command: Sequence[str], folder: Path, output: Ends, env: Mapping[str, str] | None
) -> tuple[asyncio.SubprocessTransport, _Listening]:
    loop = asyncio.get_running_loop()
    try:
        return await loop.subprocess_exec(
            lambda: _Listening(output),
            *command,
            cwd=folder,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,  # a group of its own, and no terminal to ask questions at
        )
    except ValueError as error:  # a NUL, or half of a surrogate pair
        raise ToolError(f"no process can be started with this: {error}") from None


async def _end(group: int, heard: _Listening, mark: ProcessMark, output: str) -> bool:
    """End a process and all it started: politely, then for good, whatever interrupts; whether something is left."""
    try:
        end_group(group, signal.SIGTERM)
        mark.send(signal.SIGTERM, output)
        await _within(GRACE, heard.exited, heard.silent)
    finally:
        last = last_signal()
        end_group(group, last)
        mark.send(last, output)
    await _within(REAPED, heard.exited)
    for _ in range(int(REAPED / LOOK_PAUSE)):
        if not mark.send(last, output):  # it may have started others meanwhile
            break
        await asyncio.sleep(LOOK_PAUSE)
    await _within(LINGER, heard.silent)
    return not heard.silent.is_set() or any(mark.found(output))


async def _within(seconds: float, *events: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            for event in events:
                await event.wait()


def last_signal(platform: str = sys.platform) -> signal.Signals:
    """The signal that no process can ignore; Windows has one for all."""
    return signal.SIGTERM if platform == "win32" else signal.SIGKILL


def end_group(group: int, number: signal.Signals, platform: str = sys.platform) -> None:
    """Send a signal to a process and those it started; on Windows to the process alone."""
    with suppress(ProcessLookupError, PermissionError):
        if platform == "win32":
            os.kill(group, number)
        else:
            os.killpg(group, number)
