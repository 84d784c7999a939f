"""The edits of a view in their order, and which of them made a node: looked up, so that nobody goes through all."""

from collections.abc import Iterable, Mapping
from typing import Self

from clew.core.items import Edit


class Edits(tuple[Edit, ...]):
    """Edits, the oldest first."""

    made: Mapping[str, Edit]  # by stand-in; made twice: the last time
    moved: Mapping[str, tuple[Edit, ...]]  # by node: the edits that put something beside it

    def __new__(cls, edits: Iterable[Edit] = ()) -> Self:
        """These edits."""
        return cls._of((), edits, {}, {})

    def plus(self, new: Iterable[Edit]) -> "Edits":
        """These, and then others."""
        return self._of(self, new, dict(self.made), dict(self.moved))

    @classmethod
    def _of(
        cls, old: tuple[Edit, ...], new: Iterable[Edit], made: dict[str, Edit], moved: dict[str, tuple[Edit, ...]]
    ) -> Self:
        new = tuple(new)
        for edit in new:
            was = set(edit.old)
            for node in edit.new:
                if node.id in was:
                    moved[node.id] = (*moved.get(node.id, ()), edit)
                else:
                    made[node.id] = edit
        self = super().__new__(cls, (*old, *new))
        self.made, self.moved = made, moved
        return self


NO_EDITS = Edits()
