"""Session files, found and read: one at a time in each process, and never written to."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import replace as with_
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from clew.audit.compactions import CompactionAudit, audited
from clew.audit.report import FileAudit
from clew.config import Places
from clew.core import rawjson
from clew.errors import BadRequest, ClewError
from clew.sessions.transcripts import AGENTS, Transcript, opencode_store, plain, read_all
from clew.sessions.transcripts.source import data_of

ENDINGS = (".jsonl", ".json", ".jsonl.gz", ".json.gz", opencode_store.DATABASE)
ONE_PROCESS = 60_000_000  # bytes that one process has read before others have started and are worth it
HEAD_LINES = 40  # of a file, in which it shows whose it is
CUTS = plain.CUTS.encode()

FileProgress = Callable[[int], None]  # told the bytes of each file that was read


class FoundFile(NamedTuple):
    """A file to be read."""

    path: Path
    bytes: int
    asked_for: bool  # by its own name: then it is a fault if it is no session


def usual_folders(places: Places) -> dict[str, list[Path]]:
    """Where each agent that can be read keeps its sessions, as this user has it."""
    found: dict[str, list[Path]] = {}
    for name, reader in AGENTS.items():
        for variable, usual, below in getattr(reader, "FOLDERS", ()):
            said = places.env.get(variable)
            base = places.path(said, places.folder) if said else places.home / usual
            found.setdefault(name, []).append(base / below)
    return found


def session_files(paths: Iterable[Path]) -> tuple[list[FoundFile], list[FileAudit]]:
    """The files that these files and folders may hold sessions in, the largest first, and those that cannot be read."""
    found: dict[Path, FoundFile] = {}
    faults: list[FileAudit] = []
    for path in paths:
        try:
            inside = path.is_dir()
            files = sorted(_below(path, faults)) if inside else [path]
            for file in files:
                found.setdefault(file.resolve(), FoundFile(file, file.stat().st_size, not inside))
        except OSError as error:
            faults.append(FileAudit(str(path), 0, fault=error.strerror or str(error)))
    return sorted(found.values(), key=lambda one: (-one.bytes, one.path)), faults


def _below(folder: Path, faults: list[FileAudit]) -> Iterator[Path]:
    def failed(error: OSError) -> None:
        faults.append(FileAudit(str(error.filename), 0, fault=error.strerror or str(error)))

    for place, _, names in os.walk(folder, onerror=failed):
        for name in names:
            if name.endswith(ENDINGS) and (file := Path(place, name)).is_file():
                yield file


def read_files(
    files: Sequence[FoundFile],
    processes: int = 1,
    content: bool = False,
    progress: FileProgress | None = None,
    alone: int = ONE_PROCESS,
) -> Iterator[FileAudit]:
    """What is in each of these files, in any order; more bytes than `alone` are read by several processes."""
    waiting = list(files)
    if processes < 2 or len(files) < 2 or sum(file.bytes for file in files) < alone:
        yield from (_with_progress(audit_file(file, content), progress) for file in waiting)
        return
    while waiting:
        done = {one.file: one for one in _together(waiting, processes, content, progress)}
        yield from done.values()
        waiting = [file for file in waiting if str(file.path) not in done]
        if waiting and processes == 1:
            # It was the first of them, alone, that its process did not live through; the others have not been tried.
            first = waiting.pop(0)
            yield _with_progress(
                FileAudit(str(first.path), first.bytes, fault="its process ended: out of memory?"), progress
            )
        processes = 1


def _together(
    files: Sequence[FoundFile], processes: int, content: bool, progress: FileProgress | None
) -> Iterator[FileAudit]:
    """The files that were read before a process ended, if one did."""
    # Each process begins anew: a fork of this one would take along locks that nobody there lets go.
    pool = ProcessPoolExecutor(min(processes, len(files)), mp_context=get_context("spawn"))
    try:
        for future in as_completed([pool.submit(audit_file, file, content) for file in files]):
            with suppress(BrokenExecutor):
                yield _with_progress(future.result(), progress)
    finally:
        pool.shutdown(cancel_futures=True)


def _with_progress(one: FileAudit, progress: FileProgress | None) -> FileAudit:
    if progress is not None:
        progress(one.bytes)
    return one


def audit_file(file: FoundFile, content: bool = False) -> FileAudit:
    """What is in one file."""
    read = FileAudit(str(file.path), file.bytes)
    count, found = 0, list[CompactionAudit]()
    try:
        for session in _sessions(file.path):
            count += 1
            if session is not None:
                found += audited(session, file.path.stem, content)
    except (ClewError, OSError, MemoryError, RecursionError) as error:
        fault = str(error).removeprefix(f"{file.path}").removeprefix(file.path.name).lstrip(":, ")
        return with_(read, sessions=count, compactions=found, fault=fault or type(error).__name__)
    if not count and file.asked_for:
        return with_(read, fault="no session of an agent that clew knows")
    return with_(read, sessions=count, compactions=found)


def _sessions(path: Path) -> Iterator[Transcript | None]:
    """The sessions of a file; None for one without a compaction, which need not be read."""
    if path.name == opencode_store.DATABASE:
        yield from opencode_store.sessions(path)
        return
    data = data_of(path)
    holds = may_hold_compaction(data)
    if holds:
        yield from read_all(data, path.name)
    elif holds is not None:
        yield None


def may_hold_compaction(data: bytes) -> bool | None:
    """Whether a file may hold a compaction; None: it is no session. Most hold none, and need not be read whole."""
    name = _agent(data)
    if not name:  # messages of anybody's, which are a session only if they say where they were compacted
        return True if name == "" and CUTS in data else None
    return any(mark in data for mark in getattr(AGENTS[name], "MARKS", (b"",)))


def _agent(data: bytes) -> str | None:
    """The agent whose file it is; empty for messages; None for neither."""
    start = 0
    for _ in range(HEAD_LINES):
        stop = data.find(b"\n", start)
        line = data[start:] if stop < 0 else data[start:stop]
        values = _objects(line) if line.strip() else []
        if values is None:
            values = _objects(data) or []  # JSON in one piece
            stop = -1
        for value in values:
            if (name := _known(value)) is not None:
                return name
        if stop < 0:
            break
        start = stop + 1
    return None


def _objects(text: bytes) -> list[dict[str, object]] | None:
    try:
        value = rawjson.loads(text)
    except BadRequest:
        return None
    return [v for v in (value if isinstance(value, list) else [value])[:HEAD_LINES] if isinstance(v, dict)]


def _known(value: dict[str, object]) -> str | None:
    for name, reader in AGENTS.items():
        if reader.recognises(value):
            return name
    return "" if plain.recognises(value) else None
