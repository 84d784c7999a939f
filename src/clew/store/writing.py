"""One turn into the log, in one transaction: all of it or none."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from clew.core import rawjson
from clew.core.caches import forget
from clew.core.items import Digests, Edit, Item, Node, Scope
from clew.errors import Conflict, StoreError
from clew.store.database import Database
from clew.store.frames import pack_frame
from clew.store.loading import keep_checkpoint
from clew.store.notes import pack_note
from clew.store.packing import brief_opening, letter, listed, pack, pack_item, pack_opening
from clew.store.records import Batch, Call, ClientEdit, Event, NamedValue, Said
from clew.store.rows import row_of
from clew.store.sessions import cause_of, keep, last_of, open_first


def write(db: Database, secret: bytes, scope: Scope, batch: Batch) -> None:
    """Write a batch; raises `Conflict` if another writer extended the branch first."""
    with db.writing():
        _write(db, Digests(secret, scope), scope, batch)


def learn(db: Database, scope: Scope, kind: str, name: str, value: Mapping[str, Any]) -> None:
    """Put a value under a name, in place of the one that is there."""
    with db.writing():
        _learn(db, owner_of(db, scope), [(kind, name, value)])


def label(db: Database, scope: Scope, branch: str, tags: Sequence[str] | None, archived: bool | None) -> None:
    """Give a branch other tags, or put it out of the way, or back; None leaves either as it is."""
    with db.writing():
        given = {"owner": owner_of(db, scope), "branch": branch}
        if tags is not None:
            db.ask("tag_branch", **given, tags=rawjson.dumps(list(tags)).decode())
        if archived is not None:
            db.ask("archive_branch", **given, archived=time.time() if archived else None)


def _learn(db: Database, owner: int, learned: Iterable[NamedValue]) -> None:
    for kind, name, value in learned:
        given = {"kind": kind, "name": name, "value": rawjson.dumps(value).decode()}
        db.ask("learn", owner=owner, **given, at=time.time())


def owner_of(db: Database, scope: Scope) -> int:
    """The number of a scope, which gets one if it has none."""
    if found := db.ask("scope", scope=scope).fetchone():
        return int(found[0])
    db.ask("add_scope", scope=scope)
    return int(db.ask("scope", scope=scope).fetchone()[0])


def _write(db: Database, digests: Digests, scope: Scope, batch: Batch) -> None:
    now = time.time()
    times = batch.times or (now,) * len(batch.events)
    # What decides is asked first, and read when all of it was asked: on the way to a server that is one trip.
    if batch.opened:
        db.ask("add_scope", scope=scope)
    scopes = db.later("begin_write", scope=scope)
    begun = now if batch.begun is None else batch.begun
    expect = _opens(db, scope, batch, begun) if batch.opened else _goes_on(db, scope, batch)
    said = _add_nodes(db, scope, batch)
    known = db.later("known_bodies", scope=scope, contents=listed(said)) if said else list
    add_frames = _frames(db, digests, scope, batch)
    last = None if batch.opened else last_of(db, batch)
    expect()
    [(owner, *_)] = scopes()
    _add_bodies(db, owner, said, {content: bool(whole) for content, whole in known()})
    if batch.opened:
        open_first(db, owner, batch, begun)
    events = list(enumerate(batch.events, batch.seq))
    columns = (_columns(batch.branch, *event, at) for event, at in zip(events, times, strict=True))
    db.many("add_event", list(columns))
    at = {"owner": owner, "branch": batch.branch}
    names = [(name, seq) for seq, event in events for name in _handles(digests, event)]
    db.many("add_handle", [{**at, "id": name, "seq": seq} for name, seq in names])
    keep(db, owner, batch, times, _only(last(), batch.branch) if last else (batch.branch, batch.seq))
    end = batch.seq + len(batch.events) - 1
    db.many("add_head", [{**at, "chain": chain, "seq": end} for chain in batch.heads])
    add_frames(owner)
    used = {digest for digest, _ in batch.frames} | {event.frame for event in batch.events if isinstance(event, Call)}
    db.many("add_frame_use", [{**at, "digest": digest} for digest in sorted(used)])
    _learn(db, owner, sorted(batch.learned, key=itemgetter(0, 1)))
    keep_checkpoint(db, scope, batch.branch, batch.seq, end + 1)


def _opens(db: Database, scope: Scope, batch: Batch, at: float) -> Callable[[], None]:
    """Let a branch begin; what this returns raises `Conflict` if it cannot."""
    fork = batch.fork
    parents = db.later("branch", scope=scope, branch=fork.parent) if fork else None
    given = {"branch": batch.branch, "scope": scope, "session": batch.session, "cause": cause_of(batch), "at": at}
    given["after"] = batch.session if batch.begun is None else None  # what comes from elsewhere keeps its time
    origin = {"parent": fork.parent if fork else None, "parent_seq": fork.seq if fork else None}
    made = db.later("add_branch", **given, **origin)

    def expect() -> None:
        if fork and parents and not parents():
            raise Conflict(f"branch {fork.parent}, the parent of the fork, is no longer in this scope")
        if not made():
            raise Conflict(f"another writer created branch {batch.branch} first")

    return expect


def _goes_on(db: Database, scope: Scope, batch: Batch) -> Callable[[], None]:
    """Have a branch to oneself; what this returns raises `Conflict` unless it ends where this writer believes."""
    held = db.later("hold_branch", scope=scope, branch=batch.branch)
    last = db.later("newest_event", branch=batch.branch)

    def expect() -> None:
        if not held():
            forget()
            # Not NotFound: whoever remembers a branch that was purged meanwhile must look again, and begin anew.
            raise Conflict(f"branch {batch.branch} is no longer in this scope")
        [(newest,)] = last()
        if newest is not None and newest + 1 != batch.seq:
            raise Conflict(f"branch {batch.branch} is at event {newest}, not {batch.seq - 1}: another writer was first")

    return expect


def _new_nodes(event: Event) -> tuple[Node, ...]:
    match event:
        case Said(nodes) | ClientEdit(nodes=nodes) | Edit(new=nodes):
            return nodes
        case _:
            return ()


def _handles(digests: Digests, event: Event) -> set[str]:
    """The ids by which what an edit stands for can be recalled."""
    if not isinstance(event, Edit) or not event.sources:
        return set()
    own = {digests.handle(event.old), *(n.id for n in event.stand_ins)}
    # From another store: its stand-ins name the handle by which it was recalled there.
    return (own | {event.evidence.get("handle", event.old[0])}) - set(event.old)


def _columns(branch: str, seq: int, event: Event, at: float) -> dict[str, Any]:
    row = row_of(event)
    return {
        "branch": branch,
        "seq": seq,
        "kind": row.kind,
        "start": row.start,
        "stop": row.stop,
        "old": pack(row.old),
        "new": pack(row.new),
        "note": pack_note(row.kind, row.note),
        "at": at,
    }


def _add_nodes(db: Database, scope: Scope, batch: Batch) -> dict[str, Item]:
    """What is new in the history, and what it says, by content."""
    nodes = [node for event in batch.events for node in _new_nodes(event)]
    # Sorted, here and below: two writers that add the same in different order would wait for each other.
    places = {n.id: n for n in reversed(nodes)}
    db.many("add_node", [_place(scope, batch.branch, places[id]) for id in sorted(places)])
    if places:
        db.ask("add_said_again", scope=scope, branch=batch.branch, ids=listed(sorted(places)))
    return {n.content: n.item for n in reversed(nodes)}


def _add_bodies(db: Database, owner: int, said: Mapping[str, Item], known: Mapping[str, bool]) -> None:
    """What was never said, or was purged; `known` says of what is there whether it is whole."""
    purged = sorted(content for content, whole in known.items() if not whole)
    db.many("forget_purged_body", [{"owner": owner, "content": content} for content in purged])
    new = sorted(content for content in said if not known.get(content))
    db.many("add_body", [_body(owner, content, said[content]) for content in new])
    texts = [(content, said[content].text) for content in new if said[content].text]
    given = [{"owner": owner, "content": content, **part} for content, text in texts for part in db.words(text)]
    db.many("add_text_of", given)


def _frames(db: Database, digests: Digests, scope: Scope, batch: Batch) -> Callable[[int], None]:
    """What this returns adds the frames, and the long parts of those that are not there yet."""
    packed = {digest: pack_frame(frame, digests) for digest, frame in batch.frames}
    parts = {frame.digest: frame for frame in packed.values() if frame.parts}
    known = db.later("known_frames", scope=scope, digests=listed(parts)) if parts else list

    def add(owner: int) -> None:
        there = {digest for (digest,) in known()}
        rows = {digest: frame.row() for digest, frame in packed.items()}
        rows |= {digest: frame.parts_row() for digest, frame in parts.items() if digest not in there}
        db.many("add_frame", [{"owner": owner, "digest": digest, "data": rows[digest]} for digest in sorted(rows)])

    return add


def _place(scope: Scope, branch: str, node: Node) -> dict[str, Any]:
    opens = brief_opening(pack_opening(node.item))
    return {"scope": scope, "id": node.id, "content": node.content, "branch": branch, "opens": opens}


def _body(owner: int, content: str, item: Item) -> dict[str, Any]:
    packed, size, data = pack_item(item)
    given = {"owner": owner, "content": content, "kind": letter(item.kind), "role": letter(item.role)}
    return {**given, "packed": packed, "size": size, "data": data}


def _only(rows: Sequence[tuple[str, int]], branch: str) -> tuple[str, int]:
    """The session that a branch is in. Raises `StoreError`."""
    if not rows:
        raise StoreError(f"branch {branch} has no session: `clew doctor` shows the damage; restore a backup")
    return rows[0]
