"""What hooks of one session leave for one another: a line an event, in a file a session."""

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

from clew.config.places import here
from clew.core.folders import data

UNSAFE = re.compile(r"[^\w.-]+")
OLD = 30 * 24 * 3600  # seconds without a line after which nobody goes on with a session: its file is removed
LONGEST = 120  # characters of a session's name that are its file's
# What a line begins with.
EXPECTED, UNCHANGED, DONE, RESULT, BY_CLEW = "expected", "unchanged", "compacted", "result", "compacted by clew"


def session_file(event: Mapping[str, Any]) -> Path:
    """The file of a session."""
    own = str(event.get("session_id") or "none")
    name = UNSAFE.sub("_", own)[:LONGEST]
    if name != own:  # others may be cut to the same
        name += f"-{blake2b(own.encode(errors='surrogatepass'), digest_size=8).hexdigest()}"
    return data(here().env) / "hooks" / f"{name}.txt"


def note(event: Mapping[str, Any], line: str) -> None:
    """Add a line; several processes may at once."""
    file = session_file(event)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not file.exists():  # once a session
        _forget_old(file.parent)
    with file.open("a", encoding="utf-8") as lines:
        lines.write(f"{line}\n")


def _forget_old(folder: Path) -> None:
    """Remove the files of sessions that are over."""
    for file in folder.glob("*.txt"):
        with suppress(OSError):  # another hook may have done it
            if file.stat().st_mtime < time.time() - OLD:
                file.unlink()


def lines_of(event: Mapping[str, Any]) -> list[str]:
    """What was noted in a session."""
    try:
        return session_file(event).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def is_by_clew(event: Mapping[str, Any]) -> bool:
    """Whether it was clew that compacted last: then nothing is missing that should be put back."""
    last = [line for line in lines_of(event) if line in (DONE, BY_CLEW)][-1:]
    return last == [BY_CLEW]


def heard_of_own(event: Mapping[str, Any]) -> None:
    """A client says that it has compacted: if that was by clew, the next may not be."""
    if event.get("source") == "compact" and is_by_clew(event):
        note(event, DONE)


def expect(event: Mapping[str, Any]) -> None:
    """A client is about to compact, and will not say when that is done."""
    note(event, EXPECTED)


def is_expected(event: Mapping[str, Any]) -> bool:
    """Whether it has, and nothing was put back since."""
    last = [line for line in lines_of(event) if line in (EXPECTED, UNCHANGED, DONE)][-1:]
    return last == [EXPECTED]
