"""Who looks is told when something changes: at once where this process wrote it, soon where another did."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from clew.core.items import Scope
from clew.events import Event
from clew.store.protocol import Store
from clew.store.records import StoreState

POLL = 0.4  # seconds between two looks at what other processes wrote
SHARE = 0.02  # of the time, at most, that is spent on looking
QUIET = 0.15  # seconds in which what happens at once is told once
ALIVE = 20.0  # seconds after which something is said in any case, so that nobody hangs up


def stamp(state: StoreState) -> str:
    """A state in a few characters, for an address."""
    return hashlib.sha256(repr(state).encode()).hexdigest()[:16]


class Changes:
    """What has changed since it was last told, for each who listens. It is a listener of the engine's."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Event, tuple[asyncio.AbstractEventLoop, Scope, str | None]] = {}
        self._ended = False

    def __call__(self, event: Event) -> None:
        for told, (loop, scope, branch) in list(self._waiting.items()):
            if event.scope == scope and branch in (None, event.branch):
                loop.call_soon_threadsafe(told.set)

    def end(self) -> None:
        """Tell nobody anything any more: the server ends, and waits for those who listen."""
        self._ended = True
        for told in self._waiting:
            told.set()

    @contextmanager
    def _wakened(self, scope: Scope, branch: str | None) -> Iterator[asyncio.Event]:
        told = asyncio.Event()
        self._waiting[told] = asyncio.get_running_loop(), scope, branch
        try:
            yield told
        finally:
            del self._waiting[told]

    async def of(self, store: Store, scope: Scope, branch: str | None, seen: str = "") -> AsyncIterator[bool]:
        """True each time something changed, in a conversation or in any; False now and then when nothing did.

        What changed since somebody was shown the state that is called `seen` is told at once.
        """
        with self._wakened(scope, branch) as told:
            last, pause, said = seen or stamp(await store.state(scope, branch)), 0.0, time.monotonic()
            while not self._ended:
                try:
                    async with asyncio.timeout(pause):
                        await told.wait()
                        await asyncio.sleep(QUIET)
                except TimeoutError:
                    pass
                began = time.monotonic()
                told.clear()
                now = stamp(await store.state(scope, branch))
                pause = max(POLL, (time.monotonic() - began) / SHARE)
                if now != last:
                    last, said = now, began
                    yield True
                elif began - said > ALIVE:
                    said = began
                    yield False
