"""Session files of the user's own agents, to be replayed: they are read, and nothing of them is kept."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clew.audit.reading import session_files, usual_folders
from clew.config import Places
from clew.errors import BadRequest
from clew.screens.demo import DEMO_FORMAT, DEMO_WINDOW
from clew.sessions.transcripts import convert, read_all
from clew.sessions.transcripts.source import data_of
from clew.tokens import counter_for
from clew.wire import decode

LEAST_BYTES = 50_000  # of a session file: a shorter one never fills a window
OFFERED = ("claude-code", "codex")
QUARTER = 4


def messages_of(file: Path) -> Sequence[Mapping[str, Any]]:
    """The longest session of a file."""
    found = read_all(data_of(file), str(file))
    longest = max(found, key=lambda one: len(one.messages), default=None)
    if longest is None:
        raise BadRequest(f"{file}: there is no session in it")
    messages: Sequence[Mapping[str, Any]] = convert(longest, DEMO_FORMAT).messages
    return messages


def quarter(messages: Sequence[Mapping[str, Any]]) -> int:
    """A window of a quarter of what was said, in which nearly all has to leave the view; never a very small one."""
    counter = counter_for("")
    _, items = decode({"messages": list(messages)}, DEMO_FORMAT)
    return max(DEMO_WINDOW, sum(counter.item(item) for item in items) // QUARTER // 1000 * 1000)


def newest(places: Places) -> Path | None:
    """The newest session of a coding agent on this machine that is long enough to look at."""
    folders = usual_folders(places)
    files, _ = session_files(path for name in OFFERED for path in folders.get(name, ()) if path.is_dir())
    long = [file.path for file in files if file.bytes >= LEAST_BYTES]
    return max(long, key=lambda path: path.stat().st_mtime, default=None)
