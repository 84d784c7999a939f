"""Processes that a command started, also those that left its group: found by a mark in what they were started with."""

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

MARK_VARIABLE = "CLEW_RUN"  # a variable of their environment
_PROCESSES = Path("/proc")


def can_look() -> bool:
    """Whether this system shows what its processes were started with."""
    return (_PROCESSES / "self" / "environ").exists()


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """What tells the processes of one command from all others."""

    value: str = field(default_factory=lambda: secrets.token_hex(8))

    def found(self, output: str = "") -> Iterator[int]:
        """The processes that have it; with `output`, only those that hold that pipe open."""
        wanted = f"\0{MARK_VARIABLE}={self.value}\0".encode()
        for place in _PROCESSES.glob("[0-9]*") if can_look() else ():
            with suppress(OSError):  # it has just ended, or is somebody else's
                if wanted in b"\0%b\0" % (place / "environ").read_bytes() and (not output or _holds(place, output)):
                    yield int(place.name)

    def send(self, number: signal.Signals, output: str = "") -> bool:
        """Send all of them a signal; whether there were any."""
        found = list(self.found(output))
        for process in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, number)
        return bool(found)


def pipe_of(handle: int) -> str:
    """The name of a pipe, by which others that hold it can be told; none where one cannot look."""
    try:
        return str((_PROCESSES / "self" / "fd" / str(handle)).readlink())
    except OSError:
        return ""


def _holds(place: Path, output: str) -> bool:
    return any(str(handle.readlink()) == output for handle in (place / "fd").iterdir())
