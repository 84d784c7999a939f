"""Caches that hold words of conversations, all known here: what is purged is to be in none of them."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

Result = TypeVar("Result")

_forgetting: list[Callable[[], None]] = []


def remembers(most: int) -> Callable[[Callable[[str], Result]], Callable[[str], Result]]:
    """Keep what a function of a text gave for so many texts, until `forget`."""

    def keep(act: Callable[[str], Result]) -> Callable[[str], Result]:
        cached: Any = lru_cache(maxsize=most)(act)
        _forgetting.append(cached.cache_clear)
        return cached  # type: ignore[no-any-return]

    return keep


def forget() -> None:
    """Forget every text."""
    for clear in _forgetting:
        clear()
