"""How long a caller waits for a lock that another process holds: as long as the store would, or less, if it says so."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 30.0  # seconds, unless a store is told otherwise

_until: ContextVar[float] = ContextVar("clew_until", default=math.inf)


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Whatever is asked of a store in this waits for locks no longer than so many seconds, all together."""
    token = _until.set(min(_until.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _until.reset(token)


class Wait:
    """One caller's wait: it ends in time, or when the caller has left."""

    def __init__(self, most: float) -> None:
        self._since = time.monotonic()
        self._until = min(self._since + most, _until.get())
        self.left = False  # the caller

    def remaining(self) -> float:
        """Seconds that may still be waited."""
        return max(0.0, self._until - time.monotonic())

    def waited(self) -> str:
        """How long it has been, for people."""
        return f"{time.monotonic() - self._since:.1f} s"

    def is_over(self) -> bool:
        """Whether nothing may be waited for any more."""
        return self.left or not self.remaining()

    def patiently(self, act: Callable[[], T], is_busy: Callable[[Exception], bool]) -> T:
        """Do something; again, while somebody else keeps us from it. Each try waits a little by itself."""
        while True:
            try:
                return act()
            except Exception as error:
                if not is_busy(error) or self.is_over():
                    raise
