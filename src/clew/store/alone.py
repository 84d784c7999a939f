"""Waiting for one's turn, where several processes write on one branch: nothing depends on it but time."""

import asyncio
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from clew.store.waiting import Wait

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

TURN_PATIENCE = 60.0  # seconds: whoever holds it that long may hang, and a conflict is only an inconvenience
GLANCE = 0.004  # seconds between two looks, at most; who has waited for long looks more often


@asynccontextmanager
async def alone_in(path: str) -> AsyncIterator[None]:
    """Nobody else who asks for it is in this, in any process; a process that dies is out."""
    file = _opened(path)
    if file is None:
        yield
        return
    try:
        await _wait_for(file)
        yield
    finally:
        os.close(file)


def _opened(path: str) -> int | None:
    """The file to lock; None where that cannot be: then whoever comes second tries again."""
    if fcntl is None:
        return None
    with suppress(OSError):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    return None


async def _wait_for(file: int) -> None:
    """Try until it works, or for as long as it makes sense: a lock on a file can be waited for, but not given up on."""
    wait = Wait(TURN_PATIENCE)
    while not _lock(file) and not wait.is_over():
        await asyncio.sleep(random.random() * GLANCE / (1 + wait.waited()))  # noqa: S311


def _lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
