"""The sync face: one small bridge from blocking callers to the async core, and a lock for callers on several loops."""

import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar
from weakref import WeakSet

from clew.errors import CannotWait

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_staying: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and return its result, from code that cannot await.

    It runs on a loop of its own in a thread of its own, so it works whether or not the caller's thread has a running
    loop, and an engine used through `run` always lives on the same loop.

    >>> engine = clew.Engine(clew.SQLite(":memory:"))
    >>> clew.run(clew.Sessions(engine).all())
    []
    """
    if _is_here():
        work.close()
        raise CannotWait("clew.run was called from clew's own event loop: await instead")
    if sys.is_finalizing():  # its thread is gone, and nobody would ever answer
        work.close()
        raise CannotWait("clew.run was called during interpreter shutdown")
    future = begin(work)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def begin(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Have a coroutine run on the loop of `run`, without waiting for it."""
    return asyncio.run_coroutine_threadsafe(work, _background())


async def cross(work: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine that runs on the loop of `run`, from a loop of whoever's."""
    if _is_here():
        return await work
    return await asyncio.wrap_future(begin(work))


async def on_loop(home: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine that runs on another loop. Raises `CannotWait` where that has ended, or ends meanwhile."""
    if home is asyncio.get_running_loop():
        return await work
    try:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, home))
    except RuntimeError as error:
        work.close()
        raise CannotWait("the event loop that this belongs to has ended") from error
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) and task.cancelling():
            raise
        raise CannotWait("the event loop that this belongs to ended meanwhile") from None


def stay() -> None:
    """Let the loop that runs now do clew's work itself: a server's, whose engine is nobody else's."""
    _staying.add(asyncio.get_running_loop())


class Lock:
    """One at a time, in the order they came, whichever event loops they are on: asyncio's own knows only one loop."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held = False
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, Future[None]]] = deque()

    @property
    def held(self) -> bool:
        """Whether somebody is in it now."""
        return self._held

    async def __aenter__(self) -> None:
        with self._guard:
            if not self._held:
                self._held = True
                return
            turn: Future[None] = Future()
            self._waiting.append((asyncio.get_running_loop(), turn))
        try:
            await asyncio.wrap_future(turn)
        except BaseException:
            # It may be cancelled at the moment in which its turn comes: then that goes on to the next.
            if not turn.cancel():
                self._pass_on()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        with self._guard:
            while self._waiting:
                loop, turn = self._waiting.popleft()
                if not loop.is_closed() and turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self._held = False


def _is_here() -> bool:
    """Whether the loop that runs here, if one does, is that of `run`, or one that stays."""
    running = asyncio._get_running_loop()
    return running is not None and (running is _loop or running in _staying)


def _background() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="clew-loop", daemon=True).start()
        return _loop


def _forget() -> None:
    """A fork has no thread but the one that forked."""
    global _lock, _loop
    _lock, _loop = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
