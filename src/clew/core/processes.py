"""What a process in the background needs: files that only its user reads, a lock that it holds while it lives, a start.

Hooks of clients come here at each prompt, so nothing is imported that Python does not have at hand.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]

HAS_LOCKS = fcntl is not None
LARGEST_LOG = 1 << 20  # bytes, then it begins anew; one before it is kept


FileMark = tuple[int, int]


def file_mark(path: Path) -> FileMark:
    """By which a file is known again that nobody changed or put another in place of; zeros: there is none."""
    try:
        known = path.stat()
    except OSError:
        return 0, 0
    return known.st_ino, known.st_mtime_ns


def private_file(path: Path, mode: str) -> IO[str]:
    """A file that only its user reads."""
    return open(path, mode, encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600))


def try_lock(file: IO[str]) -> bool:
    """Take the lock, which goes with the file; whether it could be had."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock(file: IO[str]) -> None:
    """Wait for the lock; it goes with the file."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX)


def older(log: Path) -> Path:
    """Where a log is that was full."""
    return log.with_name(f"{log.name}.1")


def started(command: Sequence[str], log: Path, folder: Path, env: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """A process that stays when the one ends that needed it first; what it says is in its log."""
    import subprocess  # not for those who only look

    with suppress(OSError):
        if log.stat().st_size > LARGEST_LOG:
            log.replace(older(log))
    with private_file(log, "a") as said:
        return subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            cwd=folder,  # and not in a project, whose settings are none of the others' business
            env=env,
            start_new_session=True,
        )
