"""opencode's own database: the same sessions that `opencode export` writes out, one after the other.

It is copied first, with what is not yet in its file, and the copy is read: so nothing is locked or written where it is.
"""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from clew.core import rawjson
from clew.errors import BadRequest
from clew.sessions.transcripts import opencode
from clew.sessions.transcripts.shape import Transcript
from clew.sessions.transcripts.source import Record, Source

DATABASE = "opencode.db"
WRITE_AHEAD = "-wal"  # beside it: what was written last
SESSIONS = "SELECT id, parent_id, directory, title, time_created, time_updated FROM session ORDER BY id"
MESSAGES = "SELECT id, data FROM message WHERE session_id = ? ORDER BY id"
PARTS = "SELECT message_id, id, data FROM part WHERE session_id = ? ORDER BY id"
COMPACTED = "SELECT 1 FROM message WHERE session_id = ? AND data LIKE '%\"summary\":true%' LIMIT 1"


def sessions(database: Path) -> Iterator[Transcript | None]:
    """Every session of a database; None for each in which nothing was compacted."""
    with _copied(database) as db:
        for id, *about in db.execute(SESSIONS).fetchall():
            held = db.execute(COMPACTED, (id,)).fetchone()
            yield session_of(db, id, *about) if held else None


def exports(database: Path) -> Iterator[bytes]:
    """Every session of a database, as `opencode export` writes it."""
    with _copied(database) as db:
        for row in db.execute(SESSIONS).fetchall():
            yield rawjson.dumps(_export(db, *row))


@contextmanager
def _copied(database: Path) -> Iterator[sqlite3.Connection]:
    with TemporaryDirectory() as folder:
        copy = Path(folder, DATABASE)
        try:
            shutil.copyfile(database, copy)
            if (newest := database.with_name(database.name + WRITE_AHEAD)).exists():
                shutil.copyfile(newest, copy.with_name(copy.name + WRITE_AHEAD))
            with closing(sqlite3.connect(copy)) as db:
                yield db
        except OSError as error:
            raise BadRequest(f"{database}: {error.strerror or error}") from None
        except sqlite3.Error as error:
            raise BadRequest(f"{database}: not a database of opencode's that can be read ({error})") from None


def session_of(
    db: sqlite3.Connection, id: str, parent: str | None, folder: str, title: str, began: int, ended: int
) -> Transcript:
    """One session, by its row."""
    export = _export(db, id, parent, folder, title, began, ended)
    return opencode.read(Source(DATABASE, [Record(1, export)]))[0]


def _export(
    db: sqlite3.Connection, id: str, parent: str | None, folder: str, title: str, began: int, ended: int
) -> dict[str, Any]:
    info = {"id": id, "parentID": parent, "directory": folder, "title": title}
    parts: dict[str, list[dict[str, Any]]] = {}
    for message, name, data in db.execute(PARTS, (id,)):
        parts.setdefault(message, []).append(_value(data) | {"id": name})
    said = [
        {"info": _value(data) | {"id": message, "sessionID": id}, "parts": parts.get(message, [])}
        for message, data in db.execute(MESSAGES, (id,))
    ]
    return {"info": info | {"time": {"created": began, "updated": ended}}, "messages": said}


def _value(data: str) -> dict[str, Any]:
    value = rawjson.loads(data)
    return value if isinstance(value, dict) else {}
