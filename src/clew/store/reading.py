"""Questions to the log, as plain functions of a database."""

from collections.abc import Sequence
from typing import Any

from clew.core import rawjson
from clew.core.caches import forget
from clew.core.items import SHORT, Digests, Frame, Node, Scope
from clew.core.times import local
from clew.core.view import behind
from clew.errors import Conflict, NotFound, Purged
from clew.store.database import Database, Rows
from clew.store.frames import unpack_frame
from clew.store.loading import FOREVER, go_on, own, restore
from clew.store.packing import indexable, is_intact, listed, unpack, unpack_item
from clew.store.records import ABSENT, UNSENT, BranchInfo, Call, Happened, KnownHead
from clew.store.rows import call_of, event_of, note_of, read_row
from clew.store.trace import Trace
from clew.text.words import terms

_WORDS = 40  # looked for at a time, the longest first: they tell most


def secret(db: Database) -> bytes:
    """The store's own key. Raises `LookupError` where it is not there."""
    found = db.ask("secret").fetchone()
    if found is None:
        raise LookupError("its key is not there")
    return bytes(found[0])


def find(db: Database, scope: Scope, chains: Sequence[str]) -> list[KnownHead]:
    order = {chain: i + 1 for i, chain in enumerate(chains)}
    rows = db.ask("find", scope=scope, chains=listed(chains))
    newest = sorted(rows, key=lambda row: -row[3])  # where nothing else decides, and never the random id
    found = [KnownHead(branch, seq, order[chain]) for chain, branch, seq, _ in newest]
    return sorted(found, key=lambda f: (-f.known, -f.seq))


def alike(db: Database, scope: Scope, contents: Sequence[str]) -> list[str]:
    given = {"scope": scope, "contents": listed(dict.fromkeys(contents))}
    return [row[0] for row in db.ask("alike", **given)]


def session(db: Database, scope: Scope, session: str) -> str | None:
    found: str | None = _first(db.ask("session", scope=scope, session=session))
    return found


def load(db: Database, scope: Scope, branch: str, until: int | None = None) -> Trace:
    with db.snapshot():
        owner = db.ask("branch", scope=scope, branch=branch).fetchone()
        if owner is None:
            raise missing(db, scope, branch)
        trace = restore(db, scope, Trace(branch, session=owner[0]), FOREVER if until is None else until).trace
        trace.purges = _purges(db, scope)
    if len({place.id for place in trace.said}) < len(trace.said):
        raise ValueError(f"branch {branch} has an item at two places")
    return trace


def catch_up(db: Database, scope: Scope, trace: Trace) -> set[str]:
    with db.snapshot():
        if db.ask("branch", scope=scope, branch=trace.branch).fetchone() is None:
            raise missing(db, scope, trace.branch)
        kinds = go_on(db, scope, trace)
        # It may have been purged and begun anew, or some of its words may have been purged: it is to be read again.
        return kinds | ({"purge"} if _purges(db, scope) != trace.purges else set())


def _purges(db: Database, scope: Scope) -> int:
    return int(db.ask("last_purge", scope=scope).fetchone()[0])


def nodes(db: Database, scope: Scope, ids: Sequence[str], digests: Digests | None = None) -> dict[str, Node]:
    wanted = dict.fromkeys(ids)
    rows = db.ask("nodes", scope=scope, ids=listed(wanted))
    found = {}
    for id, content, opens, kind, role, packed, data, whole in rows:
        item = unpack_item(opens, kind, role, packed, data)
        # What is not compressed has no sum of its own that a flipped bit would break.
        if digests and whole and not packed and not is_intact(digests, content, item, packed, data):
            raise ValueError(f"{id[:SHORT]} does not match its digest")
        found[id] = Node(id, content, item)
    if len(found) < len(wanted):
        gone = len(wanted) - len(found)
        raise Conflict(
            f"{gone:,} of {len(wanted):,} nodes are missing: purged meanwhile, or the log is damaged (`clew doctor`)"
        )
    return found


def frame(db: Database, scope: Scope, digest: str) -> Frame:
    def row(digest: str) -> bytes:
        data: bytes | None = _first(db.ask("frame", scope=scope, digest=digest))
        if data is None:
            raise NotFound(f"no frame {digest} in this scope")
        return data

    return unpack_frame(row(digest), row)


def originals(db: Database, scope: Scope, id: str, digests: Digests | None = None) -> list[Node]:
    with db.snapshot():
        found = behind_id(db, scope, id)
        said = nodes(db, scope, found, digests)
        gone = {row[0]: row for row in db.ask("purged_among", scope=scope, ids=listed(found))}
    if found and len(gone) == len(found):
        raise _purged(*gone[found[0]])
    return [said[id] for id in found]


def behind_id(db: Database, scope: Scope, id: str) -> list[str]:
    def sources(id: str) -> list[str] | None:
        row = db.ask("sources", scope=scope, id=id).fetchone()
        if row is None:
            return None
        moved = set(unpack(row[1]))
        return [old for old in unpack(row[0]) if old not in moved]

    return behind([id], sources) or [id]  # a quote stands for nothing else


def resolve(db: Database, scope: Scope, short: str) -> list[str]:
    given = {"scope": scope, "low": short.ljust(32, "0"), "high": short.ljust(32, "f")}
    return [row[0] for row in db.ask("resolve", **given)]


def search(db: Database, scope: Scope, text: str, among: Sequence[str] | None, limit: int) -> list[str]:
    wanted = sorted(terms(indexable(text)), key=len, reverse=True)[:_WORDS]
    if not wanted:
        return []
    found = db.search(scope, wanted, None if among is None else listed(among), limit)
    if None in found or (among is not None and not {*found} <= {*among}):
        raise LookupError("the index of words leads to what nobody said there")
    return found


def places(db: Database, scope: Scope, contents: Sequence[str]) -> list[tuple[str, str]]:
    return db.ask("places_of", scope=scope, contents=listed(contents)).fetchall()


def holders(db: Database, scope: Scope, ids: Sequence[str]) -> list[tuple[str, str]]:
    return db.ask("branches_of", scope=scope, ids=listed(ids)).fetchall()


def ancestry(db: Database, scope: Scope, branch: str) -> list[tuple[str, int]]:
    return db.ask("ancestry", scope=scope, branch=branch).fetchall()


def calls(db: Database, scope: Scope, branch: str, since: int = 0) -> list[Call]:
    events = own(db.ask("events", scope=scope, branch=branch, until=FOREVER, since=since))
    usage = {start: note_of("usage", note)["usage"] for *_, kind, start, _, _, _, note in events if kind == "usage"}
    return [
        call_of(made_on, seq, said, note, at, usage.get(seq))
        for made_on, seq, at, kind, _, said, _, _, note in events
        if kind == "call" and UNSENT not in usage.get(seq, ())
    ]


def events(db: Database, scope: Scope, branch: str, until: int | None = None) -> list[Happened]:
    rows = own(db.ask("own_events", scope=scope, branch=branch, until=FOREVER if until is None else until))
    found = [Happened(seq, at, read_row(*columns)) for _, seq, at, *columns in rows]
    for event in found:  # whoever gets them reads their notes: damage is to show here
        event_of(event.row, branch, event.seq, lambda node: Node(node, "", ABSENT))
    return found


def branches(db: Database, scope: Scope) -> list[BranchInfo]:
    return [BranchInfo(*row) for row in db.ask("branches", scope=scope)]


def purged(db: Database, scope: Scope, short: str) -> Purged | None:
    """Why there is nothing that begins like this, if that is because it was purged."""
    found = db.ask("tombstones", scope=scope, short=short).fetchall()
    return _purged(*found[0]) if found else None


def missing(db: Database, scope: Scope, branch: str) -> NotFound:
    """The error that says why a branch is not there."""
    return purged(db, scope, branch) or NotFound(f"no branch {branch} in this scope")


def _purged(id: str, at: float, reason: str) -> Purged:
    forget()  # perhaps another process purged it
    return Purged(f"{id[:SHORT]} was purged {local(at):%Y-%m-%d}: {reason}")


def idle(db: Database, scope: Scope, before: float) -> list[str]:
    return [row[0] for row in db.ask("idle", scope=scope, before=before)]


def learned(db: Database, scope: Scope, kind: str) -> dict[str, dict[str, Any]]:
    rows = db.ask("learned", scope=scope, kind=kind)
    return {name: rawjson.loads(value) for name, value in rows}


def _first(rows: Rows) -> Any:
    row = rows.fetchone()
    return row[0] if row else None
