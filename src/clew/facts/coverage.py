"""The ledger of a compaction: every fact that left is in view elsewhere, can be recalled, or is flagged."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from clew.core.items import SHORT, Node
from clew.core.pointers import pointer
from clew.facts.sheets import sheet
from clew.facts.worth import FactTrace, trace, worths

State = Literal["in view", "recallable", "flagged"]
STATES: tuple[State, ...] = ("in view", "recallable", "flagged")
NOTED = 40  # facts an edit keeps
GONE = ("[purged ", "[secret: ")  # what stands where an original was taken away on purpose


class Fate(NamedTuple):
    """What became of a fact."""

    fact: str
    worth: float  # how likely the agent is to need it again
    state: State
    id: str  # by which it can be recalled


class CoverageLedger(NamedTuple):
    """The fates of all facts behind stand-ins, those of most worth first."""

    fates: tuple[Fate, ...]

    def count(self, state: State) -> int:
        return sum(f.state == state for f in self.fates)

    def missing(self) -> tuple[Fate, ...]:
        """What is not in view, of most worth first."""
        return tuple(f for f in self.fates if f.state != "in view")


def ledger(hidden: Sequence[Node], words: Collection[str]) -> CoverageLedger:
    """What became of each fact in `hidden` nodes, now that these words are in view."""
    traces, now = trace([sheet(n.item) for n in hidden])
    return ledger_of(hidden, traces, worths(traces, now), words)


def ledger_of(
    hidden: Sequence[Node], traces: Mapping[str, FactTrace], worth: Mapping[str, float], words: Collection[str]
) -> CoverageLedger:
    """The same, of nodes whose facts were traced and weighed before."""
    fates = []
    for fact in sorted(traces, key=lambda fact: (-worth[fact], fact)):
        holder = hidden[traces[fact].item]
        fates.append(Fate(fact, worth[fact], _state(fact, holder, words), holder.id[:SHORT]))
    return CoverageLedger(tuple(fates))


def words_in(nodes: Iterable[Node]) -> set[str]:
    """The facts that these nodes show."""
    return {fact for n in nodes for fact in sheet(n.item).facts}


def _state(fact: str, holder: Node, words: Collection[str]) -> State:
    if fact in words:
        return "in view"
    return "flagged" if holder.item.text.startswith(GONE) else "recallable"


def noted(found: CoverageLedger, most: int = NOTED) -> dict[str, Any]:
    """The ledger as an edit keeps it: counts, and where what is missing and worth most can be found; not its words."""
    missing = [[round(f.worth, 3), f.id] for f in found.missing()[:most]]
    return {state: found.count(state) for state in STATES} | {"missing": missing}


def lines(found: CoverageLedger, most: int) -> Iterator[str]:
    """The ledger in words: counts, then what is missing and worth most."""
    total = len(found.fates)
    yield f"{total:,} facts: " + ", ".join(f"{found.count(state):,} {state}" for state in STATES)
    for fate in found.missing()[:most]:
        yield f"{fate.worth:4.0%}  {fate.fact}  {fate.state}, {pointer(fate.id)}"
