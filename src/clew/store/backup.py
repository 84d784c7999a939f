"""A store file copied while others write to it, and put back without losing the one that is there."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

from clew.errors import StoreError
from clew.store.opening import prepare_file
from clew.store.upkeep import Progress

STEP = 1_000  # pages copied between two reports
BESIDE = ("-wal", "-shm")  # what SQLite keeps next to a file


def backup(source: sqlite3.Connection, target: Path, force: bool = False, progress: Progress | None = None) -> int:
    """Copy a store, as it is at this moment, to a private file; how many bytes it has. Whole or not at all."""
    target = target.expanduser()
    _refuse_taken(source, target, force)
    with _part(target) as part:
        _copy(source, part, progress)
        _verify(part)
        size = part.stat().st_size
        part.replace(target)
    return size


def restore(source: Path, target: Path, progress: Progress | None = None) -> Path | None:
    """Put a backup where the store is; where the store that was there is now, if one was."""
    source, target = source.expanduser(), target.expanduser()
    if not source.is_file() or not source.stat().st_size:
        raise StoreError(f"{source}: no backup there; give the file that clew backup wrote")
    prepare_file(source)  # only checks whose it is: the file is there, and is not empty
    if target.exists() and source.samefile(target):
        raise StoreError(f"{source}: is the store itself; give the file that clew backup wrote")
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _part(target) as part:
        try:
            with closing(_open(source)) as db:
                _copy(db, part, progress)
        except sqlite3.Error as error:
            raise StoreError(f"{source}: {error}; is there another backup?") from error
        _verify(part)
        prepare_file(part)  # the version in the header may have been in the source's write-ahead log
        aside = _set_aside(target)
        part.replace(target)
    return aside


def _refuse_taken(source: sqlite3.Connection, target: Path, force: bool) -> None:
    own = source.execute("pragma database_list").fetchone()[2]
    if own and target.exists() and target.samefile(own):
        raise StoreError(f"{target}: is the store itself; choose another place")
    if any(Path(f"{target}{end}").exists() for end in BESIDE):
        raise StoreError(f"{target}: is a database in use; choose another place")
    if target.exists() and not force:
        raise StoreError(f"{target}: exists; choose another name, or --force to write over it")


@contextmanager
def _part(target: Path) -> Iterator[Path]:
    """A private file beside the target, gone again if it does not become it."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise StoreError(f"{target}: cannot be written ({error.strerror}); choose another place") from None
    os.close(handle)
    part = Path(name)
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def _copy(source: sqlite3.Connection, part: Path, progress: Progress | None) -> None:
    def report(_: int, left: int, pages: int) -> None:
        if progress:
            progress(pages - left, pages)

    with closing(sqlite3.connect(part)) as copy:
        # One snapshot throughout: without it, each write of somebody else would start the copy anew.
        source.execute("begin")
        try:
            source.execute("select count(*) from sqlite_master").fetchone()
            source.backup(copy, pages=STEP, progress=report, sleep=0)
        finally:
            source.execute("rollback")
        copy.execute("pragma journal_mode = delete")  # one file, with nothing beside it
    with part.open("rb+") as file:
        os.fsync(file.fileno())


def _verify(part: Path) -> None:
    with closing(sqlite3.connect(part)) as db:
        try:
            found = db.execute("pragma integrity_check(1)").fetchone()[0]
        except sqlite3.DatabaseError as error:
            found = str(error)
    if found != "ok":
        raise StoreError(f"the copy is damaged, and was not kept: {found}; see clew doctor")


def _open(path: Path) -> sqlite3.Connection:
    """A connection that leaves no trace beside a file which has nothing beside it."""
    alone = not any(Path(f"{path}{end}").exists() for end in BESIDE)
    uri = f"{path.resolve().as_uri()}?{'immutable=1' if alone else 'mode=ro'}"
    return sqlite3.connect(uri, uri=True, isolation_level=None)


def _set_aside(path: Path) -> Path | None:
    """Move the store that is there, and what is beside it, to a dated name."""
    if not path.exists() or not path.stat().st_size:
        return None
    prepare_file(path)  # somebody else's file is not ours to move
    _settle(path)
    aside = path.with_name(f"{path.name}.{datetime.now():%Y-%m-%d-%H%M%S}")
    if aside.exists():
        raise StoreError(f"{aside}: exists; try again in a second")
    for end in ("", *BESIDE):
        beside = Path(f"{path}{end}")
        if beside.exists():
            beside.rename(f"{aside}{end}")
    return aside


def _settle(path: Path) -> None:
    """Bring the write-ahead log home, which needs the file to ourselves; a damaged one is moved as it is."""
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as db:
        try:
            db.execute("pragma journal_mode = delete")
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise StoreError(f"{path}: another process has it open; stop that first") from None
