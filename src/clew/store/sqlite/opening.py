"""Opening a store file: foreign and newer files are refused untouched, older ones migrated, new ones made private."""

import os
import secrets
import sqlite3
import threading
import time
from collections import Counter, deque
from functools import cache
from importlib.resources import files
from pathlib import Path

from clew.errors import ForeignFile, NewerFile, StoreError
from clew.store.packing import listed, unpack
from clew.store.sqlite.watching import Identity, identity
from clew.store.waiting import PATIENCE

APPLICATION = 0x636C6577  # "clew", where SQLite files say whose they are
MAGIC = b"SQLite format 3\0"
BESIDE = ("-wal", "-shm")  # what SQLite keeps next to a file

_lock = threading.Lock()
_held = Counter[Identity]()  # files that this process has connections to
_released = deque[Identity]()  # and no longer has: taken off the next time that somebody has the lock


@cache
def migrations(dialect: str = "sqlite") -> tuple[str, ...]:
    """The scripts for a dialect, by number; a store's version is how many of them it has seen."""
    found = [f for f in files("clew.store").joinpath(dialect, "migrations").iterdir() if f.name.endswith(".sql")]
    return tuple(script.read_text(encoding="utf-8") for script in sorted(found, key=lambda f: f.name))


def hold(path: Path) -> Identity | None:
    """Prepare a file to be opened, and to be let go of by `release`."""
    with _lock:
        _settle()
        if (held := identity(path)) is None or held not in _held:
            _prepare(path)
            held = identity(path)
        if held is not None:
            _held[held] += 1
        return held


def release(held: Identity | None) -> None:
    """No more connections to a file that was held once.

    Without the lock: the garbage collector lets go of a store nobody closed, in any thread, also in one that has it.
    """
    if held is not None:
        _released.append(held)


def _settle() -> None:
    while _released:
        held = _released.popleft()
        _held[held] -= 1
        if not _held[held]:
            del _held[held]


def prepare_file(path: Path) -> None:
    """Make a new file that only its owner can read, or check that an old one is ours."""
    with _lock:
        # Once more would be once too often: whoever closes a file, however it was opened, lets go of all locks that its
        # process has on it, and then another process takes the write-ahead log for nobody's, and deletes it.
        _settle()
        if identity(path) not in _held:
            _prepare(path)


def _prepare(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            path.touch(0o600)
    except OSError as error:
        raise StoreError(f"{path}: cannot be created ({error.strerror}); choose another place") from None
    try:
        with path.open("rb") as file:
            begin = file.read(100)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror})") from None
    # Straight from the header, so that looking changes nothing: no -wal or -shm file appears beside a foreign database.
    if begin.strip(b"\0") and (begin[:16] != MAGIC or int.from_bytes(begin[68:72]) != APPLICATION):
        raise ForeignFile(f"{path}: exists and is not a clew store; choose another place")
    refuse_newer(str(path), int.from_bytes(begin[60:64]))
    if not begin:
        path.chmod(0o600)  # an empty file that somebody else made is about to hold what was said


def is_readonly(path: Path) -> bool:
    """Whether a file that is there can be read here, and no more."""
    return path.exists() and not (os.access(path, os.W_OK) and os.access(path.resolve().parent, os.W_OK))


def connect_readonly(path: Path) -> sqlite3.Connection:
    """A connection that leaves no trace beside a file, and needs to leave none."""
    wal, shm = (Path(f"{path.resolve()}{end}") for end in BESIDE)
    # Whoever writes has a log beside it, and an index of that: where there is none, nobody does.
    alone = not wal.exists() or (not wal.stat().st_size and not shm.exists())
    uri = f"{path.resolve().as_uri()}?{'immutable=1' if alone else 'mode=ro'}"
    db = sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    db.create_function("from_hex", 1, bytes.fromhex, deterministic=True)
    return db


def refuse_older(db: sqlite3.Connection, path: str) -> None:
    """What cannot be written cannot be brought up to date."""
    if db.execute("pragma user_version").fetchone()[0] < len(migrations()):
        raise StoreError(f"{path}: written by an older clew and read-only; copy it to a writable place to migrate it")


def connect(path: str, migrate: bool = False, patience: float = PATIENCE) -> sqlite3.Connection:
    """A connection whose transactions are ours to begin and end."""
    db = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
    try:
        db.create_function("from_hex", 1, bytes.fromhex, deterministic=True)  # SQLite has its own only since 3.41
        if migrate:
            db.create_function("hex_list", 1, lambda packed: listed(unpack(packed)))
            _migrate(db, path)
            _write_ahead(db, patience)
        db.execute("pragma synchronous = full")
    except BaseException:
        db.close()
        raise
    return db


def newest(dialect: str = "sqlite") -> int:
    """The version of a store as this clew writes it."""
    return len(migrations(dialect))


def refuse_newer(place: str, version: int, dialect: str = "sqlite") -> None:
    """Raise `NewerFile` where a newer clew wrote a store."""
    known = newest(dialect)
    if version > known:
        raise NewerFile(f"{place}: written by a newer clew (version {version}, this one knows {known}); upgrade clew")


def _migrate(db: sqlite3.Connection, path: str) -> None:
    scripts = migrations()
    version = db.execute("pragma user_version").fetchone()[0]
    refuse_newer(path, version)  # the header on disk may lag behind the write-ahead log
    if version < len(scripts):
        db.execute("begin immediate")
        try:
            # Another process may have been first while we waited for the lock.
            version = db.execute("pragma user_version").fetchone()[0]
            for script in scripts[version:]:
                for statement in _statements(script):
                    db.execute(statement)
            if version == 0:
                db.execute("insert into meta values ('secret', ?)", (secrets.token_bytes(32),))
                db.execute(f"pragma application_id = {APPLICATION}")
            db.execute(f"pragma user_version = {len(scripts)}")
            db.execute("commit")
        except BaseException:
            db.execute("rollback")
            raise


def _write_ahead(db: sqlite3.Connection, patience: float) -> None:
    """Only now: a new file's first page must say whose it is before anything else can be in a log beside it."""
    last = time.monotonic() + patience
    while db.execute("pragma journal_mode").fetchone()[0] == "delete":
        try:
            db.execute("pragma journal_mode = wal")
        except sqlite3.OperationalError as error:  # two who open a new file at once: SQLite does not wait here
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > last:
                raise
            time.sleep(0.01)


@cache
def _statements(script: str) -> tuple[str, ...]:
    found, begun = list[str](), ""
    for line in script.splitlines(keepends=True):
        begun += line
        if sqlite3.complete_statement(begun):
            found.append(begun)
            begun = ""
    return tuple(found)
