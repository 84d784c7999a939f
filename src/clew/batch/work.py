"""One task, done anywhere: in this process, in one of a pool, on another machine.

A process may end in the middle, because memory is short or somebody ends it. Whoever does the task again finds where it
was: that conversation is tried first, before anything else is in memory, and if it ends a second process, it is listed
and left out. What was noted in an earlier run does not count: there a user may have stopped it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from time import process_time
from typing import Any, BinaryIO

from clew.batch.acts import BatchAct
from clew.batch.folder import BatchFolder, TaskDone, sync, unfinished_name
from clew.batch.raw import RawConversation, conversations
from clew.batch.records import digest, records
from clew.batch.sources import BatchTask
from clew.core import rawjson
from clew.errors import BadRequest, ClewError

MOST_DEATHS = 2  # processes that one conversation may end
ENDED = f"its process ended, {MOST_DEATHS} times: out of memory?"


@dataclass(frozen=True, slots=True)
class Job:
    """What all tasks of a run share."""

    root: Path
    folder: BatchFolder
    act: BatchAct
    run: str  # a name that no other run has


@dataclass(slots=True)
class ConversationOutcome:
    """What came of one conversation."""

    lines: list[bytes] = field(default_factory=list)
    failure: dict[str, Any] | None = None
    tokens_before: int = 0  # of what was compressed, and after it
    tokens_after: int = 0


def work(job: Job, task: BatchTask) -> TaskDone:
    """Do a task, unless it is done: its results are in the folder then."""
    if (known := job.folder.finished(task.number)) is not None:
        return known
    began = process_time()
    with _note(job, task) as note:
        tried = note.retry(conversations(job.root, task), job.act)
        with unfinished_name(job.folder.part(task.number)).open("wb") as part:
            sums = _written(part, _outcomes(job, task, note, tried))
            sync(part.fileno())
        Path(part.name).replace(job.folder.part(task.number))
        done = TaskDone(task.number, *sums[:3], task.bytes, sums[3], round(process_time() - began, 3), *sums[4:])
        job.folder.finish(done)
    return done


def _outcomes(
    job: Job, task: BatchTask, note: "ProgressNote", tried: dict[str, ConversationOutcome]
) -> Iterator[ConversationOutcome]:
    if note.deaths.get("", 0) >= MOST_DEATHS:  # not within a conversation: then nobody can tell which
        yield from (
            ConversationOutcome(failure=_failure(RawConversation(name, task.start, b""), ENDED))
            for name, _ in task.files
        )
        return
    for raw in conversations(job.root, task):
        note.at(raw.place)
        yield tried.get(raw.place) or outcome(raw, job.act)
        note.at("")


def outcome(raw: RawConversation, act: BatchAct) -> ConversationOutcome:
    """The records of a conversation, or why there are none: whatever is wrong with one, the others go on."""
    if raw.fault:
        return ConversationOutcome(failure=_failure(raw, raw.fault))
    try:
        found = records(raw, act)
        before, after = (sum(record.get(name, 0) for record in found) for name in ("tokens_before", "tokens_after"))
        return ConversationOutcome([rawjson.dumps(record) + b"\n" for record in found], None, before, after)
    except Exception as error:
        told = f"{error}" if isinstance(error, ClewError) else f"{type(error).__name__}: {error}"
        return ConversationOutcome(failure=_failure(raw, told.removeprefix(raw.source).lstrip(":, ")))


def _failure(raw: RawConversation, why: str) -> dict[str, Any]:
    id = f"{raw.place}-{digest(raw.data)}" if raw.data else raw.place
    return {"id": id, "source": raw.source, "position": str(raw.position), "why": why}


def _written(
    part: BinaryIO, found: Iterator[ConversationOutcome]
) -> tuple[int, int, tuple[dict[str, Any], ...], int, str, int, int]:
    """The lines in a file, and how much of everything there was."""
    count = lines = size = before = after = 0
    failures: list[dict[str, Any]] = []
    sum = sha256()
    for one in found:
        count += 1
        before, after = before + one.tokens_before, after + one.tokens_after
        lines += len(one.lines)
        failures += [one.failure] if one.failure else []
        for line in one.lines:
            size += len(line)
            sum.update(line)
            part.write(line)
    return count, lines, tuple(failures), size, sum.hexdigest(), before, after


class ProgressNote:
    """Where a process is, for whoever does its task after it."""

    def __init__(self, path: Path, run: str) -> None:
        self.deaths = _deaths(path, run)
        head = rawjson.dumps({"run": run, "deaths": self.deaths}) + b"\n"
        path.write_bytes(head)
        self._file = path.open("r+b", buffering=0)
        self._start = len(head)

    def at(self, place: str) -> None:
        """It begins with this conversation; with none, it is between two."""
        # One call, so that there is never half a name, and no file is made or renamed for each conversation.
        self._file.seek(self._start)
        self._file.write(rawjson.dumps(place) + b"\n")

    def retry(self, found: Iterator[RawConversation], act: BatchAct) -> dict[str, ConversationOutcome]:
        """What comes of the conversations that ended a process before, each tried before all others."""
        tried = {}
        if self.deaths.keys() - {""}:
            for raw in found:
                if raw.place in self.deaths:
                    self.at(raw.place)
                    often = self.deaths[raw.place] >= MOST_DEATHS
                    tried[raw.place] = ConversationOutcome(failure=_failure(raw, ENDED)) if often else outcome(raw, act)
                    self.at("")
        return tried

    def close(self) -> None:
        self._file.close()


def _deaths(path: Path, run: str) -> dict[str, int]:
    """How many processes ended in which conversation, in this run."""
    try:
        head, _, rest = path.read_bytes().partition(b"\n")
        known = rawjson.loads(head)
    except (FileNotFoundError, BadRequest):
        return {}
    if known["run"] != run:
        return {}
    place = rawjson.loads(rest.partition(b"\n")[0] or b'""')
    deaths: dict[str, int] = known["deaths"]
    return deaths | {place: deaths.get(place, 0) + 1}


@contextmanager
def _note(job: Job, task: BatchTask) -> Iterator[ProgressNote]:
    note = ProgressNote(job.folder.running(task.number), job.run)
    try:
        yield note
    finally:
        note.close()
