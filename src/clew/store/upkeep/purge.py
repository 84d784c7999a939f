"""Taking branches out of the log for good.

What a remaining branch refers to stays. Where it forked from one that goes, it inherits the events of its own past.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

from clew.core.items import Scope, new_id
from clew.store import reading
from clew.store.database import Database
from clew.store.packing import WIDTH, indexable, unpack_item
from clew.store.writing import owner_of


@dataclass(slots=True)
class Purge:
    """What a purge took away, or would."""

    branches: int = 0
    events: int = 0
    nodes: int = 0
    bodies: int = 0
    frames: int = 0
    bytes: int = 0  # as stored
    wiped: bool = False  # the bytes are gone from the file and its write-ahead log, too


@dataclass(frozen=True, slots=True)
class Audit:
    """One purge that was made."""

    at: float
    scope: Scope
    asked: str
    reason: str
    took: Purge


class Line(NamedTuple):
    """Where a branch comes from."""

    parent: str | None
    parent_seq: int | None
    cause: str


class Heir(NamedTuple):
    """Who gets the events of a branch that goes, up to which one; nobody, if no remaining branch needs them."""

    branch: str | None
    until: int


def purge_branches(db: Database, scope: Scope, branches: Collection[str], reason: str, dry_run: bool) -> Purge:
    """Take branches away; with `dry_run`, only say what would go."""
    took = Purge(branches=len(set(branches)))
    with db.trial() if dry_run else db.transaction():
        owner = owner_of(db, scope)
        db.ask("begin_purge", owner=owner)
        lines = lines_of(db, scope)
        for branch in branches:
            if branch not in lines:
                raise reading.missing(db, scope, branch)
        asked = "all branches" if lines.keys() == set(branches) else f"branches {', '.join(branches)}"
        given = {"owner": owner, "purge": begin(db, owner, asked, reason)}
        moved, heirs = inherit(lines, set(branches))
        db.ask("make_going")
        db.many("add_going", [{"id": id, "heir": heir, "until": until} for id, (heir, until) in heirs.items()])
        for branch in (id for id, heir in heirs.items() if heir.branch):
            _rename(db, branch)
        _leave(db, given, took)
        for branch, line in moved.items():
            db.ask("move_branch", branch=branch, **line._asdict())
        _sweep(db, given, took)
        db.ask("drop_going")
        if not dry_run:
            merge(db)
        end(db, given, took)
    return took


def inherit(lines: Mapping[str, Line], gone: Collection[str]) -> tuple[dict[str, Line], dict[str, Heir]]:
    """The new lines of branches that forked from one that goes, and who inherits what from each of those.

    The child that forked last takes over all that any child needs; the others become its children.
    """
    now = dict(lines)
    children: dict[str | None, list[str]] = {}
    for id, line in lines.items():
        children.setdefault(line.parent, []).append(id)
    heirs: dict[str, Heir] = {}
    for branch in reversed([id for id in parents_first(lines) if id in gone]):
        left = sorted(children.get(branch, ()), key=lambda child: (-(now[child].parent_seq or 0), child))
        own = now.pop(branch)
        siblings = children[own.parent]
        siblings.remove(branch)
        heirs[branch] = Heir(None, -1)
        if left:
            heir, *others = left
            until = now[heir].parent_seq or 0
            heirs[branch] = Heir(heir, until)
            now[heir] = own._replace(parent_seq=None if own.parent_seq is None else min(own.parent_seq, until))
            siblings.append(heir)
            for other in others:
                now[other] = now[other]._replace(parent=heir)
            children.setdefault(heir, []).extend(others)
    return {id: line for id, line in now.items() if line != lines[id]}, heirs


def parents_first(lines: Mapping[str, Line]) -> list[str]:
    parents = {id: [line.parent] if line.parent in lines else [] for id, line in lines.items()}
    return [id for id in TopologicalSorter(parents).static_order() if id is not None]


def lines_of(db: Database, scope: Scope) -> dict[str, Line]:
    return {id: Line(*line) for id, *line in db.ask("lines", scope=scope)}


def _leave(db: Database, given: Mapping[str, Any], took: Purge) -> None:
    """Give heirs what is theirs, and delete the rest of what belongs to the branches that go."""
    for table in ("events", "sessions", "handles", "heads"):
        db.ask(f"bequeath_{table}", **given)
    db.ask("bury_handles", **given)
    took.events = db.ask("purge_events").rowcount
    for table in ("handles", "heads", "checkpoints", "sessions", "branches"):
        db.ask(f"purge_{table}", **given)
    db.ask("orphan_sessions", **given)


def _rename(db: Database, branch: str) -> None:
    """Free the name of a branch that goes while its first session stays: the branch may be opened again."""
    given = {"session": branch, "to": new_id()}
    db.ask("rename_session", **given)
    db.ask("rename_parent", **given)


def _sweep(db: Database, given: Mapping[str, Any], took: Purge) -> None:
    """Delete nodes, bodies and frames that no event of the scope refers to."""
    db.ask("make_kept")
    rows = db.ask("references", **given)
    db.many("add_kept", ({"id": id, "branch": branch} for branch, *lists in rows for id in split(lists)))
    db.ask("bury_nodes", **given)
    took.nodes = db.ask("purge_nodes", **given).rowcount
    db.ask("bequeath_nodes", **given)
    db.ask("unbury", **given)
    db.ask("bury_branches", **given)
    db.ask("drop_kept")
    took.bodies, took.bytes = drop_loose_bodies(db, given["owner"])
    took.bytes += _number(db, "frames_size", given)
    took.frames = db.ask("purge_frames", **given).rowcount
    db.ask("purge_frame_parts", **given)
    took.bytes -= _number(db, "frames_size", given)


def drop_loose_bodies(db: Database, owner: int | None = None) -> tuple[int, int]:
    """Delete the bodies that no node refers to, in one scope or in all; how many, and their bytes."""
    count = size = 0
    for (body,) in db.ask("loose_bodies", owner=owner).fetchall():
        columns = db.ask("body_by_number", body=body).fetchone()
        unindex(db, body, columns)
        db.ask("purge_body", body=body)
        count, size = count + 1, size + len(columns[3])
    return count, size


# --- any purge --------------------------------------------------------------------------------------------------------


def audits(db: Database) -> list[Audit]:
    """Every purge that was made, the newest first."""
    rows = db.ask("purges")
    return [Audit(at, scope, asked, reason, Purge(*took)) for at, scope, asked, reason, *took in rows]


def begin(db: Database, owner: int, asked: str, reason: str) -> int:
    return db.add("add_purge", owner=owner, at=time.time(), asked=asked, reason=reason)


def end(db: Database, given: Mapping[str, Any], took: Purge) -> None:
    db.ask("count_purge", **asdict(took), purge=given["purge"])


def merge(db: Database) -> None:
    # A deletion is an entry of its own in the index, with the word in it, until all is merged into one.
    db.ask("merge_index")


def unindex(db: Database, body: int, columns: Sequence[Any]) -> None:
    *stored, purged = columns
    text = unpack_item(None, *stored).text
    if text and purged is None:
        db.ask("purge_text", body=body, text=indexable(text))


def split(lists: Sequence[bytes | None]) -> Iterator[bytes]:
    for packed in lists:
        for at in range(0, len(packed or b""), WIDTH):
            yield (packed or b"")[at : at + WIDTH]


def _number(db: Database, name: str, given: Mapping[str, Any]) -> int:
    return int(db.ask(name, **given).fetchone()[0])
