"""Python in processes of their own, for tests of what processes do to each other: each is a fork of one that has
imported what they all need. To import takes a process ten times as long as what it is there for.

A test that is about the start of a process, or about a hash seed, begins one as anybody does.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType, TracebackType
from typing import IO, Any

HERE = Path(__file__)
USUAL = ("clew.cli.app", "clew.engine.engine", "clew.store.sqlite", "clew.testing")  # and nothing that begins a thread
NUMBER = 12  # characters that tell a pid or an exit code


class Begun:
    """What `python` begins with such arguments: `-c` with a script, `-m` with a module, or a file."""

    def __init__(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | str = ".",
        stdout: IO[Any] | None = None,
        stderr: IO[Any] | None = None,
        imports: tuple[str, ...] = (),
    ) -> None:
        self.returncode: int | None = None
        asked = {"args": args, "env": dict(os.environ if env is None else env), "imports": imports}
        raw = json.dumps({**asked, "cwd": str(Path(cwd).absolute())}).encode() + b"\n"
        ours, theirs = os.pipe()
        self.stdout: IO[str] = os.fdopen(ours, encoding="utf-8")
        self._told, telling = socket.socketpair()
        ends = (theirs if stdout is None else stdout.fileno(), 2 if stderr is None else stderr.fileno())
        with telling:
            sent = socket.send_fds(_nursery(), [raw], [telling.fileno(), *ends])
            _nursery().sendall(raw[sent:])
        os.close(theirs)
        self.pid = int(self._told.recv(NUMBER))

    def kill(self) -> None:
        """End it where it stands."""
        os.kill(self.pid, signal.SIGKILL)

    def is_running(self) -> bool:
        """Whether it has not ended."""
        self._told.setblocking(False)
        try:
            self.wait()
        except BlockingIOError:
            return True
        finally:
            self._told.setblocking(True)
        return False

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        if self.returncode is None:
            self.returncode = int(self._told.recv(NUMBER))
        return self.returncode

    def __enter__(self) -> "Begun":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stdout.close()
        if error is not None and self.is_running():
            self.kill()
        self.wait()
        self._told.close()


def run(*args: str, check: bool = False, **given: Any) -> "subprocess.CompletedProcess[str]":
    """All that such a process says until it ends."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with Begun(*args, **{"stdout": out, "stderr": err, **given}) as begun:
            pass
        assert begun.returncode is not None
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode())
    done = subprocess.CompletedProcess([*args], begun.returncode, *said)
    if check:
        assert done.returncode == 0, done.stderr
    return done


@cache
def _nursery() -> socket.socket:
    """A line to the process that all others are forked from; it ends when nobody holds the line any more."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen([sys.executable, str(HERE)], stdin=theirs.fileno(), stdout=subprocess.DEVNULL)
    atexit.register(_end, process, ours)
    return ours


def _end(process: "subprocess.Popen[bytes]", line: socket.socket) -> None:
    line.close()
    process.wait()


def _asked_for() -> dict[str, Any] | None:
    """What a process shall do, in that process, over and over; in the one that forks them nothing, at the end."""
    line = socket.socket(fileno=0)
    for name in USUAL:
        importlib.import_module(name)
    gc.freeze()  # none of it is garbage, in any fork
    while True:
        raw, fds, _, _ = socket.recv_fds(line, 1 << 16, 3)
        if not raw:
            return None
        while not raw.endswith(b"\n"):
            raw += line.recv(1 << 16)
        asked: dict[str, Any] = json.loads(raw)
        for name in asked["imports"]:
            importlib.import_module(name)
        if not os.fork():
            line.detach()
            _tell_of_a_fork(socket.socket(fileno=fds[0]), fds[1:])
            return asked
        for fd in fds:
            os.close(fd)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _tell_of_a_fork(telling: socket.socket, ends: list[int]) -> None:
    """Fork once more: go on in that one, with such ends for what it says, and tell its number and how it ended."""
    if child := os.fork():
        telling.send(f"{child:{NUMBER}}".encode())
        for fd in (0, 1, 2, *ends):
            os.close(fd)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with suppress(OSError):  # nobody asks any more
            telling.send(f"{code:{NUMBER}}".encode())
        os._exit(0)
    telling.close()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for to, fd in enumerate((nothing, *ends)):
        os.dup2(fd, to)
    for fd in {nothing, *ends} - {0}:
        os.close(fd)


def _do(how: str, *args: str, cwd: str, env: Mapping[str, str]) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.path[0] = "" if how in ("-c", "-m") else str(Path(how).parent)
    if how == "-c":
        sys.argv = ["-c", *args[1:]]
        sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(args[0], "<string>", "exec"), sys.modules["__main__"].__dict__)
    elif how == "-m":
        sys.argv = [*args]
        runpy.run_module(args[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [how, *args]
        runpy.run_path(how, run_name="__main__")


if __name__ == "__main__" and (wanted := _asked_for()):
    _do(*wanted["args"], cwd=wanted["cwd"], env=wanted["env"])
