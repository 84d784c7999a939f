"""The folder of results: what is asked for, what there is to do, and what is done; each file appears whole or not.

run.json         what is asked for; another wish in the same folder is refused; files that cannot be read
plan.jsonl       the tasks
parts/N.jsonl    the records of task N, in order
done/N.json      that task N is done, and what could not be read; written last
running/N        where the process is that works on task N; read when it ended too soon
failures.jsonl   all that could not be read, once everything is done or the run was stopped
summary.json     the sums
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from clew.batch.sources import BatchTask, as_line, from_line
from clew.core import rawjson
from clew.errors import BadRequest, Busy

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

OWN_NAMES = frozenset({"plan.jsonl", "lock"})  # what may be there of a run that ended before it had begun
UNFINISHED = ".unfinished"


@dataclass(frozen=True, slots=True)
class TaskDone:
    """What a task came to."""

    task: int
    conversations: int
    records: int
    failures: tuple[Mapping[str, Any], ...]
    bytes_in: int
    bytes_out: int
    cpu_seconds: float
    sha256: str  # of the records
    tokens_before: int = 0  # of what was compressed, and after it
    tokens_after: int = 0


@dataclass(frozen=True, slots=True)
class BatchTotals:
    """What all tasks that are done came to."""

    tasks: int
    of_tasks: int
    conversations: int
    records: int
    failures: int
    bytes_in: int
    bytes_out: int
    cpu_seconds: float
    digest: str  # of all records: the same for the same archive and wishes, whoever did the work
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True)
class BatchFolder:
    """A folder of results."""

    path: Path

    def part(self, task: int) -> Path:
        return self.path / "parts" / f"{task:06d}.jsonl"

    def done(self, task: int) -> Path:
        return self.path / "done" / f"{task:06d}.json"

    def running(self, task: int) -> Path:
        return self.path / "running" / f"{task:06d}"

    # --- the beginning ------------------------------------------------------------------------------------------------

    def wish(self) -> dict[str, Any]:
        """What was asked for; nothing if the folder is new. Raises `BadRequest` if it is somebody else's."""
        with suppress(FileNotFoundError):
            wish: dict[str, Any] = self._run()["wish"]
            return wish
        if self.path.is_dir():
            other = [p.name for p in self.path.iterdir() if p.name not in OWN_NAMES and not p.name.endswith(UNFINISHED)]
            if other:
                raise BadRequest(f"{self.path}: has other files in it, such as {min(other)}; choose a new folder")
        return {}

    def check(self, wish: Mapping[str, Any]) -> bool:
        """Whether the same was begun here before. Raises `BadRequest` if it was something else."""
        known = self.wish()
        changed = [key for key in wish if known.get(key) != wish[key]] if known else []
        if changed:
            told = "; ".join(
                f"{key}: {_value_text(known.get(key))} then, {_value_text(wish.get(key))} now" for key in changed
            )
            raise BadRequest(f"{self.path} has the results of another run ({told}); give another --out")
        return bool(known)

    def _run(self) -> dict[str, Any]:
        run: dict[str, Any] = rawjson.loads((self.path / "run.json").read_bytes())
        return run

    def begin(self, wish: Mapping[str, Any], tasks: Iterable[BatchTask], unreadable: Iterable[tuple[str, str]]) -> None:
        """Write down what is asked for, what there is to do, and what cannot be read."""
        for name in ("parts", "done", "running"):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        write(self.path / "plan.jsonl", b"".join(map(as_line, tasks)))
        write(self.path / "run.json", rawjson.dumps({"wish": wish, "unreadable": list(unreadable)}))

    def tasks(self) -> list[BatchTask]:
        """All there is to do."""
        with (self.path / "plan.jsonl").open("rb") as lines:
            return [from_line(line) for line in lines]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other run works here meanwhile. Raises `Busy`."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / "lock").open("wb") as file:
            try:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise Busy(f"{self.path}: another run works here; wait for it, or give another --out") from None
            yield

    # --- the end ------------------------------------------------------------------------------------------------------

    def finished(self, task: int) -> TaskDone | None:
        """What came of a task; None if it is to be done."""
        try:
            return done_from(self.done(task).read_bytes())
        except FileNotFoundError:
            return None

    def finish(self, done: TaskDone) -> None:
        """Write down that a task is done."""
        write(self.done(done.task), as_json(done))
        self.running(done.task).unlink(missing_ok=True)

    def close(self) -> BatchTotals:
        """Put failures and sums together, of as much as is done."""
        tasks = self.tasks()
        every = [done for task in tasks if (done := self.finished(task.number)) is not None]
        lines = [{"source": name, "position": "", "why": why} for name, why in self._run()["unreadable"]]
        lines += [dict(line) for done in every for line in done.failures]
        write(self.path / "failures.jsonl", b"".join(rawjson.dumps(line) + b"\n" for line in lines))
        totals = BatchTotals(
            len(every),
            len(tasks),
            sum(one.conversations for one in every),
            sum(one.records for one in every),
            len(lines),
            sum(one.bytes_in for one in every),
            sum(one.bytes_out for one in every),
            round(sum(one.cpu_seconds for one in every), 3),
            sha256("".join(one.sha256 for one in every).encode()).hexdigest(),
            sum(one.tokens_before for one in every),
            sum(one.tokens_after for one in every),
        )
        write(self.path / "summary.json", rawjson.dumps(asdict(totals)))
        if len(every) == len(tasks):
            for left in self.path.glob(f"*/*{UNFINISHED}"):
                left.unlink(missing_ok=True)
        return totals


def as_json(done: TaskDone) -> bytes:
    return rawjson.dumps(asdict(done))


def done_from(data: bytes) -> TaskDone:
    """What a task came to, read again."""
    value = rawjson.loads(data)
    return TaskDone(**value | {"failures": tuple(value["failures"])})


def _value_text(value: Any) -> str:
    return "nothing" if value is None else str(value)


def write(path: Path, data: bytes) -> None:
    """A file, whole or not at all."""
    unfinished = unfinished_name(path)
    with unfinished.open("wb") as file:
        file.write(data)
        sync(file.fileno())
    unfinished.replace(path)


def unfinished_name(path: Path) -> Path:
    """Where a file is written before it is there; two processes never share one."""
    return path.with_name(f"{path.name}.{os.getpid()}{UNFINISHED}")


def sync(number: int) -> None:
    """What was written is on the disk, also if the power fails."""
    os.fsync(number)
