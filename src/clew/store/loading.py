"""Branches read from the log: from the nearest checkpoint on, if there is one, else from their first event."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clew.core.items import Edit, Node, Scope
from clew.errors import BadRequest
from clew.facts.chapters import Chapter
from clew.store.checkpoint import PACKING, Checkpoint, Replayed, packed, unpacked
from clew.store.database import Database
from clew.store.packing import listed, unpack
from clew.store.records import ABSENT, Revert
from clew.store.rows import event_of, read_row
from clew.store.trace import Trace, apply

FOREVER = 1 << 62  # past every sequence number
ASKED = 2_000  # events after which it is asked whether a checkpoint is due
SHARE = 32  # of all events, new: what is written of it for each event then stays the same, however many there are

# What reading damaged rows raises.
DAMAGE = (BadRequest, LookupError, TypeError, ValueError, AttributeError, RecursionError)


def restore(db: Database, scope: Scope, trace: Trace, until: int, lazy: bool = False) -> Replayed:
    """An empty trace of a branch, replayed up to and with an event."""
    place = {"scope": scope, "branch": trace.branch, "until": until}
    state = _nearest(db, place, trace, lazy)
    events = own(db.ask("events", **place, since=state.trace.seq))
    _replay(db, scope, state, ((seq, columns) for _, seq, _, *columns in events), [event[7] for event in events])
    return state


def replay(db: Database, scope: Scope, branch: str, session: str | None, until: int) -> Trace:
    """A branch replayed from its first event, whatever checkpoints there are."""
    state = Replayed(Trace(branch, session=session))
    events = own(db.ask("events", scope=scope, branch=branch, until=until, since=0))
    _replay(db, scope, state, ((seq, columns) for _, seq, _, *columns in events), [event[7] for event in events])
    return state.trace


def go_on(db: Database, scope: Scope, trace: Trace) -> set[str]:
    """Let what happened on a branch since happen to a trace of it; what kinds of events that were."""
    events = own(db.ask("newer_events", branch=trace.branch, since=trace.seq))
    _replay(db, scope, Replayed(trace), ((seq, columns) for _, seq, *columns in events), [event[6] for event in events])
    return {event[2] for event in events}


def own(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows of events without what was asked for, the branch that each begins with. Raises `ValueError`.

    An index whose pages are damaged leads to events of other conversations: what a row itself says counts.
    """
    found, last = [], -1
    for asked, *row in rows:
        if row[0] != asked or row[1] <= last:
            raise ValueError(f"events of {asked} are not where they belong")
        last = row[1]
        found.append(tuple(row))
    return found


def _replay(
    db: Database, scope: Scope, state: Replayed, rows: Iterable[tuple[int, Sequence[Any]]], new: Iterable[bytes | None]
) -> None:
    content_of = contents(db, scope, {id for ids in new for id in unpack(ids)})
    trace = state.trace
    for seq, columns in rows:
        trace.seq = seq
        event = event_of(read_row(*columns), trace.branch, seq, lambda at: Node(at, content_of[at], ABSENT))
        apply(trace, event)
        if isinstance(event, Edit | Chapter):
            state.at[id(event)] = seq
        elif isinstance(event, Revert):
            state.settled = len(trace.edits)


def contents(db: Database, scope: Scope, ids: Iterable[str]) -> dict[str, str]:
    """The contents of these nodes, by id."""
    return dict(db.ask("contents", scope=scope, ids=listed(ids)).fetchall())


# --- checkpoints ------------------------------------------------------------------------------------------------------


def _nearest(db: Database, place: Mapping[str, Any], trace: Trace, lazy: bool) -> Replayed:
    """The newest checkpoint on the way to an event, also one of a parent; nothing, if there is none that is whole."""
    found = db.ask("nearest_checkpoint", **place, version=PACKING).fetchone()
    if found:
        empty = Trace(trace.branch, session=trace.session)
        try:
            return unpacked(Checkpoint(*found), empty, lambda seqs: _edits(db, place, seqs), lazy)
        except DAMAGE:  # all that it says is in the log, too
            pass
    return Replayed(trace)


def _edits(db: Database, place: Mapping[str, Any], seqs: Sequence[int]) -> dict[int, Edit | Chapter]:
    rows = own(db.ask("edits_at", **place, seqs=listed(seqs))) if seqs else []
    content_of = contents(db, place["scope"], {id for row in rows for id in unpack(row[4])}) if rows else {}
    found: dict[int, Edit | Chapter] = {}
    for _, seq, kind, old, new, note in rows:
        row = read_row(kind, None, None, old, new, note)
        event = event_of(row, place["branch"], seq, lambda at: Node(at, content_of[at], ABSENT))
        assert isinstance(event, Edit | Chapter)
        found[seq] = event
    return found


def keep_checkpoint(db: Database, scope: Scope, branch: str, first: int, next: int, every: int = ASKED) -> None:
    """Make a checkpoint after the events from `first` to before `next` were written, if it is time for one."""
    if first // every == next // every:
        return  # asked once in so many events, so that turns need not ask
    known = db.ask("newest_checkpoint", scope=scope, branch=branch, until=FOREVER, version=PACKING).fetchone()[0] or 0
    if next - known >= max(every // 2, next // SHARE):
        make_checkpoint(db, scope, branch)


def make_checkpoint(db: Database, scope: Scope, branch: str) -> None:
    """Make a checkpoint of a branch as it is now, in place of the one there is."""
    try:
        made = packed(restore(db, scope, Trace(branch), FOREVER, lazy=True))
    except DAMAGE:
        return  # of a damaged log; a turn is written all the same
    db.ask("put_checkpoint", branch=branch, seq=made.seq, version=PACKING, data=made.data)


def keep_all(db: Database) -> None:
    """Drop all checkpoints, and make those anew that are worth it."""
    db.ask("drop_checkpoints")
    for branch, scope, newest in db.ask("newest_events").fetchall():
        keep_checkpoint(db, scope, branch, 0, newest + 1)


def is_right(db: Database, scope: Scope, branch: str, session: str | None) -> bool | None:
    """Whether the checkpoint of a branch says what its events say; None if those cannot be read."""
    with db.snapshot():
        found = db.ask("checkpoint", branch=branch, version=PACKING).fetchone()
        if found is None:
            return True  # gone meanwhile, or nobody reads it
        made = Checkpoint(*found)
        place = {"scope": scope, "branch": branch, "until": made.seq - 1}
        try:
            told = replay(db, scope, branch, session, made.seq - 1)
        except DAMAGE:
            return None
        try:
            state = unpacked(made, Trace(branch, session=session), lambda seqs: _edits(db, place, seqs))
        except DAMAGE:
            return False
    return state.trace == told
