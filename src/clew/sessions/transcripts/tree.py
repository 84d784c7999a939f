"""Entries that name the one before them: the conversation that goes on, and those that were left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


class TreeEntry(NamedTuple):
    """A record with a place in a tree."""

    id: str
    parent: str | None  # None: it begins something
    value: Mapping[str, Any]
    line: int


@dataclass(frozen=True, slots=True)
class TreeBranch:
    """Entries that the conversation does not go through, up to where nothing follows."""

    at: int  # the entry it leaves from, -1 for none
    entries: list[int]


def parents(entries: Sequence[TreeEntry]) -> list[int]:
    """For each entry the place of the one before it, -1 for none; what names an unknown one follows its neighbour."""
    if all(entry.parent is None for entry in entries):
        return list(range(-1, len(entries) - 1))  # a file without links is a file in order
    places: dict[str, int] = {}
    found = []
    for i, entry in enumerate(entries):
        found.append(-1 if entry.parent is None else places.get(entry.parent, i - 1))
        places.setdefault(entry.id, i)
    return found


def branches(entries: Sequence[TreeEntry]) -> tuple[list[int], list[TreeBranch]]:
    """The places of the way to the newest entry, and the branches beside it, oldest first."""
    before = parents(entries)
    way = _up(before, len(entries) - 1, set())
    on_way = set(way)
    inner = set(before)
    left = []
    for leaf in range(len(entries)):
        if leaf not in inner and leaf not in on_way:
            up = _up(before, leaf, on_way)
            left.append(TreeBranch(before[up[0]], up))
    return way, left


def _up(before: Sequence[int], leaf: int, stop: set[int]) -> list[int]:
    way = []
    while leaf >= 0 and leaf not in stop:
        way.append(leaf)
        leaf = before[leaf]
    return way[::-1]
