"""Who looks is told when something changes: at once where this process wrote it, soon where another did."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from clew.core.items import Scope
from clew.events import Event
from clew.store.protocol import Store

POLL = 0.4  # seconds between two looks at what other processes wrote
SHARE = 0.02  # of the time, at most, that is spent on looking
QUIET = 0.15  # seconds in which what happens at once is told once
ALIVE = 20.0  # seconds after which something is said in any case, so that nobody hangs up


class Changes:
    """What has changed since it was last told, for each who listens. It is a listener of the engine's."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Event, tuple[asyncio.AbstractEventLoop, Scope, str | None]] = {}

    def __call__(self, event: Event) -> None:
        for told, (loop, scope, branch) in list(self._waiting.items()):
            if event.scope == scope and branch in (None, event.branch):
                loop.call_soon_threadsafe(told.set)

    @contextmanager
    def _told(self, scope: Scope, branch: str | None) -> Iterator[asyncio.Event]:
        told = asyncio.Event()
        self._waiting[told] = asyncio.get_running_loop(), scope, branch
        try:
            yield told
        finally:
            del self._waiting[told]

    async def of(self, store: Store, scope: Scope, branch: str | None) -> AsyncIterator[bool]:
        """True each time something changed, in a conversation or in any; False now and then when nothing did."""
        with self._told(scope, branch) as told:
            seen, pause, said = await store.state(scope, branch), POLL, time.monotonic()
            while True:
                try:
                    async with asyncio.timeout(pause):
                        await told.wait()
                        await asyncio.sleep(QUIET)
                except TimeoutError:
                    pass
                began = time.monotonic()
                told.clear()
                now = await store.state(scope, branch)
                pause = max(POLL, (time.monotonic() - began) / SHARE)
                if now != seen:
                    seen, said = now, began
                    yield True
                elif began - said > ALIVE:
                    said = began
                    yield False
