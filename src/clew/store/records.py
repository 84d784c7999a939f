"""What goes into a store and what comes out of it: plain values that every store shares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from clew.core.items import Edit, Frame, Item, Node
from clew.facts.chapters import Chapter

Method = Literal["auto", "llm"]  # who decides when to compact: clew, or the agent, with clew as its net
# `beside`: under the name of another conversation, of which nothing more is known: it sees nothing of that one.
Cause = Literal["start", "compaction", "handoff", "fork", "task", "subagent", "import", "beside"]

# Stands in a node for a body that was not read, and is told by identity: whoever needs the body asks `Store.nodes`.
ABSENT = Item("opaque", "system")


@dataclass(frozen=True, slots=True)
class Said:
    """Nodes were appended to the history."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Switch:
    """From here on the history is written in another format, as another provider takes it."""

    format: str
    gone: tuple[str, ...] = ()  # nodes that were not written again: another provider's reasoning and signatures
    loose: tuple[str, ...] = ()  # nodes that were not there before, for the same reason


@dataclass(frozen=True, slots=True)
class ClientEdit:
    """The client itself put `nodes` where its items from `start` to before `stop` were.

    `alias` names those of the new nodes that are a rewrite of an old one (decorated, trimmed): edits of it still hold.
    """

    start: int
    stop: int
    nodes: tuple[Node, ...]
    alias: Mapping[str, str] = field(default_factory=dict)
    switch: Switch | None = None  # the whole history was written anew


@dataclass(frozen=True, slots=True)
class Pin:
    """Nodes that no edit may replace from here on; `off` takes the pin away."""

    ids: tuple[str, ...]
    off: bool = False


@dataclass(frozen=True, slots=True)
class Began:
    """The session ended here, and its child began: what follows is the child's."""

    session: str
    cause: Cause
    method: str  # who decided it: auto, manual, llm; or whose file it was in


@dataclass(frozen=True, slots=True)
class Revert:
    """The edits that made these stand-ins no longer apply."""

    ids: tuple[str, ...]
    held: tuple[str, ...] = ()  # what is in view again, and not to be folded again while there is room
    sessions: tuple[str, ...] = ()  # whose beginning was undone


@dataclass(frozen=True, slots=True)
class Call:
    """What was really sent."""

    branch: str
    seq: int
    frame: str  # digest
    model: str
    format: str
    digest: str  # of the frame and of all nodes sent, cache marks apart
    said: int  # items in the history
    predicted: int  # tokens
    limit: int  # tokens that were allowed
    exact: bool  # whether the count is the provider's own, or an estimate
    cached: int = 0  # tokens of it that the call before it sent too, at its beginning
    shadow: Mapping[str, Any] | None = None  # what a compaction would have done, had it been allowed
    due: Mapping[str, Any] | None = None  # why there was one or was none, and the figures by which that was decided
    window: int = 0  # tokens that its model reads and writes, as was known then; 0: an older version wrote it
    at: float = 0.0
    usage: Mapping[str, Any] | None = None  # tokens the provider reported: input, output, cache_read, cache_write


UNSENT = "unsent"  # the tokens of a call that nobody answered, as its only report


@dataclass(frozen=True, slots=True)
class Usage:
    """What the provider reported for the call at `seq`."""

    seq: int
    usage: Mapping[str, Any]
    cost: float | None = None  # dollars, where the price was known


NamedValue = tuple[str, str, Mapping[str, Any]]  # a kind, a name, and the value: as `Store.learn` takes them

Event = Said | ClientEdit | Began | Edit | Pin | Revert | Call | Usage | Chapter


@dataclass(frozen=True, slots=True)
class Fork:
    """Where a branch comes from."""

    parent: str
    seq: int


@dataclass(frozen=True, slots=True)
class Origin:
    """Why a branch begins, and in which conversation, whose events it does not have."""

    cause: Cause
    parent: str | None = None  # a branch, or any session of it
    seq: int | None = None  # the event of that branch which it comes after; None: all there is


@dataclass(frozen=True, slots=True)
class Batch:
    """All that one turn writes, in one transaction."""

    branch: str
    seq: int  # of the first event
    events: tuple[Event, ...]
    opened: bool = False  # the branch begins with this batch
    fork: Fork | None = None
    session: str | None = None
    heads: tuple[str, ...] = ()
    frames: tuple[tuple[str, Frame], ...] = ()  # with their digests
    origin: Origin | None = None
    times: tuple[float, ...] = ()  # when each event happened, if not now
    begun: float | None = None  # when the branch was opened, if not now
    learned: tuple[NamedValue, ...] = ()  # what is put under names in the same moment


class Place(NamedTuple):  # and no dataclass: a long history has very many
    """A node of a branch's history: what it is and where it stands, without its body."""

    id: str
    content: str


@dataclass(frozen=True, slots=True)
class KnownHead:
    """A known history that an incoming one extends: its branch and how many of the digests asked for it covers."""

    branch: str
    seq: int
    known: int


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """A branch as a line in a listing."""

    id: str
    session: str | None
    parent: str | None
    cause: str
    at: float
    calls: int
    parent_seq: int | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A stretch of a branch, from one compaction to the next, and what it came to."""

    id: str  # the first one of a branch has the branch's
    branch: str
    seq: int  # of its first event, which is that of the next one if nothing happened in it
    number: int  # on its branch, from 1
    name: str | None  # the host's name for the conversation
    parent: str | None  # a session
    parent_seq: int | None  # the last event of the parent's branch that came before it
    cause: str
    method: str
    at: float
    ended: float | None = None
    ended_by: str | None = None
    undone: float | None = None  # when the compaction it began with was taken back
    model: str = ""  # of its last call
    items: int = 0  # said
    calls: int = 0
    sent: int = 0  # tokens, by our count
    input: int = 0  # tokens, as reported; cached ones are among them
    output: int = 0
    cached: int = 0
    cost: float = 0.0  # dollars
    tags: tuple[str, ...] = ()  # of its branch
    archived: float | None = None

    @property
    def is_folded(self) -> bool:
        """Whether it began with a compaction, or with its agent's summary, that was not taken back."""
        return self.cause in ("compaction", "handoff") and not self.undone


class StoreState(NamedTuple):
    """How far a scope, or a branch, has come: another one once anything has changed."""

    purges: int  # another one once something in the scope was purged
    sums: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event in columns; `old` and `new` are ids."""

    kind: str
    start: int | None = None
    stop: int | None = None
    old: Sequence[str] = ()
    new: Sequence[str] = ()
    note: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of a branch as it lies in the log."""

    seq: int
    at: float
    row: EventRow
