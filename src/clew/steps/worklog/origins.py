"""Whose words how things stand tells: the ids of the nodes that say them. What is changed there is told no more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

WORDS_OF_OTHERS = ("refusals", "tasks", "errors", "running", "files", "commands")
KeysTold = Mapping[str, Sequence[str]]  # of each kind of thing, the keys of those that are told, in their order


@dataclass(slots=True)
class Origins:
    """Of each thing that is told, the ids of the nodes that it is from; of what an earlier version told, none."""

    ids: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)  # by kind and key

    def put(self, kind: str, key: str, ids: Sequence[str]) -> None:
        """A thing is from these, and from no others."""
        self.ids.setdefault(kind, {})[key] = tuple(ids)

    def add(self, kind: str, key: str, ids: Sequence[str]) -> None:
        """A thing is from these, too."""
        self.put(kind, key, list(dict.fromkeys([*self._of(kind, key), *ids])))

    def of(self, told: KeysTold) -> set[str]:
        """The ids behind all of these."""
        return {id for kind, keys in told.items() for key in keys for id in self._of(kind, key)}

    def _of(self, kind: str, key: str) -> tuple[str, ...]:
        return self.ids.get(kind, {}).get(key, ())

    def to_json(self, told: KeysTold) -> dict[str, Any]:
        """Those of these things, in their order: what is no longer told is left out."""
        return {kind: [list(self._of(kind, key)) for key in keys] for kind, keys in told.items()}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any], told: KeysTold) -> Self:
        """As they were kept beside these things."""
        found = cls()
        for kind, keys in told.items():
            for key, ids in zip(keys, kept.get(kind, ()), strict=False):
                found.put(kind, key, ids)
        return found
