"""A branch replayed: what its events, one after the other, have made of it."""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, fields
from dataclasses import replace as with_
from typing import Any

from clew.core.items import PINS, Edit, Node, frozen
from clew.facts.chapters import Chapter
from clew.store.records import ABSENT, Began, Call, ClientEdit, Event, Pin, Place, Revert, Said, Switch, Usage


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
    predicted: int = 0  # tokens that it was thought the last call would come to
    reported: int = 0  # tokens that the provider counted in the last call, while nothing was edited since
    model: str = ""  # of the last call
    window: int = 0  # tokens that it reads and writes
    limit: int = 0  # and those that were allowed
    made_in: dict[str, str] = field(default_factory=dict)  # stand-ins of before a switch: the format of that time
    gone: set[str] = field(default_factory=set)
    loose: set[str] = field(default_factory=set)
    folds: list[Fold] = field(default_factory=list)
    folding: bool = False  # the edits that come now are those of the last fold
    held: set[str] = field(default_factory=set)  # in view again because somebody undid their fold
    quoted: dict[str, str] = field(default_factory=dict)  # stand-ins that quote what was pinned out of view, and what
    chapters: list[Chapter] = field(default_factory=list)  # that models wrote: the newest of the same nodes counts
    undone: list[Edit] = field(default_factory=list)  # a host may still send their stand-ins
    purges: int = field(default=0, compare=False)  # that there were in its scope when it was read

    def copy(self) -> "Trace":
        """The same branch, to try something on: events that happen to the copy do not happen to this one."""
        own = {f.name: copy(getattr(self, f.name)) for f in fields(self)}
        own["made"] = {content: list(edits) for content, edits in self.made.items()}
        own["mended"] = {call: list(ids) for call, ids in self.mended.items()}
        own["folds"] = [with_(f, made=list(f.made)) for f in self.folds]
        return Trace(**own)

    def pins(self) -> frozenset[str]:
        """The pinned nodes, what the client made of them, and what quotes them."""
        if not self.pinned:
            return self.pinned
        again = self.alias | self.quoted
        return self.pinned | {new for new, old in again.items() if old in self.pinned}

    def add(self, edit: Edit) -> None:
        """Let an edit happen."""
        edit = bare(edit)
        self.edits.append(edit)
        self.reported = 0
        if held := edit.evidence.get(PINS):
            self.quoted |= zip((n.id for n in edit.stand_ins), held, strict=True)
        if self.folding:
            self.folds[-1].made += [n.id for n in edit.stand_ins]
            self.folds[-1].last = self.seq
        self.recognise(edit)
        if call := edit.evidence.get("call"):
            self.mended.setdefault(call, []).extend(n.id for n in edit.stand_ins)

    def call(self, call: Call) -> None:
        """Let a call be made."""
        self.calls.append((self.seq, call.said))
        self.format, self.frame, self.folding = call.format, call.frame, False
        self.predicted, self.reported = call.predicted, 0
        self.model, self.window, self.limit = call.model, call.window, call.limit

    def report(self, seq: int, usage: Mapping[str, Any]) -> None:
        """Let the provider say what a call came to."""
        if self.calls and self.calls[-1][0] == seq:
            self.reported = usage.get("input") or 0

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
        self.edits, self.made, self.mended, self.quoted = [], {}, {}, {}
        for edit in edits:
            if gone.isdisjoint(n.id for n in edit.stand_ins):
                self.add(edit)
            elif event.sessions:
                self.undone.append(edit)
        for edit in self.undone:
            self.recognise(edit)
        self.held.update(event.held)

    def recognise(self, edit: Edit) -> None:
        """Know the stand-ins of an edit when somebody sends them."""
        for n, node in enumerate(edit.stand_ins):
            self.made.setdefault(node.content, []).append((edit, n))


def bare(edit: Edit) -> Edit:
    """An edit without words, as it is read from the log: memory holds those in view, and no others."""
    if all(node.item is ABSENT for node in edit.new):
        return edit
    new = tuple(Node(node.id, node.content, ABSENT) for node in edit.new)
    return with_(edit, new=new, evidence=frozen(edit.evidence))


def apply(trace: Trace, *events: Event) -> None:
    """Let events happen to a branch: the same now, to one in memory, as later, when it is read from the log."""
    for event in events:
        match event:
            case Said(nodes):
                trace.folding = False
                trace.said += [Place(n.id, n.content) for n in nodes]
            case ClientEdit(start, stop, nodes, alias, switch):
                trace.said[start:stop] = [Place(n.id, n.content) for n in nodes]
                trace.patched = True
                trace.alias |= alias
                if switch:
                    trace.switch(switch)
            case Began(session):
                trace.begin(session)
            case Edit(old=old):
                trace.held.difference_update(old)
                trace.add(event)
            case Chapter():
                trace.chapters.append(event)
            case Pin(ids, off):
                trace.pinned = trace.pinned - set(ids) if off else trace.pinned | set(ids)
            case Revert():
                trace.revert(event)
            case Call():
                trace.call(event)
            case Usage(seq, usage):
                trace.report(seq, usage)
        trace.seq += 1
