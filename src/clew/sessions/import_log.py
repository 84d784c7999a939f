"""Conversations that `export_log.py` wrote, back into a store: this one, another one, another scope."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_
from typing import Any, get_args

from clew.core import rawjson
from clew.core.items import Digests, Edit, Frame, Kind, Node, Role, Scope
from clew.core.shapes import (
    Fields,
    anything,
    count,
    expect,
    flag,
    is_integer,
    list_of,
    name,
    node_id,
    number,
    one_of,
    perhaps,
    row,
    string,
    strings,
    text,
)
from clew.core.view import fold
from clew.errors import BadRequest, ClewError, Conflict
from clew.recognition.recognise import first_branch
from clew.sessions.export_log import EXPORT_VERSION
from clew.store.packing import SUMMARY, unpack_item
from clew.store.protocol import Store
from clew.store.records import ABSENT, Batch, Began, Call, ClientEdit, Event, EventRow, Fork, Origin, Revert, Said
from clew.store.rows import event_of
from clew.store.shapes import CAUSE, read_note
from clew.store.trace import Trace, apply
from clew.store.upkeep import Progress
from clew.wire.formats import FORMATS

ODD = "%d compactions have notes that this clew does not know; what they stand for is folded anew"


def is_format(value: Any) -> bool:
    """Whether there is a format of that name, perhaps a package's."""
    return isinstance(value, str) and value in FORMATS


BRANCH_LINE: Fields = {
    "branch": name,
    "name": perhaps(text),
    "cause": CAUSE,
    "at": number,
    "parent": perhaps(name),
    "parent_seq": perhaps(is_integer),
    "after": perhaps(name),
    "tags": strings,
    "archived": flag,
}
ITEM_LINE: Fields = {"kind": one_of(*get_args(Kind)), "role": one_of(*get_args(Role)), "text": string}
ITEM_LINE_MAYBE: Fields = {"name": string, "call_id": string, "wire": anything}
FRAME_LINE: Fields = {
    "format": is_format,
    "model": string,
    "lead": list_of(anything),
    "tools": list_of(anything),
    "body": anything,
    "system": string,
}
FRAME_LINE_MAYBE: Fields = {"served": string}
NODE_LINE: Fields = {"node": node_id, "item": count}
OPENING_PARTS = row(dict, bool)
EXPORT_AGAIN = "; export or copy it again"
EVENT_LINE: Fields = {"start": count, "stop": count, "old": list_of(node_id), "new": list_of(node_id), "note": anything}


@dataclass(slots=True)
class ExportBranch:
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
class ExportFile:
    """What was read: every reference is to something that stood before it."""

    digests: Digests
    branches: dict[str, ExportBranch] = field(default_factory=dict)
    sessions: set[str] = field(default_factory=set)
    items: list[tuple[str, str, bytes]] = field(default_factory=list)
    nodes: dict[str, Node] = field(default_factory=dict)
    frames: list[tuple[str, Frame]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)  # branches and sessions that get another id here
    odd: int = 0  # edits with notes that do not fit
    complete: bool = False

    def rename(self, branch: ExportBranch, to: str) -> None:
        """Give a branch another id, and its sessions, too."""
        self.names[branch.id] = to
        for seq, _, event in branch.rows:
            if event.kind == "session":
                session = (event.note or {})["session"]
                self.names[session] = self.digests.link("session", (to, str(seq)))[:16]

    def read(self, line: Mapping[str, Any]) -> None:
        match line:
            case {"branch": str(id), **rest}:
                expect(line, "branch", BRANCH_LINE)
                self._open(ExportBranch(id, **rest))
            case {"node": str(id), "item": int(number), "opens": opens}:
                expect(line, "node", NODE_LINE)
                if opens and opens != SUMMARY and not OPENING_PARTS(rawjson.loads(opens)):
                    raise BadRequest("node: opens is not what clew writes there")
                kind, role, data = self.items[number]
                item = unpack_item(opens, kind, role, 0, data)
                self.nodes[id] = Node(id, self.digests.content(item), item)
            case {"item": int(), "kind": str(kind), "role": str(role), **fields}:
                expect(line, "item", ITEM_LINE, ITEM_LINE_MAYBE)
                self.items.append((kind, role, rawjson.dumps(fields)))
            case {"frame": int(), "lead": lead, "tools": tools, **fields}:
                expect(line, "frame", FRAME_LINE, FRAME_LINE_MAYBE)
                frame = Frame(**rawjson.with_bytes(fields), lead=tuple(lead), tools=tuple(tools))
                self.frames.append((self.digests.frame(frame), frame))
            case {"event": int(seq), "at": int() | float() as at, "kind": str(kind)} if self.branches:
                self._event(next(reversed(self.branches.values())), seq, at, kind, line)
            case {"end": int(count)}:
                self.complete = count == len(self.branches)
            case _:
                raise BadRequest(f"not a line that `clew export` wrote: {', '.join(map(str, line))[:100]}")

    def _open(self, branch: ExportBranch) -> None:
        parent = self.branches.get(branch.parent or "")
        if branch.parent and (parent is None or not 0 <= (branch.parent_seq or 0) < parent.end):
            raise BadRequest(f"branch {branch.id} forks from a branch that is not before it in the file")
        if branch.after and branch.after not in self.sessions:
            raise BadRequest(f"branch {branch.id} follows a session that is not before it in the file")
        self._begin(branch.id)
        self.branches[branch.id] = branch

    def _begin(self, session: str) -> None:
        if not name(session):
            raise BadRequest("a session begins without an id")
        if session in self.sessions:
            raise BadRequest(f"session {session} begins twice")
        self.sessions.add(session)

    def _event(self, branch: ExportBranch, seq: int, at: float, kind: str, line: Mapping[str, Any]) -> None:
        if seq != branch.end:
            raise BadRequest(f"expected event {branch.end}, got {seq}")
        what = f"an event of kind {kind[:20]!r}"
        expect(line, what, {"at": number}, EVENT_LINE)
        if kind == "usage" and line.get("start", 0) >= seq:
            raise BadRequest("a usage report comes before its call")
        old, new = (tuple(line.get(key, ())) for key in ("old", "new"))
        if missing := next((id for id in new if id not in self.nodes), None):
            raise BadRequest(f"node {missing} is missing")
        note = line.get("note", {})
        if kind == "call":
            expect(note, what, {"frame": count})
            note = {**note, "frame": self.frames[note["frame"]][0]}
        read = read_note(kind, note, old, new)
        if read.wrong:
            raise BadRequest(f"{what}: {read.wrong[0]} is not what clew writes there")
        switch = note.get("switch")
        told = [one["format"] for one in (note, switch) if isinstance(one, dict) and "format" in one]
        if unknown := [one for one in told if not is_format(one)]:
            raise BadRequest(f"{what}: nobody knows the format {unknown[0]!r}")
        if kind == "session":
            self._begin(note["session"])
        if not all(map(name, note.get("sessions", ()))):
            raise BadRequest(f"{what}: sessions are not what clew writes there")
        self.odd += bool(read.odd)
        event = EventRow(kind, line.get("start"), line.get("stop"), old, new, read.note or None)
        event_of(event, branch.id, seq, self.nodes.__getitem__)  # or it raises what is wrong with it
        branch.rows.append((seq, at, event))

    def past(self, branch: ExportBranch, until: int | None = None) -> list[Event]:
        """The events of a branch, those that it has from its parents first."""
        rows = self._rows(branch, branch.end if until is None else until)
        return [event_of(row, id, seq, self.nodes.__getitem__) for id, seq, row in rows]

    def _rows(self, branch: ExportBranch, until: int) -> Iterator[tuple[str, int, EventRow]]:
        line = [(branch, until)]
        while (at := line[-1][0]).parent:
            line.append((self.branches[at.parent], min(at.parent_seq or 0, line[-1][1])))
        yield from ((b.id, seq, row) for b, last in reversed(line) for seq, _, row in b.rows if seq <= last)

    def check(self) -> None:
        """Raise `BadRequest` where the events of a branch cannot have happened one after the other."""
        for branch in self.branches.values():
            said, there, ever = list[str](), set[str](), set[str]()
            for id, seq, event in self._rows(branch, branch.end):
                if event.kind == "said":
                    said += event.new
                    there.update(event.new)
                elif event.kind == "client":
                    said[event.start or 0 : event.stop or 0] = event.new
                    there = set(said)
                elif event.kind == "edit" and not ever.issuperset(event.old):
                    raise BadRequest(f"branch {id}: event {seq} replaces what was not said before it{EXPORT_AGAIN}")
                ever.update(event.new)
                if len(there) < len(said):
                    raise BadRequest(f"branch {id}: event {seq} says what stands there already{EXPORT_AGAIN}")


def read_export(lines: Iterable[bytes], digests: Digests) -> ExportFile:
    """All that an export says. Raises `BadRequest` where something is wrong with it."""
    file = ExportFile(digests)
    for at, line in enumerate(lines, 1):
        try:
            value = rawjson.loads(line)
            if at == 1:
                _expect_header(value)
            else:
                file.read(value)
        except ClewError as error:
            raise BadRequest(f"line {at}: {error}{EXPORT_AGAIN if at > 1 else ''}") from None
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            told = f"{type(error).__name__}: {error}"[:200]
            raise BadRequest(f"line {at}: not a line that `clew export` wrote ({told}){EXPORT_AGAIN}") from None
    if not file.branches:
        raise BadRequest("no conversation found: expected what `clew export` writes")
    if not file.complete:
        raise BadRequest(f"the file is truncated: its end is missing{EXPORT_AGAIN}")
    file.check()
    return file


def _expect_header(value: Any) -> None:
    if not isinstance(value, dict) or "clew" not in value:
        raise BadRequest("not what `clew export` writes: the first line must name its version")
    if value["clew"] != EXPORT_VERSION:
        version = str(value["clew"])[:20]
        raise BadRequest(
            f"written by another clew (export version {version}, this one reads {EXPORT_VERSION}); upgrade clew"
        )


async def take_in(
    store: Store,
    scope: Scope,
    lines: Iterable[bytes],
    name: str | None = None,
    progress: Progress | None = None,
    notes: list[str] | None = None,
) -> list[str]:
    """Write exported conversations to a store; the branches that are new in it, the ones asked for last.

    With `name`, the last one gets that name: so a conversation can be beside itself. What is to be said of them is
    added to `notes`.
    """
    file = read_export(lines, Digests(store.secret, scope))
    if file.odd and notes is not None:
        notes.append(ODD % file.odd)
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


async def _label(store: Store, scope: Scope, branch: ExportBranch, file: ExportFile) -> None:
    """Give a branch that is here its tags, if it has none: the import that wrote it may have been cut off before."""
    id = file.names.get(branch.id, branch.id)
    if branch.tags or branch.archived:
        listed = await store.sessions(scope, id)
        if not any(session.tags or session.archived for session in listed):
            await store.label(scope, id, branch.tags, branch.archived or None)


async def _go_on(store: Store, scope: Scope, branch: ExportBranch, file: ExportFile) -> None:
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


def _batch(file: ExportFile, branch: ExportBranch) -> Batch:
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


def _rekeyed(file: ExportFile, branch: ExportBranch) -> tuple[list[Event], list[str]]:
    """The events of a branch with digests of this store, and those of the histories and views it knew."""
    digests, trace = file.digests, Trace(branch.id)
    if branch.parent:
        apply(trace, *file.past(file.branches[branch.parent], branch.parent_seq))
    sent, said, stale = "", digests.run("", (p.content for p in trace.said)), True
    events: list[Event] = []
    heads: list[str] = []
    for seq, _, told in branch.rows:
        event = event_of(told, branch.id, seq, file.nodes.__getitem__)
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
    nodes = fold(said, trace.edits, trace.alias, trace.gone, trace.loose, trace.patched)
    return digests.run("", (n.content for n in nodes))
