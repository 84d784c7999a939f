"""Two windows of one conversation side by side: what left in between, what came in, what stands in for what."""

from collections.abc import Sequence
from dataclasses import dataclass

from clew.sessions.composition import Shown


@dataclass(frozen=True, slots=True)
class Compared:
    """What stands in one of two windows alone, in the order in which it stands there; and how much in both."""

    left: Sequence[Shown]
    new: Sequence[Shown]
    stayed: int  # items
    kept: int  # tokens of those

    @property
    def lost(self) -> int:
        """Tokens that left."""
        return sum(one.tokens for one in self.left)

    @property
    def gained(self) -> int:
        """Tokens that came in."""
        return sum(one.tokens for one in self.new)


def compared(before: Sequence[Shown], after: Sequence[Shown]) -> Compared:
    """What is in one of them alone."""
    was, now = {one.node.id for one in before}, {one.node.id for one in after}
    stay = [one.tokens for one in after if one.node.id in was]
    left = [one for one in before if one.node.id not in now]
    return Compared(left, [one for one in after if one.node.id not in was], len(stay), sum(stay))
