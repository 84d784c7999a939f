"""Conversations as lines of a file, whole: every word, edit, pin, call and time; `import_log.py` reads them back.

Digests are keyed by a store's secret and stay out. Ids stay as they are: stand-ins name them.
"""

from collections.abc import AsyncIterator, Container, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from clew.core import rawjson
from clew.core.items import Digests, Node, Scope
from clew.errors import NotFound, StoreError
from clew.store.packing import fields_of, pack_opening
from clew.store.protocol import Store
from clew.store.records import BranchInfo, Happened, Session
from clew.store.upkeep import Progress

EXPORT_VERSION = 1
NODES_AT_ONCE = 1_000  # nodes read at a time


class _Sessions:
    """How branches began."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        self._branches = {s.id: s.branch for s in sessions}
        # Not by the branch's id: one that inherited from a branch that was purged begins with a session of that one.
        self._firsts = {s.branch: s for s in sorted(sessions, key=lambda s: -s.number)}

    def first(self, branch: str) -> Session:
        if branch not in self._firsts:
            raise StoreError(f"branch {branch} has no session: `clew doctor` shows the damage; restore a backup")
        return self._firsts[branch]

    def before(self, session: Session) -> str | None:
        """The branch of its parent; the event before it tells which session of that it is."""
        return self._branches.get(session.parent or "")


class _Export:
    """Writes lines; what was written once is referred to after that."""

    def __init__(self, store: Store, scope: Scope, sessions: "_Sessions", branches: Container[str]) -> None:
        self._store = store
        self._scope = scope
        self._sessions = sessions
        self._branches = branches  # all that are written
        self._digests = Digests(store.secret, scope)
        self._items: dict[str, int] = {}  # by content
        self._frames: dict[str, int] = {}
        self._nodes: set[str] = set()

    async def branch(self, info: BranchInfo, parent: str | None, until: int | None) -> AsyncIterator[dict[str, Any]]:
        first = self._sessions.first(info.id)
        after = None if parent else self._sessions.before(first)
        cause, seq = first.cause, first.parent_seq
        if after not in self._branches:  # what it is beside goes nowhere with it
            after, cause, seq = None, *(("start", None) if cause == "beside" else (cause, seq))
        own = {"branch": info.id, "name": info.session, "cause": cause, "at": info.at}
        came = {"parent": parent, "parent_seq": seq, "after": after}
        yield {**own, **came, "tags": list(first.tags), "archived": first.archived is not None}
        events = await self._store.events(self._scope, info.id, until)
        for begin in range(0, len(events), NODES_AT_ONCE):
            chunk = events[begin : begin + NODES_AT_ONCE]
            ids = {id: None for e in chunk if e.row.kind in ("said", "client", "edit") for id in e.row.new}
            new = [id for id in ids if id not in self._nodes]
            nodes = await self._store.nodes(self._scope, new)
            for line in (line for id in new for line in self._node(nodes[id])):
                yield line
            for event in chunk:
                async for line in self._event(event):
                    yield line

    def _node(self, node: Node) -> Iterator[dict[str, Any]]:
        self._nodes.add(node.id)
        if node.content not in self._items:
            number = self._items[node.content] = len(self._items)
            yield {"item": number, "kind": node.item.kind, "role": node.item.role, **fields_of(node.item)}
        yield {"node": node.id, "item": self._items[node.content], "opens": pack_opening(node.item)}

    async def _event(self, event: Happened) -> AsyncIterator[dict[str, Any]]:
        row = event.row
        note: Any = dict(row.note) if row.note else None
        if row.kind == "call":
            digest = note.pop("frame")
            if digest not in self._frames:
                frame = await self._store.frame(self._scope, digest)
                self._frames[digest] = len(self._frames)
                yield {"frame": self._frames[digest], **{f.name: getattr(frame, f.name) for f in fields(frame)}}
            note |= {"frame": self._frames[digest], "digest": ""}
        elif row.kind == "edit":
            note["evidence"] = {"handle": self._digests.handle(row.old)} | note["evidence"]
        columns = {"start": row.start, "stop": row.stop, "old": list(row.old), "new": list(row.new), "note": note}
        yield {"event": event.seq, "at": event.at, "kind": row.kind} | {k: v for k, v in columns.items() if v}


async def export(
    store: Store, scope: Scope, branches: Sequence[str], progress: Progress | None = None
) -> AsyncIterator[bytes]:
    """These branches and all that led to them, line by line."""
    known = {b.id: b for b in await store.branches(scope)}
    sessions = _Sessions(await store.sessions(scope))
    wanted = _with_past(sessions, known, branches)
    yield _line({"clew": EXPORT_VERSION, "branches": len(wanted)})
    writing = _Export(store, scope, sessions, wanted)
    for done, (id, until) in enumerate(wanted.items()):
        if progress:
            progress(done, len(wanted))
        async for line in writing.branch(known[id], _parent(known[id], known), until):
            yield _line(line)
    yield _line({"end": len(wanted)})  # else one that was cut off between two lines would look whole


def _with_past(sessions: _Sessions, known: Mapping[str, BranchInfo], branches: Sequence[str]) -> dict[str, int | None]:
    """The branches to write, what they come from first, each up to which event; None: all of it."""
    until: dict[str, int | None] = {}
    for id in branches:
        if id not in known:
            raise NotFound(f"no branch {id} in this scope")
        line: list[tuple[str, int | None]] = [(id, None)]
        while came := _origin(known[line[-1][0]], known, sessions):
            if came[0] not in known:
                raise StoreError(f"branch {came[0]} is not there: `clew doctor` shows the damage; restore a backup")
            line.append(came)
        for at, last in reversed(line):
            more = at not in until or (until[at] is not None and (last is None or last > (until[at] or 0)))
            until[at] = last if more else until[at]
    return until


def _parent(info: BranchInfo, known: Mapping[str, BranchInfo]) -> str | None:
    """The branch on which the last event happened that a fork has of others: what its parents said later is theirs."""
    parent = info.parent
    while (of := known.get(parent or "")) and of.parent and (info.parent_seq or 0) <= (of.parent_seq or 0):
        parent = of.parent
    return parent


def _origin(info: BranchInfo, known: Mapping[str, BranchInfo], sessions: _Sessions) -> tuple[str, int | None] | None:
    if parent := _parent(info, known):
        return parent, info.parent_seq
    first = sessions.first(info.id)
    before = sessions.before(first) if first.cause != "beside" else None  # it sees nothing of that
    return (before, first.parent_seq) if before else None


def _line(value: Mapping[str, Any]) -> bytes:
    return rawjson.dumps(value) + b"\n"
