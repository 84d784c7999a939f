"""Work that takes long, in threads of our own: the event loop goes on meanwhile."""

import asyncio
import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from threading import Thread
from typing import Any, TypeVar

from clew.core.items import Item

T = TypeVar("T")

# Work on fewer takes less than waiting for a thread:
LARGE = 100_000  # characters
LONG = 200  # items
# They take turns with the thread of the event loop, which waits the longer, the more of them there are. With one alone,
# a small piece of work would wait for a large one.
WORKERS = 2

_workers: ThreadPoolExecutor | None = None


async def in_thread(act: Callable[[], T]) -> T:
    """Do something in a thread, after what others asked for before; it is done even if nobody waits any more."""
    global _workers
    if _workers is None:
        _workers = ThreadPoolExecutor(WORKERS, "clew-work")
    return await asyncio.get_running_loop().run_in_executor(_workers, copy_context().run, act)


async def in_thread_of_its_own(act: Callable[[], T]) -> T:
    """Do something that may take minutes, in a thread that keeps no program from ending; it is done even if nobody
    waits any more."""
    done: Future[T] = Future()

    def work() -> None:
        try:
            done.set_result(act())
        except BaseException as error:
            done.set_exception(error)

    Thread(target=copy_context().run, args=(work,), name="clew-asking", daemon=True).start()
    return await asyncio.shield(asyncio.wrap_future(done))


async def in_thread_if(large: bool, act: Callable[[], T]) -> T:
    """Do something here and now, or in a thread if it is large."""
    return await in_thread(act) if large else act()


def are_large(items: Iterable[Item]) -> bool:
    """Whether work on all characters of these takes long."""
    left = LARGE
    for item in items:
        left -= len(item.text) + (length(item.wire) if item.wire is not None else 0)
        if left < 0:
            return True
    return False


def length(value: Any) -> int:
    """Characters, of what lies deep as well: an image is a long string in there."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(map(length, value.values()))
    return sum(map(length, value)) if isinstance(value, list | tuple) else 0


def _forget() -> None:
    """A fork has no thread but the one that forked."""
    global _workers
    _workers = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
