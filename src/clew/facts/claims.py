"""What a model said of a history: one claim a line, each with the nodes it is about, checked by code."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from dataclasses import replace as with_
from typing import Any


@dataclass(frozen=True, slots=True)
class Claim:
    """A line of a model's summary that stood up to the check. It is known, and nothing more: no rule, no task."""

    text: str
    cites: tuple[str, ...]  # ids of nodes; it is told where the last one is
    under: str = ""  # the model's own heading
    goes_on: bool = False  # it belongs to the entry before it


@dataclass(frozen=True, slots=True)
class Draft:
    """What a model made of some nodes; they need not be read again."""

    read: tuple[str, ...]  # ids of nodes
    claims: tuple[Claim, ...]
    model: str = ""
    spent: int = 0  # tokens
    cost: float | None = None  # US dollars
    dropped: tuple[tuple[str, str], ...] = ()  # lines that were not believed: why, and what they say
    trust: float = 1.0  # share of its lines that were
    faults: tuple[str, ...] = ()  # what went wrong on the way

    @property
    def rejected(self) -> int:
        """How many of its lines were not believed."""
        return len(self.dropped)

    def and_then(self, more: "Draft", untold: tuple[Claim, ...], unpaid: bool) -> "Draft":
        """This draft, of which some claims are not told yet, with another one of what came after it."""
        read = tuple(dict.fromkeys([*self.read, *more.read]))
        cost = None if self.cost is None or more.cost is None else self.cost + more.cost
        spent, cost = (self.spent + more.spent, cost) if unpaid else (more.spent, more.cost)
        return with_(more, read=read, claims=(*untold, *more.claims), spent=spent, cost=cost)

    @property
    def key(self) -> str:
        """By which an edit that was made with it knows it."""
        return f"{self.model} {len(self.read)} {self.read[-1] if self.read else ''} {self.spent}"


def to_json(claims: Iterable[Claim]) -> list[dict[str, Any]]:
    """Claims as an edit keeps them."""
    return [{k: v for k, v in asdict(c).items() if v} for c in claims]


def from_json(kept: Iterable[Mapping[str, Any]]) -> tuple[Claim, ...]:
    """Claims that an edit kept."""
    return tuple(Claim(c["text"], tuple(c["cites"]), c.get("under", ""), c.get("goes_on", False)) for c in kept)
