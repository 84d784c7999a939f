"""How long a caller waits for a lock that another process holds: as long as the store would, or less, if it says so."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 30.0  # seconds, unless a store is told otherwise
LEAST_WAIT = 0.1  # so long even a caller waits who has no patience left


class _Patience:
    """What is left of it; only waiting uses it up."""

    def __init__(self, left: float) -> None:
        self.left = left


_own: ContextVar[_Patience | None] = ContextVar("clew_patience", default=None)


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Whatever is asked of a store in this waits for locks no longer than so many seconds, all together."""
    outer = _own.get()
    token = _own.set(_Patience(min(seconds, outer.left if outer else math.inf)))
    try:
        yield
    finally:
        _own.reset(token)


class Wait:
    """One caller's wait: it ends in time, or when the caller has left."""

    def __init__(self, most: float) -> None:
        self._since = time.monotonic()
        self._own = _own.get()
        self.most = max(LEAST_WAIT, min(most, self._own.left) if self._own else most)
        self.left = False  # the caller

    def waited(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._since

    def is_over(self) -> bool:
        """Whether nothing may be waited for any more."""
        return self.left or self.waited() >= self.most

    def end(self) -> None:
        """Somebody else was in the way: what the caller waited, it does not wait again."""
        if self._own:
            self._own.left -= self.waited()

    def patiently(self, act: Callable[[], T], is_busy: Callable[[Exception], bool]) -> T:
        """Do something; again, while somebody else keeps us from it. Each try waits a little by itself."""
        busy = False
        try:
            while True:
                try:
                    return act()
                except Exception as error:
                    if not is_busy(error) or self.is_over():
                        busy = busy or is_busy(error)
                        raise
                    busy = True
        finally:
            if busy:
                self.end()
