"""Caches that hold words of conversations, all known here: what is purged is to be in none of them."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar
from weakref import ref

from clew.core.items import Item

Keyed = TypeVar("Keyed")
Result = TypeVar("Result")

_forgetting: list[Callable[[], None]] = []


def remembers(most: int) -> Callable[[Callable[[str], Result]], Callable[[str], Result]]:
    """Keep what a function of a text gave for so many texts, until `forget`."""

    def keep(act: Callable[[str], Result]) -> Callable[[str], Result]:
        cached: Any = lru_cache(maxsize=most)(act)
        _forgetting.append(cached.cache_clear)
        return cached  # type: ignore[no-any-return]

    return keep


def per_item(act: Callable[[Item], Result]) -> Callable[[Item], Result]:
    """Keep what a function gave for an item for as long as that very item lives, or until `forget`."""
    kept: dict[int, tuple[ref[Item], Result]] = {}

    def found(item: Item) -> Result:
        key = id(item)
        known = kept.get(key)
        if known is None or known[0]() is not item:
            known = kept[key] = ref(item, lambda _: kept.pop(key, None)), act(item)
        return known[1]

    _forgetting.append(kept.clear)
    return found


class Recent(dict[Keyed, Result]):
    """At most so many values; the one put first goes first."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: Keyed, value: Result) -> None:
        super().__setitem__(key, value)
        if len(self) > self._most:
            self.pop(next(iter(self)), None)


def forget() -> None:
    """Forget every text."""
    for clear in _forgetting:
        clear()
