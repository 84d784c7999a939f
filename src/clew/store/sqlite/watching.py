"""Whether a store file is still the one that was opened, and holds all that was acknowledged.

SQLite knows neither: it writes on to a file that was deleted, and takes one without its write-ahead log for whole.
"""

import hashlib
import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from threading import Lock

from clew.errors import StoreError

Identity = tuple[int, int]

MARK = "-mark"  # ends the name of the file that has one

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_busy(error: BaseException) -> bool:
    """Whether somebody else holds a lock that is needed."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY


def identity(path: Path) -> Identity | None:
    """Which file is at a path, whatever its name; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _meta(db: sqlite3.Connection) -> tuple[bytes | None, int]:
    """Whose a store is, and how many turns were written to it."""
    known = dict(db.execute("select key, value from meta where key in ('secret', 'turns')").fetchall())
    return known.get("secret"), known.get("turns", 0)


class Mark:
    """The number of the last turn that was acknowledged, in a file beside the store, while it is in use.

    Not synced: it is to outlive a process and a write-ahead log that somebody deletes, not the machine.
    """

    def __init__(self, path: Path, secret: bytes) -> None:
        self._path = path
        self._own = hashlib.sha256(secret).hexdigest()[:16]  # a mark of another store says nothing about this one

    def put(self, turns: int) -> None:
        with suppress(OSError):  # it only helps to notice
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
            try:
                os.write(file, f"{self._own} {turns:020}\n".encode())
            finally:
                os.close(file)

    def get(self) -> int:
        try:
            own, turns = self._path.read_text(encoding="ascii").split()
            return int(turns) if own == self._own else 0
        except (OSError, ValueError):
            return 0

    def drop(self) -> None:
        with suppress(OSError):
            self._path.unlink()


class Watch:
    """Looks whether the file at a path is the one that was opened; cheap enough for every turn."""

    def __init__(self, path: Path, secret: bytes, turns: int, logged: bool) -> None:
        self._path = path
        self._secret = secret
        self._turns = turns
        self._file = path.stat()
        real = path.resolve()  # beside which SQLite puts its log
        self._wal = real.with_name(f"{real.name}-wal")
        self._log = identity(self._wal) if logged else None
        self._verifying = Lock()  # readers and the writer look at once; what one found is not older than another's
        self._brought = 0
        self._brought = self._home()
        self.mark = Mark(real.with_name(f"{real.name}{MARK}"), secret)

    def commit(self, turns: int) -> None:
        """A turn was written; it may be acknowledged if this raises nothing."""
        self._turns = turns
        self.look()
        self.mark.put(turns)

    def look(self) -> None:
        """Raise `StoreError` unless what is at the path is what was opened."""
        now = self._stat()
        if (now.st_dev, now.st_ino) != (self._file.st_dev, self._file.st_ino):
            raise self._lost("it was replaced by another file")
        if self._log is not None and identity(self._wal) != self._log:
            raise self._lost("its write-ahead log was deleted or replaced")
        if (now.st_mtime_ns, now.st_size) != (self._file.st_mtime_ns, self._file.st_size):
            with self._verifying:
                self._verify(self._stat())

    def _stat(self) -> os.stat_result:
        try:
            return self._path.stat()
        except OSError as error:
            raise self._lost(f"it no longer exists ({error.strerror})") from None

    def _verify(self, now: os.stat_result) -> None:
        """Somebody wrote to the file itself: SQLite, when it brought its log home, or who knows."""
        if not now.st_size:  # not to be opened: SQLite would delete the log of an empty file
            raise self._lost("it was emptied")
        turns = self._turns
        home = self._home()
        try:
            with closing(self._connect("mode=ro")) as db:
                secret, known = _meta(db)
                shrunk = now.st_size < self._file.st_size
                whole = not shrunk or db.execute("pragma quick_check(1)").fetchone()[0] == "ok"
        except sqlite3.Error as error:
            if is_busy(error):
                return  # and looked at again next time
            raise self._lost(str(error)) from None
        if secret != self._secret or known < turns or home < self._brought or not whole:
            raise self._lost("it was truncated or overwritten")
        self._file, self._brought = now, home

    def _home(self) -> int:
        """The last turn that is in the file without its log; the last one known, while SQLite brings more home."""
        try:
            with closing(self._connect("immutable=1")) as db:
                secret, turns = _meta(db)
        except sqlite3.Error:
            return self._brought
        return turns if secret else self._brought

    def _connect(self, how: str) -> sqlite3.Connection:
        return sqlite3.connect(f"{self._path.as_uri()}?{how}", uri=True, timeout=0, isolation_level=None)

    def _lost(self, how: str) -> StoreError:
        return StoreError(
            f"{self._path}: changed under a process that has it open: {how}; nothing more is written. "
            "Put it back or `clew backup --restore FILE`, and open it anew; `clew doctor` says if it is whole"
        )

    def end(self) -> None:
        """The file was let go of: if all is in it, there is nothing more to remember."""
        if not self._wal.exists():
            self.mark.drop()
