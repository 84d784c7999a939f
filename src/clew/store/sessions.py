"""Sessions: stretches of branches. Kept beside the log, in the transaction that writes it, for whoever lists them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from clew.core import rawjson
from clew.core.items import Scope
from clew.errors import NotFound
from clew.store.database import Database, LaterRows
from clew.store.records import UNSENT, Batch, Began, Call, Event, Revert, Said, Session, StoreState, Usage

_NOTHING: Mapping[str, Any] = dict.fromkeys(("items", "calls", "sent", "input", "output", "cached", "cost"), 0)


def last_of(db: Database, batch: Batch) -> LaterRows:
    """The session in which a branch goes on, and its first event."""
    return db.later("session_at", branch=batch.branch, until=batch.seq + len(batch.events))


def keep(db: Database, owner: int, batch: Batch, times: Sequence[float], last: tuple[str, int]) -> None:
    """Let the sessions of a branch be what a batch makes of them, whose events happened at these times.

    `last` is the session in which it goes on, and its first event.
    """
    here, first = last
    begun = [(first, here)]
    totals = Counter[str]()
    model = ""
    for seq, (event, at) in enumerate(zip(batch.events, times, strict=True), batch.seq):
        match event:
            case Began():
                add(db, here, totals, model)
                db.ask("end_session", session=here, cause=event.cause, at=at)
                given = {"session": event.session, "cause": event.cause, "method": event.method}
                place = {"owner": owner, "branch": batch.branch, "seq": seq, "parent": here, "parent_seq": seq - 1}
                db.ask("add_session", **given, **place, opening=0, at=at)
                here, totals = event.session, Counter()
                begun.append((seq, here))
            case Usage():
                known = next((session for first, session in reversed(begun) if first <= event.seq), None)
                add(db, known or _at(db, batch.branch, event.seq), reported(event))
            case Revert(sessions=undone):
                for session in undone:  # one of a parent's stands there: only here it was taken back
                    db.ask("undo_session", session=session, owner=owner, branch=batch.branch, at=at)
            case _:
                totals.update(_totals(event))
                model = event.model if isinstance(event, Call) else model
    add(db, here, totals, model)


def open_first(db: Database, owner: int, batch: Batch, now: float) -> None:
    """The first session of a branch, after the one that it forked from or was begun in."""
    parent: str | None = None
    parent_seq: int | None = None
    if batch.fork:
        parent, parent_seq = _at(db, batch.fork.parent, batch.fork.seq), batch.fork.seq
    elif batch.origin and batch.origin.parent:
        found = db.ask("session_end", session=batch.origin.parent, owner=owner).fetchone()
        if found is None:
            raise NotFound(f"the parent session {batch.origin.parent} is not in this scope")
        branch, first, last = found
        parent_seq = last if batch.origin.seq is None else batch.origin.seq
        # Of a fork in which nothing happened yet all that came before is its parent's, and the child is its own.
        parent = _at(db, branch, max(first, parent_seq))
    given = {"session": batch.branch, "owner": owner, "branch": batch.branch, "seq": batch.seq, "opening": 1}
    cause = cause_of(batch)
    db.ask("add_session", **given, parent=parent, parent_seq=parent_seq, cause=cause, method="", at=now)
    if cause == "handoff" and parent:
        db.ask("end_session", session=parent, cause=cause, at=now)


def cause_of(batch: Batch) -> str:
    """Why a branch begins."""
    return batch.origin.cause if batch.origin else "fork" if batch.fork else "start"


def _at(db: Database, branch: str, seq: int) -> str:
    """The session that an event belongs to."""
    return str(db.ask("session_at", branch=branch, until=seq).fetchone()[0])


def _totals(event: Event) -> Mapping[str, float]:
    match event:
        case Said(nodes):
            return {"items": len(nodes)}
        case Call(predicted=tokens):
            return {"calls": 1, "sent": tokens}
        case _:
            return {}


def reported(event: Usage) -> Mapping[str, float]:
    """What a report adds to the session in which its call was made."""
    usage = event.usage
    if UNSENT in usage:
        return {"calls": -1, "sent": -usage[UNSENT]}
    names = {"input": "input", "output": "output", "cached": "cache_read"}
    return {name: usage.get(key) or 0 for name, key in names.items()} | {"cost": event.cost or 0.0}


def add(db: Database, session: str, totals: Mapping[str, float], model: str = "") -> None:
    """Let a session have come to so much more."""
    if totals or model:
        db.ask("add_totals", **{**_NOTHING, **totals}, session=session, model=model)


# --- for people -------------------------------------------------------------------------------------------------------


def sessions(db: Database, scope: Scope, branch: str | None = None) -> list[Session]:
    """Every session of a scope, or of a branch, newest first."""
    rows = db.ask("sessions", scope=scope, branch=branch)
    return [Session(*(*row[:-2], _tags(row[-2]), row[-1])) for row in rows]


def _tags(text: str) -> tuple[str, ...]:
    return () if text == "[]" else tuple(rawjson.loads(text))


def state(db: Database, scope: Scope, branch: str | None = None) -> StoreState:
    """How far a scope, or a branch, has come."""
    purges, *sums = db.ask("state", scope=scope, branch=branch).fetchone()
    return StoreState(int(purges), tuple(float(n) for n in sums))
