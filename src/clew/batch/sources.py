"""The files of an archive, divided into tasks: the same files always give the same tasks, whoever works on them.

A task is a few small files, one large file, or a stretch of a file that holds a conversation a line: those lines that
begin within it. Nothing but the first line of a large file is read for it.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from clew.audit.reading import session_files
from clew.core import rawjson
from clew.core.unpacking import GZIP
from clew.errors import BadRequest
from clew.sessions.transcripts import plain

TASK_BYTES = 4 << 20  # of a task: seconds of work, so that little is lost with one, and little is done to begin one
TASK_FILES = 500
LONGEST_CONVERSATION = 512_000_000  # bytes of one conversation, which has to fit in memory several times


class BatchTask(NamedTuple):
    """A share of the work, whose results are one file."""

    number: int
    files: tuple[tuple[str, int], ...]  # names below the archive's root, and their bytes when the work began
    start: int = 0  # a stretch of the only file, in bytes; it ends with the last line that begins before `stop`
    stop: int = 0  # 0: all of it

    @property
    def bytes(self) -> int:
        """What there is to read."""
        return min(self.stop, self.files[0][1]) - self.start if self.stop else sum(size for _, size in self.files)


class Archive(NamedTuple):
    """Files to work on, below a folder that has them all."""

    root: Path
    files: tuple[tuple[str, int], ...]
    unreadable: tuple[tuple[str, str], ...]  # names, and why


def archive(paths: Sequence[Path]) -> Archive:
    """The files that may hold conversations; folders are walked. Raises `BadRequest` where there is none."""
    for path in paths:
        if not path.exists():
            raise BadRequest(f"{path}: no such file or folder")
    whole = [path.absolute() for path in paths]
    root = Path(os.path.commonpath([path if path.is_dir() else path.parent for path in whole]))
    found, faults = session_files(whole)
    if not found:
        raise BadRequest(f"no files to read in {', '.join(map(str, paths))}; expected .jsonl, .json or .gz of these")
    files = sorted((_name(file.path, root), file.bytes) for file in found)
    unreadable = sorted((_name(Path(one.file), root), one.fault) for one in faults)
    return Archive(root, tuple(files), tuple(unreadable))


def _name(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def tasks(found: Archive, size: int = TASK_BYTES) -> Iterator[BatchTask]:
    """The archive in tasks, in the order of its names."""
    for number, (files, start, stop) in enumerate(_stretches(found, size)):
        yield BatchTask(number, files, start, stop)


def _stretches(found: Archive, size: int) -> Iterator[tuple[tuple[tuple[str, int], ...], int, int]]:
    group: list[tuple[str, int]] = []
    for name, bytes in found.files:
        if group and (sum(b for _, b in group) + bytes > size or len(group) == TASK_FILES):
            yield tuple(group), 0, 0
            group = []
        if bytes > size and has_conversation_lines(found.root / name):
            for start in range(0, bytes, size):
                yield ((name, bytes),), start, min(start + size, bytes)
        else:
            group.append((name, bytes))
    if group:
        yield tuple(group), 0, 0


def has_conversation_lines(path: Path) -> bool:
    """Whether a file that is not packed has a whole conversation in its first line."""
    try:
        with path.open("rb") as file:
            return is_conversation_line(file.readline(LONGEST_CONVERSATION))
    except OSError:
        return False  # whoever works on it says why


def is_conversation_line(line: bytes) -> bool:
    """Whether a line is a whole conversation."""
    if line[:2] == GZIP:
        return False
    try:
        value = rawjson.loads(line.removeprefix(b"\xef\xbb\xbf").strip())
    except BadRequest:
        return False
    return isinstance(value, dict) and plain.is_body(value)


def as_line(task: BatchTask) -> bytes:
    """The task as a line of a file."""
    return rawjson.dumps([task.number, task.files, task.start, task.stop]) + b"\n"


def from_line(line: bytes) -> BatchTask:
    """The task that a line says."""
    number, files, start, stop = rawjson.loads(line)
    return BatchTask(number, tuple((str(name), int(size)) for name, size in files), start, stop)
