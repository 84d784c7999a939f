"""Looking after a store file: what it holds, whether it is whole, and the repairs that cannot lose anything."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from clew.core import rawjson
from clew.core.items import Digests, Node, Scope
from clew.errors import ClewError
from clew.store.database import INDEX_DAMAGE, REPAIR, Database, Problem
from clew.store.loading import DAMAGE, FOREVER, is_right, keep_all
from clew.store.packing import is_intact, unpack_item
from clew.store.records import ABSENT
from clew.store.rows import event_of, read_row
from clew.store.shapes import NOTES
from clew.store.signs import first_pair
from clew.store.upkeep.purge import drop_loose_bodies
from clew.store.upkeep.relist import relist

Progress = Callable[[int, int], None]  # so many done, of so many

SAMPLE = 1_000  # bodies read again, unless all are
REPLAYED = 10  # branches replayed again, unless all are


@dataclass(frozen=True, slots=True)
class Shared:
    """Things said more than once and stored once."""

    places: int
    bodies: int
    saved: int  # bytes that their copies would have taken


@dataclass(frozen=True, slots=True)
class ScopeSize:
    """What one tenant has."""

    name: Scope
    branches: int
    sessions: int
    calls: int
    nodes: int
    bodies: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Declined:
    """Summaries that a model did not write, so that code did: how often, by what went wrong."""

    scope: Scope
    model: str
    faults: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Survey:
    """What a store holds and what it takes on disk, in bytes."""

    path: str
    file: int
    wal: int
    free: int  # in the file, to be used again
    bodies: int
    said: int  # the bodies before compression
    stored: int  # and after it
    texts: Shared
    media: Shared
    frames: int
    frame_bytes: int
    body_pages: int  # of the file, with what rows and pages take themselves
    index_pages: int  # of the file, for full-text search
    exact: bool  # whether pages could be counted; else they are estimates
    scopes: tuple[ScopeSize, ...]
    declined: tuple[Declined, ...] = ()


# --- survey -----------------------------------------------------------------------------------------------------------


def survey(db: Database, path: str) -> Survey:
    """Measure a store."""
    bodies, said, stored = db.ask("survey_bodies").fetchone()
    frames, frame_bytes = db.ask("survey_frames").fetchone()
    sizes = db.sizes(stored)
    return Survey(
        path=path,
        file=sizes.file,
        wal=sizes.wal,
        free=sizes.free,
        bodies=bodies,
        said=said,
        stored=stored,
        texts=_shared(db, media=False),
        media=_shared(db, media=True),
        frames=frames,
        frame_bytes=frame_bytes,
        body_pages=sizes.bodies,
        index_pages=sizes.index,
        exact=sizes.exact,
        scopes=tuple(ScopeSize(*row) for row in db.ask("survey_scopes")),
        declined=tuple(Declined(scope, model, rawjson.loads(told)) for scope, model, told in db.ask("survey_declined")),
    )


def _shared(db: Database, media: bool) -> Shared:
    places, bodies, saved = db.ask("survey_shared", media=media).fetchone()
    return Shared(places or 0, bodies, saved or 0)


# --- checks -----------------------------------------------------------------------------------------------------------

CHECKS = {  # what each counts, and the remedy, if it is not a backup
    "check_lost": (
        "turns that were acknowledged and are not in the file: its write-ahead log was deleted, or it is an older copy",
        f"put the log back or restore a backup: `clew backup --restore FILE`; {REPAIR} forgets it",
    ),
    "check_events": ("events of no branch", None),
    "check_forks": ("branches that fork from no branch", None),
    "check_nodes": ("nodes without a body", None),
    "check_frames": ("calls whose frame is not there", None),
    "check_frame_parts": ("frames whose long parts are not there", None),
    "check_handles": ("recall ids of no event", None),
    "check_heads": ("histories of no branch", None),
    "check_sessions": ("sessions of no branch", REPAIR),
    "check_firsts": ("branches without a session", REPAIR),
    "check_began": ("sessions that the log has and the list of them has not", REPAIR),
    "check_listed": ("compactions in the list of sessions that the log does not have", None),
    "check_parents": ("sessions that came of one that is not there", REPAIR),
    "check_checkpoints": ("checkpoints of no branch", REPAIR),
    "check_bodies": ("bodies that no node refers to", REPAIR),
    "check_indexed": ("search entries of no body", REPAIR),
    "check_wiped": ("purges whose bytes may still be in the file", f"stop other clews, then {REPAIR}"),
}


def check(db: Database, secret: bytes, deep: bool, progress: Progress | None) -> list[Problem]:
    """Everything that is wrong with a store; `deep` reads every body again, not only some."""
    found = db.damage()
    for part in (
        _rows(db),
        _index(db),
        _newer(db),
        _events(db, deep),
        _checkpoints(db, deep),
        _bodies(db, secret, deep, progress),
    ):
        try:
            found += (problem for problem in part if problem.what not in {known.what for known in found})
        except db.errors as error:
            if db.is_busy(error):
                raise
            if not found:
                found.append(Problem(f"the file cannot be read: {error}", 1, db.restoring))
    return found


def _rows(db: Database) -> Iterator[Problem]:
    for name, (what, remedy) in CHECKS.items():
        if count := db.ask(name).fetchone()[0]:
            yield Problem(what, count, remedy or db.restoring)


def _index(db: Database) -> Iterator[Problem]:
    if db.readonly:
        return  # to check it is to write to it, as SQLite has it
    try:
        db.ask("check_index")
    except db.errors as error:
        if db.is_busy(error):
            raise
        yield Problem(INDEX_DAMAGE, 1, REPAIR)


def _newer(db: Database) -> Iterator[Problem]:
    """Events of kinds that this clew does not know: nothing is damaged, and nothing is to be restored."""
    if unknown := _unknown(db):
        what = f"events that a newer clew wrote and this one cannot read ({', '.join(unknown)})"
        yield Problem(what, sum(unknown.values()), "upgrade clew")


def _unknown(db: Database) -> dict[str, int]:
    """Kinds of events that have a name as clew gives them, and are not ours, with how many there are."""
    kinds = dict(db.ask("event_kinds").fetchall())
    return {k: n for k, n in kinds.items() if k not in NOTES and isinstance(k, str) and k.isidentifier()}


def _events(db: Database, deep: bool) -> Iterator[Problem]:
    """Read events again: is each one that clew writes?"""
    newer = _unknown(db)
    few = [] if deep else [db.ask("some_events", limit=SAMPLE).fetchall()]
    unreadable = 0
    for _, _, kind, old, new, note in chain.from_iterable(_all_events(db) if deep else few):
        if kind in newer:
            continue
        try:
            event_of(read_row(kind, None, None, old, new, note), "", 0, lambda at: Node(at, "", ABSENT))
        except DAMAGE:
            unreadable += 1
    if unreadable:
        yield Problem("events that cannot be read", unreadable, db.restoring)


def _all_events(db: Database) -> Iterator[list[Any]]:
    after = {"branch": "", "seq": -1}  # before all of them
    while rows := db.ask("all_events", **after, limit=SAMPLE).fetchall():
        yield rows
        after = dict(zip(after, rows[-1], strict=False))


def _checkpoints(db: Database, deep: bool) -> Iterator[Problem]:
    """Replay branches again: is what was kept of each what its events say?"""
    rows = db.ask("some_checkpoints", limit=FOREVER if deep else REPLAYED).fetchall()
    found = Counter(is_right(db, *row) for row in rows)
    if found[False]:
        yield Problem("checkpoints that do not match their events", found[False], REPAIR)
    if found[None] and not _unknown(db):
        yield Problem("branches whose events cannot be read", found[None], db.restoring)


def _bodies(db: Database, secret: bytes, deep: bool, progress: Progress | None) -> Iterator[Problem]:
    """Read bodies again: does each unpack, and say what its digest says, and is it found by its words?"""
    rows = db.ask("body_numbers") if deep else db.ask("some_body_numbers", limit=SAMPLE)
    numbers = rows.fetchall()
    digests: dict[Scope, Digests] = {}
    unreadable = changed = unindexed = outdated = 0
    for done, (body,) in enumerate(numbers):
        if progress:
            progress(done, len(numbers))
        row = db.ask("body_whole", body=body).fetchone()
        if row is None:
            continue  # purged meanwhile
        scope, content, *columns, indexed = row
        try:
            item = unpack_item(*columns)
            same = is_intact(digests.setdefault(scope, Digests(secret, scope)), content, item, *columns[-2:])
        except (ClewError, *DAMAGE):
            unreadable += 1
            continue
        changed += not same
        unindexed += bool(item.text) and not indexed
        outdated += bool(indexed) and _is_outdated(db, body, item.text)
    if unreadable:
        yield Problem("bodies that cannot be read", unreadable, db.restoring)
    if changed:
        yield Problem("bodies that do not match their digest", changed, db.restoring)
    if unindexed:
        yield Problem("bodies missing from the search index", unindexed, REPAIR)
    if outdated:
        yield Problem(
            "bodies in Chinese, Japanese, Korean, Thai or the like that an older clew indexed", outdated, REPAIR
        )


def _is_outdated(db: Database, body: int, text: str) -> bool:
    """Whether a text with signs has no pairs of them in the index."""
    pair = first_pair(text)
    try:
        return pair is not None and not db.is_found(body, pair)
    except db.errors as error:
        if db.is_busy(error):
            raise
        return False  # damage, which is told elsewhere


# --- repairs ----------------------------------------------------------------------------------------------------------


def repair(db: Database, progress: Progress | None) -> None:
    """Delete bodies that no node refers to, make the search index anew from those that stay, list lost sessions,
    and make checkpoints anew.
    """
    with db.transaction():
        db.ask("begin_repair")
        # The index first: it may be what is damaged, and a body leaves it with its words.
        _reindex(db, progress)
        drop_loose_bodies(db)
        db.ask("forget_declined")
        db.ask("forget_lost")
        db.ask("merge_index")
        relist(db)
        keep_all(db)


def _reindex(db: Database, progress: Progress | None) -> None:
    db.ask("empty_index")
    numbers = db.ask("body_numbers").fetchall()
    for done, (body,) in enumerate(numbers):
        if progress:
            progress(done, len(numbers))
        *stored, _ = db.ask("body_by_number", body=body).fetchone()
        try:
            text = unpack_item(None, *stored).text
        except (ClewError, *DAMAGE):
            continue  # damage that only a backup mends
        if text:
            db.many("add_text", [{"body": body, **part} for part in db.words(text)])
