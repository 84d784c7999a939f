"""Where other agents keep the sessions of this user, and of which folder each is; nothing there is ever changed."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from clew.core import folders, rawjson
from clew.errors import BadRequest

HEAD_BYTES = 256 << 10  # in which an agent has said where it works
LARGEST_FILE = 512_000_000  # bytes that are read


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
    """All sessions of Claude Code, Codex, pi and opencode, the newest first."""
    home = folders.home(env)
    claude = _place(env, "CLAUDE_CONFIG_DIR", home / ".claude") / "projects"
    codex = _place(env, "CODEX_HOME", home / ".codex") / "sessions"
    pi = _place(env, "PI_CODING_AGENT_DIR", home / ".pi" / "agent") / "sessions"
    data = _place(env, "XDG_DATA_HOME", home / ".local" / "share") / "opencode"
    looks = ((claude, "*/*.jsonl"), (claude, "*/*/subagents/*.jsonl"), (codex, "*/*/*/*.jsonl"), (pi, "*/*.jsonl"))
    found = [file for place, pattern in looks for file in _files(place, pattern)]
    found += (row for file in _files(data, "*.db") for row in _rows(file.path))
    return sorted(found, key=lambda file: file.time, reverse=True)


def _place(env: Mapping[str, str], variable: str, usual: Path) -> Path:
    return Path(env[variable]).expanduser() if env.get(variable) else usual


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
        for part in (value, value.get("payload") if isinstance(value, dict) else None):
            if isinstance(part, dict) and isinstance(part.get("cwd"), str) and part["cwd"]:
                return str(part["cwd"])
    return ""


def data_of(file: SessionFile) -> bytes:
    """A session as `read_all` takes it. Raises `BadRequest`."""
    try:
        return _exported(file) if file.session else file.path.read_bytes()
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


def _exported(file: SessionFile) -> bytes:
    """A session as `opencode export` writes it."""
    with closing(_opened(file.path)) as db:
        db.row_factory = sqlite3.Row
        [about] = db.execute("select * from session where id = ?", (file.session,)).fetchall()
        ask = "select id, {} from {} where session_id = ? order by id"
        messages = db.execute(ask.format("data", "message"), (file.session,)).fetchall()
        parts = db.execute(ask.format("message_id, data", "part"), (file.session,)).fetchall()
    said: dict[str, list[dict[str, Any]]] = {row["id"]: [] for row in messages}
    for row in parts:
        ids = {"id": row["id"], "sessionID": file.session, "messageID": row["message_id"]}
        said.setdefault(row["message_id"], []).append(rawjson.loads(row["data"].encode()) | ids)
    told = [
        {
            "info": rawjson.loads(row["data"].encode()) | {"id": row["id"], "sessionID": file.session},
            "parts": said[row["id"]],
        }
        for row in messages
    ]
    if told and _is_being_said(told[-1]["info"]):
        del told[-1]
    keys = about.keys()
    info = {"id": about["id"], "directory": file.folder, "title": about["title"] if "title" in keys else ""}
    if "parent_id" in keys and about["parent_id"]:
        info["parentID"] = about["parent_id"]
    return rawjson.dumps({"info": info, "messages": told})


def _is_being_said(info: Mapping[str, Any]) -> bool:
    """Whether an answer goes on: its parts are still written over."""
    return info.get("role") == "assistant" and not (info.get("time") or {}).get("completed") and not info.get("error")
