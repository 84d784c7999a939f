"""How what a client starts reaches its user's resident, which is started where none runs.

Clients come here at each event, so nothing is imported that Python does not have at hand. Where there can be no
resident, the caller does the work itself: on Windows, with `CLEW_RESIDENT=off`, where nothing can be written.
"""

import json
import os
import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from clew.core import folders
from clew.core.processes import lock, private_file, started

OFF = "CLEW_RESIDENT"  # "off": everybody does the work alone
PATIENCE = 10.0  # seconds until it listens
ANSWERING = 25.0  # seconds for an event of a client, which waits half a minute
TURN = 0.02  # seconds between two looks
LONGEST_PATH = 100  # bytes of a socket's path: systems take 104 or 108
AGAIN = 3  # times that a conversation goes on with another resident
PART = 1 << 16
READY = b"ready\n"
# Who calls with others of these has another resident: where things are, what clew shall do, with whose keys.
OWN_VARIABLES = re.compile(
    r"CLEW_.*|.*_(HOME|(CONFIG|AGENT|DATA)_DIR|API_KEY|AUTH_TOKEN|BASE_URL|API_BASE|HOST)|HOME|USERPROFILE|"
    r"(AWS|AZURE|GOOGLE|GEMINI|VERTEX|OLLAMA|PG|SSL)_?[A-Z].*|(HTTP|HTTPS|ALL|NO)_PROXY",
    re.IGNORECASE,
)


class ResidentPlace(NamedTuple):
    """Where one listens."""

    socket: Path
    held: Path  # the lock that it holds
    log: Path


def folder(env: Mapping[str, str]) -> Path:
    """What residents of this user keep."""
    return folders.data(env) / "resident"


def place(env: Mapping[str, str]) -> ResidentPlace:
    """Where the one listens that runs this code, with these settings and keys."""
    marks = {name: value for name, value in env.items() if OWN_VARIABLES.fullmatch(name)}
    own = (sys.executable, str(Path(__file__).parent), sorted(marks.items()))
    name = blake2b(repr(own).encode("utf-8", "replace"), digest_size=8).hexdigest()
    where = folder(env)
    listening = where / f"{name}.sock"
    if len(os.fsencode(listening)) > LONGEST_PATH:
        import tempfile  # few need it, and it takes a tenth of the time

        listening = Path(tempfile.gettempdir()) / f"clew-{os.getuid()}" / f"{name}.sock"
    return ResidentPlace(listening, where / f"{name}.lock", where / "resident.log")


def own_folder(path: Path) -> None:
    """Make a folder for this user alone. Raises `OSError` where it is somebody else's."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    known = path.lstat()
    if known.st_uid != os.getuid() or known.st_mode & 0o170000 != 0o040000:
        raise PermissionError(f"{path} is not a folder of this user")
    if known.st_mode & 0o077:
        path.chmod(0o700)


def peer(line: socket.socket) -> int:
    """The user at the other end."""
    if hasattr(socket, "SO_PEERCRED"):
        uid: int = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
        return uid
    told = line.getsockopt(0, getattr(socket, "LOCAL_PEERCRED", 1), 8)  # of BSD and macOS: a version, then the user
    return int(struct.unpack("Ii", told)[1])


def call(kind: str, words: Sequence[str], env: Mapping[str, str], start: bool = True) -> socket.socket | None:
    """A line on which this user's resident does a kind of work; None where none can be had."""
    if env.get(OFF, "").lower() == "off" or not hasattr(socket, "AF_UNIX"):
        return None
    hello = json.dumps({"kind": kind, "words": [*words], "folder": str(Path.cwd())}).encode() + b"\n"
    try:
        where = place(env)
        return _greeted(where, hello) or (_after_start(where, hello, env) if start else None)
    except OSError:  # a folder that is closed to us, a full disk
        return None


def _greeted(where: ResidentPlace, hello: bytes) -> socket.socket | None:
    """A line to one that listens and takes this; None: nobody does."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.settimeout(PATIENCE)
        line.connect(str(where.socket))
        if peer(line) == os.getuid():
            line.sendall(hello)
            if _all_of(line, len(READY)) == READY:
                line.settimeout(None)
                return line
    except OSError:  # it is gone, or on its way out
        pass
    line.close()
    return None


def _all_of(line: socket.socket, size: int) -> bytes:
    said = b""
    while len(said) < size and (part := line.recv(size - len(said))):
        said += part
    return said


def _after_start(where: ResidentPlace, hello: bytes, env: Mapping[str, str]) -> socket.socket | None:
    own_folder(where.held.parent)
    own_folder(where.socket.parent)
    with private_file(where.held.with_suffix(".start"), "a") as turn:
        lock(turn)  # who else starts it meanwhile waits, and finds it
        if line := _greeted(where, hello):
            return line
        child = started((sys.executable, "-P", "-m", "clew", "resident"), where.log, folders.home(env), env)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and child.poll() is None:
            if where.socket.exists() and (line := _greeted(where, hello)):
                return line
            time.sleep(TURN)
    return None


# --- what a client's process does -------------------------------------------------------------------------------------


def answered(words: Sequence[str], said: bytes, env: Mapping[str, str]) -> str | None:
    """What the resident answers to an event; nothing where it failed at it. None: there is no resident."""
    line = call("hook", words, env)
    if line is None:
        return None
    with line:
        try:
            line.settimeout(ANSWERING)
            line.sendall(said)
            line.shutdown(socket.SHUT_WR)
            whole = b"".join(iter(lambda: line.recv(PART), b""))
        except OSError:
            whole = b""
    return str(json.loads(whole)) if whole.endswith(b"\n") else ""


def passed_on(kind: str, words: Sequence[str], env: Mapping[str, str]) -> int | None:
    """Let this process's standard input and output be a line to the resident; None: there is none.

    A server of tools goes on with the next one where a resident ends: what it was not answered is asked again.
    """
    line = call(kind, words, env)
    if line is None:
        return None
    asked = _Asked() if kind == "mcp" else None
    relay = Relay(line, asked)
    for _ in range(AGAIN):
        if relay.run() or asked is None:
            break
        following = call(kind, words, env)
        if following is None:
            return 1
        relay.go_on(following)
    return 0 if relay.is_done else 1


class Relay:
    """What passes between standard input and output and a line."""

    def __init__(self, line: socket.socket, asked: "_Asked | None" = None) -> None:
        self._line, self._asked = line, asked
        self._turn = threading.Lock()
        self.is_done = False  # the client has ended its side
        threading.Thread(target=self._send, daemon=True).start()

    def run(self) -> bool:
        """Write what comes until nothing does any more; whether that is all that was wanted."""
        rest = b""
        with suppress(OSError):
            while part := self._line.recv(PART):
                if self._asked:
                    part, _, rest = (rest + part).rpartition(b"\n")
                    part += b"\n" * bool(part)
                    for one in part.splitlines():
                        self._asked.forget(one)
                if not _written(part):
                    self.is_done = True  # nobody listens
                    break
        return self.is_done

    def go_on(self, line: socket.socket) -> None:
        """The same with another one."""
        with self._turn:
            self._line.close()
            self._line = line
            with suppress(OSError):
                for one in self._asked.open() if self._asked else ():
                    line.sendall(one + b"\n")

    def _send(self) -> None:
        rest = b""
        with suppress(OSError):
            # Unbuffered: a thread that waits in Python's own reader keeps the process from ending.
            while part := os.read(0, PART):
                with self._turn:
                    if self._asked:  # whole lines: another resident may take the next
                        part, _, rest = (rest + part).rpartition(b"\n")
                        part += b"\n" * bool(part)
                        for one in part.splitlines():
                            self._asked.note(one)
                    with suppress(OSError):
                        self._line.sendall(part)
        self.is_done = True
        with self._turn, suppress(OSError):
            self._line.shutdown(socket.SHUT_WR)


def _written(part: bytes) -> bool:
    try:
        while part:
            part = part[os.write(1, part) :]
    except OSError:
        return False
    return True


class _Asked:
    """Requests of the protocol that were not answered yet, as they came."""

    def __init__(self) -> None:
        self._lines = dict[str, bytes]()

    def note(self, line: bytes) -> None:
        """That a client asks this."""
        if (id := _id(line)) is not None:
            self._lines[id] = line

    def forget(self, line: bytes) -> None:
        """That it was answered."""
        if (id := _id(line)) is not None:
            self._lines.pop(id, None)

    def open(self) -> list[bytes]:
        """All that was not."""
        return [*self._lines.values()]


def _id(line: bytes) -> str | None:
    try:
        told = json.loads(line)
        return json.dumps(told["id"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
