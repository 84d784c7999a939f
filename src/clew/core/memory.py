"""Memory that nobody needs any more, given back to the system: C's library keeps it, most of all that of threads."""

import ctypes
from collections.abc import Callable
from contextlib import suppress

_trim: Callable[[int], int] | None = None
with suppress(OSError, AttributeError, TypeError):  # of glibc alone
    _trim = ctypes.CDLL(None).malloc_trim


def give_back() -> None:
    """Give back what is free, where the system's library can; a tenth of a second for a gigabyte, about."""
    if _trim is not None:
        _trim(0)
