"""Questions to the log, as plain functions of a connection."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from clew import rawjson
from clew.errors import Conflict, NotFound, Purged
from clew.finding import terms
from clew.items import SHORT, Frame, Node, Scope
from clew.store.packing import indexable, unpack, unpack_frame, unpack_item
from clew.store.queries import SQL
from clew.store.records import BranchInfo, Call, Found, Trace
from clew.store.rows import call_of, read_row, replay

_ALL = 1 << 62  # past every sequence number
_WORDS = 40  # looked for at a time, the longest first: they tell most
_BEGINNING = 4  # letters that are enough to look for what begins with them


def secret(db: sqlite3.Connection) -> bytes:
    return bytes(db.execute(SQL["secret"]).fetchone()[0])


def find(db: sqlite3.Connection, scope: Scope, chains: Sequence[str]) -> list[Found]:
    order = {chain: i + 1 for i, chain in enumerate(chains)}
    rows = db.execute(SQL["find"], {"scope": scope, "chains": _json(chains)})
    found = [Found(branch, seq, order[chain]) for chain, branch, seq in rows]
    return sorted(found, key=lambda f: (-f.known, -f.seq))


def alike(db: sqlite3.Connection, scope: Scope, digests: Sequence[str]) -> str | None:
    given = {"scope": scope, "contents": _json(dict.fromkeys(digests))}
    found: str | None = _first(db.execute(SQL["alike"], given))
    return found


def session(db: sqlite3.Connection, scope: Scope, name: str) -> str | None:
    found: str | None = _first(db.execute(SQL["session"], {"scope": scope, "session": name}))
    return found


def load(db: sqlite3.Connection, scope: Scope, branch: str, until: int | None) -> Trace:
    with _snapshot(db):
        owner = db.execute(SQL["branch"], {"scope": scope, "branch": branch}).fetchone()
        if owner is None:
            raise missing(db, scope, branch)
        trace = Trace(branch, session=owner[0])
        events = _events(db, scope, branch, _ALL if until is None else until)
        content_of = contents(db, scope, {id for event in events for id in unpack(event[7])})
    for _, seq, _, *columns in events:
        replay(trace, read_row(*columns), seq, content_of.__getitem__)
    return trace


def catch_up(db: sqlite3.Connection, scope: Scope, trace: Trace) -> set[str]:
    with _snapshot(db):
        if db.execute(SQL["branch"], {"scope": scope, "branch": trace.branch}).fetchone() is None:
            raise missing(db, scope, trace.branch)
        events = db.execute(SQL["newer_events"], {"branch": trace.branch, "since": trace.seq}).fetchall()
        content_of = contents(db, scope, {id for event in events for id in unpack(event[5])})
    for seq, *columns in events:
        replay(trace, read_row(*columns), seq, content_of.__getitem__)
    return {event[1] for event in events}


def nodes(db: sqlite3.Connection, scope: Scope, ids: Sequence[str]) -> dict[str, Node]:
    wanted = dict.fromkeys(ids)
    rows = db.execute(SQL["nodes"], {"scope": scope, "ids": _json(wanted)})
    found = {id: Node(id, content, unpack_item(*columns)) for id, content, *columns in rows}
    if len(found) < len(wanted):
        gone = len(wanted) - len(found)
        raise Conflict(f"{gone:,} of {len(wanted):,} nodes were purged meanwhile; else the log is damaged: clew doctor")
    return found


def frame(db: sqlite3.Connection, scope: Scope, digest: str) -> Frame:
    data = _first(db.execute(SQL["frame"], {"scope": scope, "digest": digest}))
    if data is None:
        raise NotFound(f"no frame {digest} in this scope")
    return unpack_frame(data)


def originals(db: sqlite3.Connection, scope: Scope, id: str) -> list[Node]:
    with _snapshot(db):
        found = _behind(db, scope, id)
        said = nodes(db, scope, found)
        gone = {row[0]: row for row in db.execute(SQL["purged_among"], {"scope": scope, "ids": _json(found)})}
    if found and len(gone) == len(found):
        raise _purged(*gone[found[0]])
    return [said[id] for id in found]


def _behind(db: sqlite3.Connection, scope: Scope, id: str) -> list[str]:
    found: dict[str, None] = {}
    seen: set[str] = set()
    stack = [id]
    while stack:
        at = stack.pop()
        row = db.execute(SQL["sources"], {"scope": scope, "id": at}).fetchone()
        if row is None:
            found[at] = None
        elif at not in seen:
            seen.add(at)
            moved = set(unpack(row[1]))
            stack += [old for old in reversed(unpack(row[0])) if old not in moved]
    return list(found)


def resolve(db: sqlite3.Connection, scope: Scope, short: str) -> list[str]:
    given = {"scope": scope, "low": short.ljust(32, "0"), "high": short.ljust(32, "f")}
    return [row[0] for row in db.execute(SQL["resolve"], given)]


def search(db: sqlite3.Connection, scope: Scope, text: str, among: Sequence[str] | None, limit: int) -> list[str]:
    # Each word is quoted: what a person or a model looks for is text, never query syntax.
    wanted = [_quoted(word) for word in sorted(terms(indexable(text)), key=len, reverse=True)[:_WORDS]]
    if not wanted:
        return []
    given = {"scope": scope, "words": " OR ".join(wanted), "limit": limit}
    if among is None:
        return [row[0] for row in db.execute(SQL["search_all"], given)]
    return [row[0] for row in db.execute(SQL["search"], {**given, "among": _json(among)})]


def places(db: sqlite3.Connection, scope: Scope, contents: Sequence[str]) -> list[tuple[str, str]]:
    return db.execute(SQL["places_of"], {"scope": scope, "contents": _json(contents)}).fetchall()


def ancestry(db: sqlite3.Connection, scope: Scope, branch: str) -> list[tuple[str, int]]:
    return db.execute(SQL["ancestry"], {"scope": scope, "branch": branch}).fetchall()


def _quoted(word: str) -> str:
    # The index has names with their underscores in one piece: a part of one is found as its beginning.
    return f'"{word}"*' if len(word) >= _BEGINNING else f'"{word}"'


def calls(db: sqlite3.Connection, scope: Scope, branch: str) -> list[Call]:
    events = _events(db, scope, branch, _ALL)
    usage = {start: rawjson.loads(note)["usage"] for *_, kind, start, _, _, _, note in events if kind == "usage"}
    return [
        call_of(made_on, seq, said, note, at, usage.get(seq))
        for made_on, seq, at, kind, _, said, _, _, note in events
        if kind == "call"
    ]


def branches(db: sqlite3.Connection, scope: Scope) -> list[BranchInfo]:
    return [BranchInfo(*row) for row in db.execute(SQL["branches"], {"scope": scope})]


def purged(db: sqlite3.Connection, scope: Scope, short: str) -> Purged | None:
    """Why there is nothing that begins like this, if that is because it was purged."""
    found = db.execute(SQL["tombstones"], {"scope": scope, "short": short}).fetchall()
    return _purged(*found[0]) if found else None


def missing(db: sqlite3.Connection, scope: Scope, branch: str) -> NotFound:
    """The error that says why a branch is not there."""
    return purged(db, scope, branch) or NotFound(f"no branch {branch} in this scope")


def _purged(id: str, at: float, reason: str) -> Purged:
    return Purged(f"{id[:SHORT]} was purged {datetime.fromtimestamp(at):%Y-%m-%d}: {reason}")


def idle(db: sqlite3.Connection, scope: Scope, before: float) -> list[str]:
    return [row[0] for row in db.execute(SQL["idle"], {"scope": scope, "before": before})]


def learned(db: sqlite3.Connection, scope: Scope, kind: str) -> dict[str, dict[str, Any]]:
    rows = db.execute(SQL["learned"], {"scope": scope, "kind": kind})
    return {name: rawjson.loads(value) for name, value in rows}


def _events(db: sqlite3.Connection, scope: Scope, branch: str, until: int) -> list[Any]:
    return db.execute(SQL["events"], {"scope": scope, "branch": branch, "until": until}).fetchall()


def contents(db: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> dict[str, str]:
    return dict(db.execute(SQL["contents"], {"scope": scope, "ids": _json(ids)}).fetchall())


@contextmanager
def _snapshot(db: sqlite3.Connection) -> Iterator[None]:
    """What is read in it is of one moment, whatever others write or purge meanwhile."""
    if db.in_transaction:
        yield
        return
    db.execute("begin")
    try:
        yield
    finally:
        db.execute("rollback")


def _first(rows: sqlite3.Cursor) -> Any:
    row = rows.fetchone()
    return row[0] if row else None


def _json(values: Iterable[str]) -> str:
    return json.dumps(list(values))
