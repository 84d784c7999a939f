"""Looking after a store file: what it holds, whether it is whole, and the repairs that cannot lose anything."""

import sqlite3
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from clew.errors import ClewError
from clew.items import Digests, Scope
from clew.store.packing import indexable, unpack_item
from clew.store.purging import drop_loose_bodies
from clew.store.queries import SQL
from clew.store.writing import transaction

Progress = Callable[[int, int], None]  # so many done, of so many

SAMPLE = 1_000  # bodies read again, unless all are
LINES = 100  # of what SQLite finds damaged


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
    exact: bool  # whether this SQLite can count pages; else they are estimates
    scopes: tuple[ScopeSize, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that should not be so."""

    what: str
    count: int
    remedy: str


# --- survey -----------------------------------------------------------------------------------------------------------


def survey(db: sqlite3.Connection, path: str) -> Survey:
    """Measure a store."""
    bodies, said, stored = db.execute(SQL["survey_bodies"]).fetchone()
    frames, frame_bytes = db.execute(SQL["survey_frames"]).fetchone()
    page = db.execute("pragma page_size").fetchone()[0]
    pages = db.execute("pragma page_count").fetchone()[0]
    body_pages, index_pages, exact = _pages(db, stored)
    return Survey(
        path=path,
        file=_size(Path(path)) or page * pages,
        wal=_size(Path(f"{path}-wal")),
        free=page * db.execute("pragma freelist_count").fetchone()[0],
        bodies=bodies,
        said=said,
        stored=stored,
        texts=_shared(db, media=False),
        media=_shared(db, media=True),
        frames=frames,
        frame_bytes=frame_bytes,
        body_pages=body_pages,
        index_pages=index_pages,
        exact=exact,
        scopes=tuple(ScopeSize(*row) for row in db.execute(SQL["survey_scopes"])),
    )


def _shared(db: sqlite3.Connection, media: bool) -> Shared:
    places, bodies, saved = db.execute(SQL["survey_shared"], {"media": media}).fetchone()
    return Shared(places or 0, bodies, saved or 0)


def _pages(db: sqlite3.Connection, stored: int) -> tuple[int, int, bool]:
    try:
        body, index = db.execute(SQL["survey_pages"]).fetchone()
        return body, index, True
    except sqlite3.OperationalError:  # this SQLite was built without dbstat
        return stored, db.execute(SQL["survey_index"]).fetchone()[0], False


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


# --- checks -----------------------------------------------------------------------------------------------------------

RESTORE = "restore a backup: clew restore FILE"
REPAIR = "clew doctor --repair"

CHECKS = {
    "check_events": ("events of no branch", RESTORE),
    "check_forks": ("branches that fork from no branch", RESTORE),
    "check_nodes": ("nodes without a body", RESTORE),
    "check_frames": ("calls whose frame is not there", RESTORE),
    "check_handles": ("recall ids of no event", RESTORE),
    "check_heads": ("histories of no branch", RESTORE),
    "check_bodies": ("bodies that no node refers to", REPAIR),
    "check_indexed": ("search entries of no body", REPAIR),
    "check_wiped": ("purges whose bytes may still be in the file", f"stop other clews, then {REPAIR}"),
}


def check(db: sqlite3.Connection, secret: bytes, deep: bool, progress: Progress | None) -> list[Problem]:
    """Everything that is wrong with a store; `deep` reads every body again, not only some."""
    try:
        return [*_file(db), *_rows(db), *_index(db), *_bodies(db, secret, deep, progress)]
    except sqlite3.DatabaseError as error:
        return [*_file(db), Problem(f"the file cannot be read: {error}", 1, RESTORE)]


def _file(db: sqlite3.Connection) -> Iterator[Problem]:
    try:
        found = [row[0] for row in db.execute(f"pragma integrity_check({LINES})")]
    except sqlite3.DatabaseError as error:
        found = [str(error)]
    if found != ["ok"]:
        yield Problem(f"damage in the file: {found[0]}", len(found), RESTORE)


def _rows(db: sqlite3.Connection) -> Iterator[Problem]:
    for name, (what, remedy) in CHECKS.items():
        if count := db.execute(SQL[name]).fetchone()[0]:
            yield Problem(what, count, remedy)


def _index(db: sqlite3.Connection) -> Iterator[Problem]:
    try:
        db.execute(SQL["check_index"])
    except sqlite3.DatabaseError:
        yield Problem("damage in the search index", 1, REPAIR)


def _bodies(db: sqlite3.Connection, secret: bytes, deep: bool, progress: Progress | None) -> Iterator[Problem]:
    """Read bodies again: does each unpack, and say what its digest says, and is it found by its words?"""
    rows = db.execute(SQL["body_numbers"]) if deep else db.execute(SQL["some_body_numbers"], {"limit": SAMPLE})
    numbers = rows.fetchall()
    digests: dict[Scope, Digests] = {}
    unreadable = changed = unindexed = 0
    for done, (body,) in enumerate(numbers):
        if progress:
            progress(done, len(numbers))
        row = db.execute(SQL["body_whole"], {"body": body}).fetchone()
        if row is None:
            continue  # purged meanwhile
        scope, content, *columns, indexed = row
        try:
            item = unpack_item(*columns)
            now = digests.setdefault(scope, Digests(secret, scope)).content(item)
        except (zlib.error, ClewError, ValueError, TypeError):
            unreadable += 1
            continue
        changed += now != content
        unindexed += bool(item.text) and not indexed
    if unreadable:
        yield Problem("bodies that cannot be read", unreadable, RESTORE)
    if changed:
        yield Problem("bodies that are not what was said", changed, RESTORE)
    if unindexed:
        yield Problem("bodies that search does not find", unindexed, REPAIR)


# --- repairs ----------------------------------------------------------------------------------------------------------


def repair(db: sqlite3.Connection, progress: Progress | None) -> None:
    """Delete bodies that no node refers to, and make the search index anew from those that stay."""
    with transaction(db):
        # The index first: it may be what is damaged, and a body leaves it with its words.
        _reindex(db, progress)
        drop_loose_bodies(db)
        db.execute(SQL["merge_index"])


def _reindex(db: sqlite3.Connection, progress: Progress | None) -> None:
    db.execute(SQL["empty_index"])
    numbers = db.execute(SQL["body_numbers"]).fetchall()
    for done, (body,) in enumerate(numbers):
        if progress:
            progress(done, len(numbers))
        *stored, _ = db.execute(SQL["body_by_number"], {"body": body}).fetchone()
        try:
            text = unpack_item(None, *stored).text
        except (zlib.error, ClewError, ValueError, TypeError):
            continue  # damage that only a backup mends
        if text:
            db.execute(SQL["add_text"], {"body": body, "text": indexable(text)})
