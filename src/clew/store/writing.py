"""One turn into the log, in one transaction: all of it or none."""

import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from clew import rawjson
from clew.errors import Conflict
from clew.items import Digests, Edit, Node, Scope
from clew.store.packing import indexable, pack, pack_frame, pack_item, pack_opening
from clew.store.queries import SQL
from clew.store.records import Batch, ClientEdit, Event, Said
from clew.store.rows import row_of
from clew.store.sessions import cause_of, keep


def write(db: sqlite3.Connection, secret: bytes, scope: Scope, batch: Batch) -> None:
    """Write a batch; raises `Conflict` if another writer extended the branch first."""
    with transaction(db):
        _write(db, Digests(secret, scope), scope, batch)


def learn(db: sqlite3.Connection, scope: Scope, kind: str, name: str, value: Mapping[str, Any]) -> None:
    """Put a value under a name, in place of the one that is there."""
    with transaction(db):
        given = {"kind": kind, "name": name, "value": rawjson.dumps(value).decode(), "at": time.time()}
        db.execute(SQL["learn"], {"owner": owner_of(db, scope), **given})


def label(db: sqlite3.Connection, scope: Scope, branch: str, tags: Sequence[str] | None, archived: bool | None) -> None:
    """Give a branch other tags, or put it out of the way, or back; None leaves either as it is."""
    with transaction(db):
        given = {"owner": owner_of(db, scope), "branch": branch}
        if tags is not None:
            db.execute(SQL["tag_branch"], {**given, "tags": rawjson.dumps(list(tags)).decode()})
        if archived is not None:
            db.execute(SQL["archive_branch"], {**given, "archived": time.time() if archived else None})


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All of it or none; the lock is taken at once, so that what is read in it is what is written on."""
    try:
        db.execute("begin immediate")
        yield
        db.execute("commit")
    except BaseException:
        if db.in_transaction:
            db.execute("rollback")
        raise


def owner_of(db: sqlite3.Connection, scope: Scope) -> int:
    """The number of a scope, which gets one if it has none."""
    db.execute(SQL["add_scope"], {"scope": scope})
    return int(db.execute(SQL["scope"], {"scope": scope}).fetchone()[0])


def _write(db: sqlite3.Connection, digests: Digests, scope: Scope, batch: Batch) -> None:
    now = time.time()
    owner = owner_of(db, scope)
    if batch.opened:
        _open(db, scope, owner, batch, now)
    else:
        _expect(db, scope, batch)
    for seq, event in enumerate(batch.events, batch.seq):
        for node in _new_nodes(event):
            _add_node(db, owner, batch.branch, node)
        _add_event(db, batch.branch, seq, event, now)
        if isinstance(event, Edit) and event.sources:
            names = {digests.handle(event.old), *(n.id for n in event.stand_ins)} - set(event.old)
            for name in names:
                db.execute(SQL["add_handle"], {"owner": owner, "id": name, "branch": batch.branch, "seq": seq})
    keep(db, owner, batch, now)
    last = batch.seq + len(batch.events) - 1
    for chain in batch.heads:
        db.execute(SQL["add_head"], {"owner": owner, "chain": chain, "branch": batch.branch, "seq": last})
    if batch.frame:
        digest, frame = batch.frame
        db.execute(SQL["add_frame"], {"owner": owner, "digest": digest, "data": pack_frame(frame)})


def _open(db: sqlite3.Connection, scope: Scope, owner: int, batch: Batch, now: float) -> None:
    fork = batch.fork
    if fork and db.execute(SQL["branch"], {"scope": scope, "branch": fork.parent}).fetchone() is None:
        raise Conflict(f"branch {fork.parent}, to be forked, is not in this scope any more")
    given = {
        "branch": batch.branch,
        "owner": owner,
        "session": batch.session,
        "parent": fork.parent if fork else None,
        "parent_seq": fork.seq if fork else None,
        "cause": cause_of(batch),
        "at": now,
    }
    try:
        db.execute(SQL["add_branch"], given)
    except sqlite3.IntegrityError:
        raise Conflict(f"branch {batch.branch} was opened by another writer first") from None


def _expect(db: sqlite3.Connection, scope: Scope, batch: Batch) -> None:
    """Where this writer believes the branch ends must be where it ends."""
    if db.execute(SQL["branch"], {"scope": scope, "branch": batch.branch}).fetchone() is None:
        # Not NotFound: whoever remembers a branch that was purged meanwhile must look again, and begin anew.
        raise Conflict(f"branch {batch.branch} is not in this scope any more")
    newest = db.execute(SQL["newest_event"], {"branch": batch.branch}).fetchone()[0]
    if newest is not None and newest + 1 != batch.seq:
        raise Conflict(f"branch {batch.branch} is at {newest}, not {batch.seq - 1}: another writer was first")


def _new_nodes(event: Event) -> tuple[Node, ...]:
    match event:
        case Said(nodes) | ClientEdit(nodes=nodes) | Edit(new=nodes):
            return nodes
        case _:
            return ()


def _add_event(db: sqlite3.Connection, branch: str, seq: int, event: Event, now: float) -> None:
    row = row_of(event)
    given = {
        "branch": branch,
        "seq": seq,
        "kind": row.kind,
        "start": row.start,
        "stop": row.stop,
        "old": pack(row.old),
        "new": pack(row.new),
        "note": row.note,
        "at": now,
    }
    db.execute(SQL["add_event"], given)


def _add_node(db: sqlite3.Connection, owner: int, branch: str, node: Node) -> None:
    opens = pack_opening(node.item)
    place = {"owner": owner, "id": node.id, "content": node.content, "branch": branch, "opens": opens}
    db.execute(SQL["add_node"], place)
    known = db.execute(SQL["has_body"], {"owner": owner, "content": node.content}).fetchone()
    if known == (1,):
        return
    if known:  # it was purged, and is said again
        db.execute(SQL["forget_purged_body"], {"owner": owner, "content": node.content})
    item = node.item
    packed, size, data = pack_item(item)
    given = {
        "owner": owner,
        "content": node.content,
        "kind": item.kind,
        "role": item.role,
        "packed": packed,
        "size": size,
        "data": data,
    }
    body = db.execute(SQL["add_body"], given).lastrowid
    if item.text:
        db.execute(SQL["add_text"], {"body": body, "text": indexable(item.text)})
