"""What a model said of a history: one claim a line, each with the nodes it is about, checked and merged by code."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from dataclasses import replace as with_
from typing import Any, Literal, get_args

Section = Literal["constraints", "tasks", "decisions", "findings", "errors", "questions", "next"]
SECTIONS: tuple[Section, ...] = get_args(Section)
DIRECTIVE: frozenset[Section] = frozenset(
    {"constraints", "tasks", "decisions", "questions", "next"}
)  # the agent acts on
STATES = ("done", "in progress", "blocked", "open")
MOST = 100  # claims that are kept of a section, the newest


@dataclass(frozen=True, slots=True)
class Claim:
    """A line of a model's summary that stood up to the check."""

    section: Section
    text: str
    cites: tuple[str, ...]  # ids of nodes, in the order of the history
    state: str = ""  # of a task
    about: int = -1  # the place of an earlier claim that this one replaces
    stale: bool = False  # it only says that the earlier one no longer holds
    under: str = ""  # the model's own heading
    goes_on: bool = False  # it belongs to the entry before it


@dataclass(frozen=True, slots=True)
class Draft:
    """What a model made of some nodes; they need not be read again."""

    read: tuple[str, ...]  # ids of nodes
    claims: tuple[Claim, ...]  # all that hold now, those from before among them
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

    @property
    def key(self) -> str:
        """By which an edit that was made with it knows it."""
        return f"{self.model} {len(self.read)} {self.read[-1] if self.read else ''} {self.spent}"


def merged(earlier: Sequence[Claim], new: Iterable[Claim], order: Mapping[str, int]) -> tuple[Claim, ...]:
    """The claims that hold after some were added; `order` is the place of each node in the history.

    A new claim replaces the one it is about, or one of the same words. Work that is done stays done unless something
    later than its evidence says otherwise.
    """
    held: list[Claim | None] = list(earlier)
    places = {_key(c): i for i, c in enumerate(earlier)}
    for claim in new:
        at = claim.about if 0 <= claim.about < len(earlier) else places.get(_key(claim), -1)
        old = held[at] if at >= 0 else None
        if old is not None and old.section == claim.section:
            if old.state == "done" and claim.state != "done" and _last(claim, order) <= _last(old, order):
                continue
            held[at] = None
        if not claim.stale:
            places[_key(claim)] = len(held)
            held.append(with_(claim, about=-1))
    kept = [c for c in held if c is not None]
    return tuple(c for section in SECTIONS for c in [c for c in kept if c.section == section][-MOST:])


def _key(claim: Claim) -> tuple[str, str]:
    return claim.section, " ".join(claim.text.lower().split()).rstrip(".")


def _last(claim: Claim, order: Mapping[str, int]) -> int:
    return max((order.get(id, -1) for id in claim.cites), default=-1)


def to_json(claims: Iterable[Claim]) -> list[dict[str, Any]]:
    """Claims as an edit keeps them."""
    return [{k: v for k, v in asdict(c).items() if k not in ("about", "stale") and v} for c in claims]


def from_json(kept: Iterable[Mapping[str, Any]]) -> tuple[Claim, ...]:
    """Claims that an edit kept."""
    return tuple(Claim(**{**c, "cites": tuple(c["cites"])}) for c in kept)
