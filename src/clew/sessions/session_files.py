"""Where other agents keep the sessions of this user, and of which folder each is; nothing there is ever changed."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from clew.core import folders, rawjson
from clew.errors import BadRequest
from clew.sessions.transcripts import AGENTS, Transcript, read_all
from clew.sessions.transcripts.opencode_store import DATABASE, SESSIONS, session_of

HEAD_BYTES = 256 << 10  # in which an agent has said where it works
LARGEST_FILE = 512_000_000  # bytes that are read

PLUGGED_KIND = "plugged"  # under which the store keeps the sessions that a client's plugin writes down itself


class SessionFile(NamedTuple):
    """A session as it lies on the disk: a file, or a row of a database."""

    path: Path
    session: str  # its id, in a database
    size: int  # with the time, another one once anything was added
    time: int
    folder: str = ""  # where it was held, as far as the listing says

    @property
    def key(self) -> str:
        """By which it is remembered."""
        return f"{self.path}#{self.session}" if self.session else str(self.path)


def session_files(env: Mapping[str, str]) -> list[SessionFile]:
    """All sessions of agents whose files can be read, the newest first."""
    home = folders.home(env)
    found: list[SessionFile] = []
    for reader in AGENTS.values():
        for variable, usual, below in reader.FOLDERS:
            place = (Path(env[variable]).expanduser() if env.get(variable) else home / usual) / below
            found += _files(place, "**/*.jsonl")
            found += (row for file in _files(place, DATABASE) for row in _rows(file.path))
    return sorted(found, key=lambda file: file.time, reverse=True)


def _files(place: Path, pattern: str) -> Iterator[SessionFile]:
    """Files that can be read now; what goes away meanwhile, or is closed to us, is passed over."""
    try:
        paths = list(place.glob(pattern))
    except OSError:
        return
    for path in paths:
        try:
            known = path.stat()
        except OSError:
            continue
        if path.is_file() and 0 < known.st_size <= LARGEST_FILE:
            yield SessionFile(path, "", known.st_size, known.st_mtime_ns)


def folder_of(file: SessionFile) -> str:
    """The folder in which a session was held; nothing where its beginning does not say."""
    if file.folder or file.session:
        return file.folder
    try:
        with file.path.open("rb") as lines:
            head = lines.read(HEAD_BYTES)
    except OSError:
        return ""
    for line in head.split(b"\n"):
        if b'"cwd"' not in line:
            continue
        try:
            value = rawjson.loads(line)
        except BadRequest:  # cut off
            continue
        told = value.get("payload") or value.get("data") if isinstance(value, dict) else None
        for part in (value, told, told.get("context") if isinstance(told, dict) else None):
            if isinstance(part, dict) and isinstance(part.get("cwd"), str) and part["cwd"]:
                return str(part["cwd"])
    return _root(file.path)


def _root(path: Path) -> str:
    """Where a chat of Gemini CLI was held: that stands in a file of its own, above the chats."""
    try:
        return (path.parent.parent / ".project_root").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError):
        return ""


def sessions_in(file: SessionFile) -> list[Transcript]:
    """What was said in it. Raises `BadRequest`."""
    try:
        return [_row(file)] if file.session else read_all(file.path.read_bytes(), file.path.name)
    except (OSError, sqlite3.Error) as error:
        raise BadRequest(f"{file.path}: {error}") from None


# --- opencode's database ----------------------------------------------------------------------------------------------


def _opened(path: Path) -> sqlite3.Connection:
    """The database, to be read only; if nobody has it open, not even a lock is written."""
    alone = not path.with_name(f"{path.name}-wal").exists()
    return sqlite3.connect(f"{path.absolute().as_uri()}?{'immutable=1' if alone else 'mode=ro'}", uri=True)


def _rows(path: Path) -> list[SessionFile]:
    ask = """select s.id, s.directory, s.time_updated, (select count(*) from part p where p.session_id = s.id),
                    (select max(p.time_updated) from part p where p.session_id = s.id)
             from session s"""
    try:
        with closing(_opened(path)) as db:
            rows = db.execute(ask).fetchall()
    except (OSError, sqlite3.Error):  # of another program, or of an age that we do not know
        return []
    return [
        SessionFile(path, str(id), parts, 1_000_000 * int(max(at or 0, last or 0)), str(folder or ""))
        for id, folder, at, parts, last in rows
        if parts
    ]


def _row(file: SessionFile) -> Transcript:
    with closing(_opened(file.path)) as db:
        for row in db.execute(SESSIONS):
            if row[0] == file.session:
                return session_of(db, *row)
    raise BadRequest(f"{file.path}: session {file.session} is no longer there")
