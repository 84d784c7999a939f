"""Caches that hold words of conversations, all known here: what is purged is to be in none of them."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Generic, TypeVar
from weakref import ref

Thing = TypeVar("Thing")
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


class _Known(ref[Any]):
    """A thing, as long as it lives, and what is known of it: one object for both, for there are many."""

    __slots__ = ("found", "key")
    found: Any
    key: int


class PerObject(Generic[Thing, Result]):
    """What a function gave for a thing, such as an item or a view, for as long as that very thing lives."""

    def __init__(self, act: Callable[[Thing], Result]) -> None:
        self._act = act
        self._kept: dict[int, _Known] = {}
        self._forget = self._gone  # one for all of them

    def __call__(self, thing: Thing) -> Result:
        known = self._kept.get(id(thing))
        if known is None or known() is not thing:
            known = _Known(thing, self._forget)
            known.key, known.found = id(thing), self._act(thing)
            self._kept[known.key] = known
        return known.found  # type: ignore[no-any-return]

    def _gone(self, known: _Known) -> None:
        if self._kept.get(known.key) is known:
            del self._kept[known.key]

    def clear(self) -> None:
        """Forget all of them."""
        self._kept.clear()


def per_object(act: Callable[[Thing], Result]) -> Callable[[Thing], Result]:
    """Keep what a function gave for a thing for as long as that very thing lives, or until `forget`."""
    kept = PerObject(act)
    _forgetting.append(kept.clear)
    return kept


class Recent(dict[Keyed, Result]):
    """At most so many values; the one put first goes first."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: Keyed, value: Result) -> None:
        super().__setitem__(key, value)
        if len(self) > self._most:
            self.pop(next(iter(self)), None)


def until_forgotten(cache: Recent[Keyed, Result]) -> Recent[Keyed, Result]:
    """The same cache, emptied by `forget` as long as it lives."""
    known = ref(cache)
    _forgetting.append(lambda: None if (here := known()) is None else here.clear())
    return cache


def forget() -> None:
    """Forget every text."""
    for clear in _forgetting:
        clear()
