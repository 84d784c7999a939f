"""Listing sessions again whose rows were lost: the log says where each began, and what happened in it."""

from collections import Counter
from typing import NamedTuple

from clew.store.database import Database
from clew.store.packing import unpack
from clew.store.records import Usage
from clew.store.rows import note_of
from clew.store.sessions import add, reported


class Lost(NamedTuple):
    """Where a session began that is not listed."""

    owner: int
    branch: str
    seq: int
    note: bytes | str | None  # of its event; the first of a branch has none
    at: float
    cause: str | None  # of its branch
    before: str | None  # the branch it came of
    last: int | None  # and the event of it

    @property
    def opening(self) -> int:
        """1 if its branch begins with it."""
        return int(self.note is None)


def relist(db: Database) -> None:
    """List what is missing, and let go of what no branch is left of."""
    db.ask("drop_loose_sessions")
    lost = [Lost(*row) for name in ("lost_firsts", "lost_sessions") for row in db.ask(name).fetchall()]
    names = [_list(db, one) for one in lost]
    # Only now: which one it came of, and where it ended, is known once all have their rows.
    for one, session in zip(lost, names, strict=True):
        if one.before is not None:
            _link(db, one, session)
        after = db.ask("next_session", branch=one.branch, seq=one.seq, opening=one.opening).fetchone()
        if after:
            db.ask("end_session", session=session, at=after[1], cause=after[2])
        _add_up(db, one, session, after[0] if after else None)
    db.ask("drop_loose_parents")


def _list(db: Database, lost: Lost) -> str:
    """Give a session its row again; its id."""
    began = note_of("session", lost.note) if lost.note is not None else {}
    session: str = began.get("session", lost.branch)
    given = {"session": session, "cause": began.get("cause", lost.cause), "method": began.get("method", "")}
    place = {"owner": lost.owner, "branch": lost.branch, "seq": lost.seq, "opening": lost.opening}
    db.ask("add_session", **given, **place, parent=None, parent_seq=None, at=lost.at)
    return session


def _link(db: Database, lost: Lost, session: str) -> None:
    """Let a session come of the one before it."""
    found = None if lost.opening else db.ask("opening_at", branch=lost.branch, seq=lost.seq).fetchone()
    found = found or db.ask("session_at", branch=lost.before, until=lost.last).fetchone()
    if found:
        db.ask("link_session", session=session, parent=found[0], parent_seq=lost.last)


def _add_up(db: Database, lost: Lost, session: str, stop: int | None) -> None:
    """What happened in it: usage is that of the calls made in it, whenever it was reported."""
    totals, model = Counter[str](), ""
    for seq, kind, start, new, note, at in db.ask("session_events", branch=lost.branch, since=lost.seq).fetchall():
        of = start if kind == "usage" else seq
        inside = of >= lost.seq and (stop is None or of < stop)
        told = note_of(kind, note)
        match kind:
            case "said" if inside:
                totals.update(items=len(unpack(new)))
            case "call" if inside:
                totals.update(calls=1, sent=told["predicted"])
                model = told["model"]
            case "usage" if inside:
                totals.update(reported(Usage(start, told["usage"], told.get("cost"))))
            case "revert" if session in told.get("sessions", ()):
                db.ask("undo_session", session=session, owner=lost.owner, branch=lost.branch, at=at)
    add(db, session, totals, model)
