"""Conversations that `exports.py` wrote, back into a store: this one, another one, another scope."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_
from typing import Any

from clew.core import rawjson
from clew.core.items import Digests, Edit, Frame, Node, Scope
from clew.core.view import fold
from clew.errors import BadRequest, ClewError, Conflict
from clew.recognition.recognise import first_branch
from clew.sessions.export_log import EXPORT_VERSION
from clew.sessions.import_schema import BRANCH, EVENT, FRAME_FIELDS, ITEM, NODE, NOTE_FIELDS, expect, string
from clew.store.packing import unpack_item
from clew.store.protocol import Store
from clew.store.records import ABSENT, Batch, Began, Call, ClientEdit, Event, EventRow, Fork, Origin, Revert, Said
from clew.store.rows import event_of
from clew.store.trace import Trace, apply
from clew.store.upkeep import Progress


@dataclass(slots=True)
class _Branch:
    """A branch as its lines say."""

    id: str
    name: str | None
    cause: Any
    at: float
    parent: str | None
    parent_seq: int | None
    after: str | None  # a session
    tags: Sequence[str]
    archived: bool
    rows: list[tuple[int, float, EventRow]] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The number of the event that would come next."""
        return (0 if self.parent is None else (self.parent_seq or 0) + 1) + len(self.rows)


@dataclass(slots=True)
class _File:
    """What was read: every reference is to something that stood before it."""

    digests: Digests
    branches: dict[str, _Branch] = field(default_factory=dict)
    sessions: set[str] = field(default_factory=set)
    items: list[tuple[str, str, bytes]] = field(default_factory=list)
    nodes: dict[str, Node] = field(default_factory=dict)
    frames: list[tuple[str, Frame]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)  # branches and sessions that get another id here
    whole: bool = False

    def rename(self, branch: _Branch, to: str) -> None:
        """Give a branch another id, and its sessions, too."""
        self.names[branch.id] = to
        for seq, _, row in branch.rows:
            if row.kind == "session":
                session = (row.note or {})["session"]
                self.names[session] = self.digests.link("session", (to, str(seq)))[:16]

    def read(self, line: Mapping[str, Any]) -> None:
        match line:
            case {"branch": str(id), **rest}:
                expect(line, BRANCH, "branch")
                self._open(_Branch(id, **rest))
            case {"node": str(id), "item": int(number), "opens": opens}:
                expect(line, NODE, "node")
                kind, role, data = self.items[number]
                item = unpack_item(opens, kind, role, 0, data)
                self.nodes[id] = Node(id, self.digests.content(item), item)
            case {"item": int(), "kind": str(kind), "role": str(role), **fields}:
                expect(line, ITEM, "item")
                self.items.append((kind, role, rawjson.dumps(fields)))
            case {"frame": int(), "lead": lead, "tools": tools, **fields}:
                expect(line, FRAME_FIELDS, "frame")
                frame = Frame(**rawjson.with_bytes(fields), lead=tuple(lead), tools=tuple(tools))
                self.frames.append((self.digests.frame(frame), frame))
            case {"event": int(seq), "at": int() | float() as at, "kind": str(kind)} if self.branches:
                self._event(next(reversed(self.branches.values())), seq, at, kind, line)
            case {"end": int(count)}:
                self.whole = count == len(self.branches)
            case _:
                raise BadRequest(f"not a line of a clew export: {', '.join(map(str, line))[:100]}")

    def _open(self, branch: _Branch) -> None:
        parent = self.branches.get(branch.parent or "")
        if branch.parent and (parent is None or not 0 <= (branch.parent_seq or 0) < parent.end):
            raise BadRequest(f"branch {branch.id} forks from a branch that is not before it in the file")
        if branch.after and branch.after not in self.sessions:
            raise BadRequest(f"branch {branch.id} follows a session that is not before it in the file")
        self._begin(branch.id)
        self.branches[branch.id] = branch

    def _begin(self, session: str) -> None:
        if session in self.sessions:
            raise BadRequest(f"session {session} begins twice")
        self.sessions.add(session)

    def _event(self, branch: _Branch, seq: int, at: float, kind: str, line: Mapping[str, Any]) -> None:
        if seq != branch.end:
            raise BadRequest(f"expected event {branch.end}, got {seq}")
        expect(line, {**EVENT, "note": NOTE_FIELDS.get(kind, string)}, f"an event of kind {kind[:20]!r}")
        if kind == "usage" and line.get("start", 0) >= seq:
            raise BadRequest("a usage report comes before its call")
        old, new = (tuple(line.get(key, ())) for key in ("old", "new"))
        if missing := next((id for id in new if id not in self.nodes), None):
            raise BadRequest(f"node {missing} is missing")
        note: Any = line.get("note")
        if kind == "session":
            self._begin(note["session"])
        if kind == "call":
            note = {**note, "frame": self.frames[note["frame"]][0]}
        branch.rows.append((seq, at, EventRow(kind, line.get("start"), line.get("stop"), old, new, note)))

    def past(self, branch: _Branch, until: int | None = None) -> list[Event]:
        """The events of a branch, those that it has from its parents first."""
        line = [(branch, branch.end if until is None else until)]
        while (at := line[-1][0]).parent:
            line.append((self.branches[at.parent], min(at.parent_seq or 0, line[-1][1])))
        rows = ((b.id, seq, row) for b, last in reversed(line) for seq, _, row in b.rows if seq <= last)
        return [event_of(row, id, seq, self.nodes.__getitem__) for id, seq, row in rows]


async def take_in(
    store: Store, scope: Scope, lines: Iterable[bytes], name: str | None = None, progress: Progress | None = None
) -> list[str]:
    """Write exported conversations to a store; the branches that are new in it, the ones asked for last.

    With `name`, the last one gets that name: so a conversation can be beside itself.
    """
    file = _parsed(lines, Digests(store.secret, scope))
    here = {b.id for b in await store.branches(scope)}
    last = next(reversed(file.branches.values()))
    if name is not None:
        last.name = name
        file.rename(last, await first_branch(store, scope, file.digests, name))
    made = []
    for done, branch in enumerate(file.branches.values()):
        if progress:
            progress(done, len(file.branches))
        elsewhere = file.digests.link(branch.id, ("import",))[:16]
        if elsewhere in here and branch.id not in file.names:
            file.rename(branch, elsewhere)
        if file.names.get(branch.id, branch.id) in here:
            await _go_on(store, scope, branch, file)
            await _label(store, scope, branch, file)
            continue
        try:
            await store.write(scope, _batch(file, branch))
        except Conflict:  # another scope of this store has it under its own name
            file.rename(branch, elsewhere)
            await store.write(scope, _batch(file, branch))
        made.append(file.names.get(branch.id, branch.id))
        await store.label(scope, made[-1], branch.tags, branch.archived or None)
    return made


def _parsed(lines: Iterable[bytes], digests: Digests) -> _File:
    file = _File(digests)
    for number, line in enumerate(lines, 1):
        try:
            value = rawjson.loads(line)
            if number == 1:
                _expect_header(value)
            else:
                file.read(value)
        except ClewError as error:
            raise BadRequest(f"line {number}: {error}") from None
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise BadRequest(f"line {number}: not a line of a clew export ({type(error).__name__}: {error})") from None
    if not file.branches:
        raise BadRequest("no conversation found: expected a clew export")
    if not file.whole:
        raise BadRequest("the file is truncated: its end is missing; export or copy it again")
    return file


def _expect_header(value: Any) -> None:
    if not isinstance(value, dict) or "clew" not in value:
        raise BadRequest("not a clew export: the first line must name its version")
    if value["clew"] != EXPORT_VERSION:
        raise BadRequest(
            f"written by another clew (export version {value['clew']}, this one reads {EXPORT_VERSION}); upgrade clew"
        )


async def _label(store: Store, scope: Scope, branch: _Branch, file: _File) -> None:
    """Give a branch that is here its tags, if it has none: the import that wrote it may have been cut off before."""
    id = file.names.get(branch.id, branch.id)
    if branch.tags or branch.archived:
        listed = await store.sessions(scope, id)
        if not any(session.tags or session.archived for session in listed):
            await store.label(scope, id, branch.tags, branch.archived or None)


async def _go_on(store: Store, scope: Scope, branch: _Branch, file: _File) -> None:
    """Add what happened since to a branch that is here already. Raises `Conflict` where another thing happened here."""
    id = file.names.get(branch.id, branch.id)
    known = [(event.seq, event.row.kind, tuple(event.row.new)) for event in await store.events(scope, id)]
    told = [(seq, row.kind, tuple(row.new)) for seq, _, row in branch.rows]
    both = min(len(known), len(told))
    if known[:both] != told[:both]:
        raise Conflict(
            f"{branch.name or branch.id} already exists with different content; import it under another name"
        )
    if len(told) > both:
        whole = _batch(file, branch)
        rest, times = whole.events[both:], whole.times[both:]
        more = Batch(id, whole.seq + both, rest, heads=whole.heads, frames=whole.frames, times=times)
        await store.write(scope, more)


def _batch(file: _File, branch: _Branch) -> Batch:
    """All of a branch in one transaction, its calls with digests of this store."""
    events, heads = _rekeyed(file, branch)
    used = {event.frame for event in events if isinstance(event, Call)}
    fork = Fork(file.names.get(branch.parent, branch.parent), branch.parent_seq or 0) if branch.parent else None
    after = file.names.get(branch.after, branch.after) if branch.after else None
    return Batch(
        file.names.get(branch.id, branch.id),
        0 if fork is None else fork.seq + 1,
        tuple(events),
        opened=True,
        fork=fork,
        session=branch.name,
        heads=tuple(dict.fromkeys(heads)),
        frames=tuple((digest, frame) for digest, frame in dict(file.frames).items() if digest in used),
        origin=None if fork else Origin(branch.cause, after, branch.parent_seq),
        times=tuple(at for _, at, _ in branch.rows),
        begun=branch.at,
    )


def _rekeyed(file: _File, branch: _Branch) -> tuple[list[Event], list[str]]:
    """The events of a branch with digests of this store, and those of the histories and views it knew."""
    digests, trace = file.digests, Trace(branch.id)
    if branch.parent:
        apply(trace, *file.past(file.branches[branch.parent], branch.parent_seq))
    sent, said, stale = "", digests.run("", (p.content for p in trace.said)), True
    events: list[Event] = []
    heads: list[str] = []
    for seq, _, row in branch.rows:
        event = event_of(row, branch.id, seq, file.nodes.__getitem__)
        apply(trace, event)
        match event:
            case Said(nodes):
                sent, said = (digests.run(chain, (n.content for n in nodes)) for chain in (sent, said))
            case ClientEdit():
                said, stale = digests.run("", (p.content for p in trace.said)), True
            case Began(session):
                event = with_(event, session=file.names.get(session, session))
            case Revert(sessions=sessions):
                event, stale = with_(event, sessions=tuple(file.names.get(s, s) for s in sessions)), True
            case Edit():
                stale = True
            case Call():
                sent, stale = _sent(digests, trace) if stale else sent, False
                event = with_(event, digest=digests.link(event.frame, (sent,)))
                heads += [sent, said]
        events.append(event)
    return events, heads


def _sent(digests: Digests, trace: Trace) -> str:
    said = [Node(p.id, p.content, ABSENT) for p in trace.said]
    nodes = fold(said, trace.edits, trace.alias, trace.gone, trace.loose)
    return digests.run("", (n.content for n in nodes))
