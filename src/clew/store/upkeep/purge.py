"""Taking branches out of the log for good.

What a remaining branch refers to stays. Where it forked from one that goes, it inherits the events of its own past.
What it tells of one that goes without having said it (summaries, answers of tools, stand-ins) goes.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

from clew.core.items import Digests, Scope, new_id
from clew.store import reading
from clew.store.database import Database
from clew.store.packing import listed, unpack
from clew.store.rows import note_of
from clew.store.upkeep.quoting import blank, followers, holding, places, quoting
from clew.store.writing import owner_of

LISTS = (
    "going",
    "kept",
    "loose",
    "spare",
)  # temporary tables: the branches; nodes that stay, that go; contents of those
COUNTS = ("branches", "events", "nodes", "bodies", "frames", "bytes")
WIPED, LEFT_TO_VACUUM = 1, 2  # as `purge.wiped` says it
SOME_BODIES = 1_000  # deleted by one statement


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
    left_to_vacuum: bool = False  # the tables are too large to be written anew: the server uses the room again

    def add(self, more: "Purge") -> None:
        """Count what another one took, too."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(more, name))


@dataclass(frozen=True, slots=True)
class Audit:
    """One purge that was made."""

    at: float
    scope: Scope
    asked: str
    reason: str
    took: Purge


class Descent(NamedTuple):
    """Where a branch comes from."""

    parent: str | None
    parent_seq: int | None
    cause: str


class Heir(NamedTuple):
    """Who gets the events of a branch that goes, up to which one; nobody, if no remaining branch needs them."""

    branch: str | None
    until: int


def purge_branches(
    db: Database,
    digests: Digests,
    scope: Scope,
    branches: Collection[str],
    reason: str,
    dry_run: bool,
    before: float | None = None,
) -> Purge:
    """Take branches away; with `dry_run`, only say what would go. With `before`, those on which nothing happened since.

    Reads and writes what belongs to these branches and to those that go on from them, however much else there is.
    """
    with db.trial() if dry_run else db.transaction():
        owner = owner_of(db, scope)
        db.ask("begin_purge", owner=owner)
        if before is not None:  # whoever chose them did so before this moment: some may have gone on, or are gone
            idle = db.ask("idle_among", owner=owner, branches=listed(branches), before=before)
            branches = [branch for (branch,) in idle.fetchall()]
        took = Purge(branches=len(set(branches)))
        if branches:
            _purge(db, digests, scope, owner, branches, reason, took)
            if not dry_run:
                merge(db)
    return took


def _purge(
    db: Database, digests: Digests, scope: Scope, owner: int, branches: Collection[str], reason: str, took: Purge
) -> None:
    rows = db.ask("lines_among", owner=owner, branches=listed(branches)).fetchall()
    lines = {id: Descent(*line) for id, *line in rows}
    for branch in branches:
        if branch not in lines:
            raise reading.missing(db, scope, branch)
    moved, heirs = inherit(lines, set(branches))
    for table in LISTS:
        db.ask(f"make_{table}")
    db.many("add_going", [{"id": id, "heir": heir, "until": until} for id, (heir, until) in heirs.items()])
    db.ask("count_lists")
    asked = f"branches {', '.join(branches)}" if db.ask("another_branch", owner=owner).fetchone() else "all branches"
    given = {"owner": owner, "purge": begin(db, owner, asked, reason)}
    for branch in (id for id, heir in heirs.items() if heir.branch):
        _rename(db, owner, branch)
    frames = _share_out(db, given)
    _choose(db, given)
    _untell(db, digests, scope, given, set(branches), reason, took)
    _leave(db, given, took, any(heir.branch for heir in heirs.values()))
    for branch, line in moved.items():
        db.ask("move_branch", branch=branch, **line._asdict())
    _sweep(db, given, took)
    _drop_frames(db, given, frames, took)
    for table in LISTS:
        db.ask(f"drop_{table}")
    end(db, given, took)


def inherit(lines: Mapping[str, Descent], gone: Collection[str]) -> tuple[dict[str, Descent], dict[str, Heir]]:
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


def parents_first(lines: Mapping[str, Descent]) -> list[str]:
    parents = {id: [line.parent] if line.parent in lines else [] for id, line in lines.items()}
    return [id for id in TopologicalSorter(parents).static_order() if id is not None]


def _share_out(db: Database, given: Mapping[str, Any]) -> list[str]:
    """List the nodes that may go, and those that heirs need; the frames that may go."""
    frames = [digest for (digest,) in db.ask("going_frames").fetchall()]
    loose, kept = set[str](), dict[str, set[str]]()
    uses = set[tuple[str, str]]()
    for heir, inherited, kind, new, note in db.ask("going_events"):
        if not inherited:
            loose.update(unpack(new))
            continue
        kept.setdefault(heir, set()).update(unpack(new))
        if kind == "call":
            uses.add((note_of("call", note)["frame"], heir))
    db.ask("add_loose", **given, ids=listed(loose))
    for heir, ids in kept.items():
        db.ask("add_kept", branch=heir, ids=listed(ids))
    db.many("add_frame_use", [{**given, "digest": digest, "branch": heir} for digest, heir in sorted(uses)])
    db.ask("purge_frame_use")
    db.ask("count_lists")
    return frames


def _leave(db: Database, given: Mapping[str, Any], took: Purge, inherited: bool) -> None:
    """Give heirs what is theirs, and delete the rest of what belongs to the branches that go."""
    for table in ("events", "sessions", "handles", "heads") if inherited else ():
        db.ask(f"bequeath_{table}", **given)
    db.ask("bury_handles", **given)
    db.ask("orphan_sessions", **given)
    took.events = db.ask("purge_events").rowcount
    for table in ("handles", "heads", "checkpoints", "sessions", "branches"):
        db.ask(f"purge_{table}", **given)


def _rename(db: Database, owner: int, branch: str) -> None:
    """Free the name of a branch that goes while its first session stays: the branch may be opened again."""
    given = {"session": branch, "to": new_id()}
    db.ask("rename_session", **given)
    db.ask("rename_parent", owner=owner, **given)


def _choose(db: Database, given: Mapping[str, Any]) -> None:
    """Leave in the list of nodes that may go only those that no remaining branch refers to."""
    db.ask("keep_first_said", **given)
    db.ask("keep_said_again", **given)
    db.ask("drop_kept_loose")
    db.ask("add_spare", **given)
    db.ask("count_lists")


def _untell(
    db: Database,
    digests: Digests,
    scope: Scope,
    given: Mapping[str, Any],
    leaving: Collection[str],
    reason: str,
    took: Purge,
) -> None:
    """Put a note where branches that go on from these tell what was said there: summaries, answers, stand-ins."""
    telling = followers(db, given["owner"], leaving).difference(leaving)
    if not telling:
        return
    from clew.store.upkeep.copies import copies_on  # knows clients' words, which take long to load

    now = time.time()
    note = purge_note(now, reason)
    gone, kept = ({id for (id,) in db.ask(name, **given).fetchall()} for name in ("loose_ids", "kept_ids"))
    notes = dict.fromkeys(copies_on(db, scope, telling, gone, kept), note)
    told = {place for content in notes for place, _ in places(db, given["owner"], content)}
    holders = holding(db, given["owner"], told).difference(leaving)
    whose = {"holders": holders, "telling": telling | holders, "leaving": leaving}
    notes = quoting(db, digests, scope, given, gone | told, note, **whose) | notes
    for content, text in notes.items():
        blank(db, {**given, "at": now, "content": content}, text, took)


def _sweep(db: Database, given: Mapping[str, Any], took: Purge) -> None:
    """Delete the nodes that no remaining branch refers to, and the bodies that no node does."""
    db.ask("bury_nodes", **given)
    took.nodes += db.ask("purge_nodes", **given).rowcount
    db.ask("bequeath_nodes", **given)
    db.ask("purge_said_again", **given)
    db.ask("bequeath_said_again", **given)
    db.ask("unbury", **given)
    db.ask("bury_branches", **given)
    bodies, size = _drop_bodies(db, db.ask("spare_bodies", **given).fetchall())
    took.bodies += bodies
    took.bytes += size


def _drop_frames(db: Database, given: Mapping[str, Any], frames: list[str], took: Purge) -> None:
    """Delete those of these frames that no remaining branch has a call with, and the long parts of them."""
    parts = [part for (part,) in db.ask("parts_of_frames", **given, digests=listed(frames)).fetchall()]
    both = listed([*frames, *parts])
    size = _number(db, "frames_size", {**given, "digests": both})
    took.frames = db.ask("purge_frames", **given, digests=listed(frames)).rowcount
    db.ask("purge_frame_parts", **given, digests=listed(parts))
    took.bytes += size - _number(db, "frames_size", {**given, "digests": both})


def drop_loose_bodies(db: Database) -> None:
    """Delete the bodies that no node refers to."""
    _drop_bodies(db, db.ask("loose_bodies").fetchall())


def _drop_bodies(db: Database, rows: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Delete bodies, by number and size, and their words; how many, and their bytes."""
    for at in range(0, len(rows), SOME_BODIES):
        some = [body for body, _ in rows[at : at + SOME_BODIES]]
        db.forget_words(some)
        db.ask("purge_bodies", bodies=listed(some))
    return len(rows), sum(size for _, size in rows)


# --- any purge --------------------------------------------------------------------------------------------------------


def audits(db: Database) -> list[Audit]:
    """Every purge that was made, the newest first."""
    return [_audit(*row) for row in db.ask("purges")]


def _audit(at: float, scope: Scope, asked: str, reason: str, *took: int) -> Audit:
    *counts, wiped = took
    made = dict(zip(COUNTS, counts, strict=True))
    return Audit(at, scope, asked, reason, Purge(**made, wiped=wiped == WIPED, left_to_vacuum=wiped == LEFT_TO_VACUUM))


def begin(db: Database, owner: int, asked: str, reason: str) -> int:
    return db.add("add_purge", owner=owner, at=time.time(), asked=asked, reason=reason)


def purge_note(at: float, reason: str) -> str:
    """What stands in the place of words that went."""
    return f"purged {datetime.fromtimestamp(at):%Y-%m-%d}: {reason}"


def end(db: Database, given: Mapping[str, Any], took: Purge) -> None:
    db.ask("count_purge", **asdict(took), purge=given["purge"])


def merge(db: Database) -> None:
    # A deletion is an entry of its own in the index, with the word in it, until all is merged into one.
    db.ask("merge_index")


def _number(db: Database, name: str, given: Mapping[str, Any]) -> int:
    return int(db.ask(name, **given).fetchone()[0])
