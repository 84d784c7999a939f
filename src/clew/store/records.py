"""What goes into a store and what comes out of it: plain values that every store shares."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from copy import copy
from dataclasses import dataclass, field, fields
from dataclasses import replace as with_
from typing import Any, Literal, Protocol

from clew.errors import Purged
from clew.items import Edit, Frame, Node, Scope

Method = Literal["auto", "llm"]  # who decides when to compact: clew, or the agent, with clew as its net
Cause = Literal["start", "compaction", "handoff", "fork", "task", "subagent", "import"]


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
    at: float = 0.0
    usage: Mapping[str, Any] | None = None  # tokens the provider reported: input, output, cache_read, cache_write


@dataclass(frozen=True, slots=True)
class Usage:
    """What the provider reported for the call at `seq`."""

    seq: int
    usage: Mapping[str, Any]
    cost: float | None = None  # dollars, where the price was known


Event = Said | ClientEdit | Began | Edit | Pin | Revert | Call | Usage


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


@dataclass(frozen=True, slots=True)
class Place:
    """A node of a branch's history: what it is and where it stands, without its body."""

    id: str
    content: str


@dataclass(slots=True)
class Fold:
    """A compaction: the session that it began, and the stand-ins it made."""

    session: str
    seq: int
    last: int  # its last edit
    said: int  # items, when it was made
    made: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Trace:
    """A branch replayed up to some event."""

    branch: str
    seq: int = 0  # of the next event
    said: list[Place] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    alias: dict[str, str] = field(default_factory=dict)  # a rewritten node to the first one it was
    pinned: frozenset[str] = frozenset()
    calls: list[tuple[int, int]] = field(default_factory=list)  # (sequence number, items said) of each call
    session: str | None = None
    patched: bool = False  # the client edited its history: ids no longer follow from position alone
    made: dict[str, list[tuple[Edit, int]]] = field(default_factory=dict)  # by content: edits, which of their stand-ins
    mended: dict[str, list[str]] = field(default_factory=dict)  # calls given up as unanswered: their stand-ins
    format: str = ""  # the history is written in, as of the last call
    frame: str = ""  # digest, of the last call
    reported: int = 0  # tokens that the provider counted in the last call, while nothing was edited since
    made_in: dict[str, str] = field(default_factory=dict)  # stand-ins of before a switch: the format of that time
    gone: set[str] = field(default_factory=set)
    loose: set[str] = field(default_factory=set)
    folds: list[Fold] = field(default_factory=list)
    folding: bool = False  # the edits that come now are those of the last fold
    held: set[str] = field(default_factory=set)  # in view again because somebody undid their fold
    undone: list[Edit] = field(default_factory=list)  # a host may still send their stand-ins

    def copy(self) -> "Trace":
        """The same branch, to try something on: events that happen to the copy do not happen to this one."""
        own = {f.name: copy(getattr(self, f.name)) for f in fields(self)}
        own["made"] = {content: list(edits) for content, edits in self.made.items()}
        own["mended"] = {call: list(ids) for call, ids in self.mended.items()}
        own["folds"] = [with_(f, made=list(f.made)) for f in self.folds]
        return Trace(**own)

    def pins(self) -> frozenset[str]:
        """The pinned nodes, and what the client made of them."""
        return self.pinned | {new for new, old in self.alias.items() if old in self.pinned}

    def add(self, edit: Edit) -> None:
        """Let an edit happen."""
        self.edits.append(edit)
        self.reported = 0
        if self.folding:
            self.folds[-1].made += [n.id for n in edit.stand_ins]
            self.folds[-1].last = self.seq
        self._recognise(edit)
        if call := edit.evidence.get("call"):
            self.mended.setdefault(call, []).extend(n.id for n in edit.stand_ins)

    def call(self, seq: int, said: int, format: str, frame: str) -> None:
        """Let a call be made."""
        self.calls.append((seq, said))
        self.format, self.frame, self.folding, self.reported = format, frame, False, 0

    def report(self, seq: int, usage: Mapping[str, Any]) -> None:
        """Let the provider say what a call came to."""
        if self.calls and self.calls[-1][0] == seq:
            self.reported = usage.get("input", 0)

    def begin(self, session: str) -> None:
        """Let a session begin with the edits that follow."""
        self.folds.append(Fold(session, self.seq, self.seq, len(self.said)))
        self.folding = True

    def switch(self, to: Switch) -> None:
        """Let the history be written in another format from here on."""
        for edit in self.edits:
            for node in edit.stand_ins:
                self.made_in.setdefault(node.id, self.format)
        self.format = to.format
        self.gone.update(to.gone)
        self.loose.update(to.loose)

    def revert(self, event: Revert) -> None:
        """Let the edits that made these stand-ins no longer apply."""
        gone = set(event.ids)
        edits, self.folding, self.reported = self.edits, False, 0
        self.edits, self.made, self.mended = [], {}, {}
        for edit in edits:
            if gone.isdisjoint(n.id for n in edit.stand_ins):
                self.add(edit)
            elif event.sessions:
                self.undone.append(edit)
        for edit in self.undone:
            self._recognise(edit)
        self.held.update(event.held)

    def _recognise(self, edit: Edit) -> None:
        for n, node in enumerate(edit.stand_ins):
            self.made.setdefault(node.content, []).append((edit, n))


@dataclass(frozen=True, slots=True)
class Found:
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
    seq: int  # of its first event
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


@dataclass(frozen=True, slots=True)
class Row:
    """An event in columns; `old` and `new` are ids."""

    kind: str
    start: int | None = None
    stop: int | None = None
    old: Sequence[str] = ()
    new: Sequence[str] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of a branch as it lies in the log."""

    seq: int
    at: float
    row: Row


class Store(Protocol):
    """The log. Every call takes the scope: hashing is not access control."""

    secret: bytes

    async def write(self, scope: Scope, batch: Batch) -> None: ...
    async def find(self, scope: Scope, chains: Sequence[str]) -> list[Found]: ...
    async def alike(self, scope: Scope, contents: Sequence[str]) -> str | None: ...
    async def session(self, scope: Scope, session: str) -> str | None: ...
    async def load(self, scope: Scope, branch: str, until: int | None = None) -> Trace: ...
    async def catch_up(self, scope: Scope, trace: Trace) -> set[str]: ...
    async def nodes(self, scope: Scope, ids: Sequence[str]) -> dict[str, Node]: ...
    async def frame(self, scope: Scope, digest: str) -> Frame: ...
    async def originals(self, scope: Scope, id: str) -> list[Node]: ...
    async def resolve(self, scope: Scope, short: str) -> list[str]: ...
    async def purged(self, scope: Scope, short: str) -> Purged | None: ...
    async def search(self, scope: Scope, text: str, among: Sequence[str] | None, limit: int) -> list[str]: ...
    async def places(self, scope: Scope, contents: Sequence[str]) -> list[tuple[str, str]]: ...
    async def ancestry(self, scope: Scope, branch: str) -> list[tuple[str, int]]: ...
    async def calls(self, scope: Scope, branch: str) -> list[Call]: ...
    async def events(self, scope: Scope, branch: str, until: int | None = None) -> list[Happened]: ...
    async def branches(self, scope: Scope) -> list[BranchInfo]: ...
    async def sessions(self, scope: Scope, branch: str | None = None) -> list[Session]: ...
    async def label(
        self, scope: Scope, branch: str, tags: Sequence[str] | None = None, archived: bool | None = None
    ) -> None: ...
    async def learn(self, scope: Scope, kind: str, name: str, value: Mapping[str, Any]) -> None: ...
    async def learned(self, scope: Scope, kind: str) -> dict[str, dict[str, Any]]: ...
    def alone(self, scope: Scope, branch: str) -> AbstractAsyncContextManager[None]: ...
    async def close(self) -> None: ...
