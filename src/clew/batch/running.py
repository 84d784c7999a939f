"""A run: an archive, an act and a folder for the results. Begun again after any end, it goes on where it was."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from clew.batch.acts import BatchAct
from clew.batch.folder import BatchFolder, BatchTotals, TaskDone
from clew.batch.pool import through_pool
from clew.batch.sources import TASK_BYTES, BatchTask, archive, tasks
from clew.batch.work import Job
from clew.errors import BadRequest

TasksProgress = Callable[[TaskDone], None]  # told each task that is done


@dataclass(frozen=True, slots=True)
class Run:
    """Work that is written down, and may be done in part."""

    job: Job
    tasks: tuple[BatchTask, ...]

    @property
    def bytes(self) -> int:
        return sum(task.bytes for task in self.tasks)

    def left(self) -> tuple[list[BatchTask], list[TaskDone]]:
        """What there is to do, and what is done."""
        left, done = list[BatchTask](), list[TaskDone]()
        for task in self.tasks:
            known = self.job.folder.finished(task.number)
            if known is None:
                left.append(task)
            else:
                done.append(known)
        return left, done


def begin(act: BatchAct, paths: Sequence[Path], out: Path, task_bytes: int = TASK_BYTES) -> Run:
    """A run, new or as it stands in its folder. Raises `BadRequest` where the folder has another one."""
    folder = BatchFolder(out)
    whole = sorted(str(path.absolute()) for path in paths)
    for path in map(Path, whole):
        if path.is_dir() and out.absolute().is_relative_to(path):
            raise BadRequest(f"{out} is inside {path}, which is read: choose a folder outside for --out")
    wish = {"clew": version("clew"), "act": act.name, **act.settings(), "paths": whole, "task_bytes": task_bytes}
    known = folder.check(wish)
    if not known:
        found = archive(paths)
        folder.begin(wish | {"root": str(found.root)}, tasks(found, task_bytes), found.unreadable)
    return Run(Job(Path(folder.wish()["root"]), folder, act, secrets.token_hex(8)), tuple(folder.tasks()))


def finish(run: Run, processes: int, progress: TasksProgress | None = None) -> BatchTotals:
    """Do what is left; what could not be read is listed, also if the run is stopped meanwhile."""
    with run.job.folder.alone():
        left, _ = run.left()
        try:
            for done in through_pool(run.job, left, processes):
                if progress is not None:
                    progress(done)
        finally:
            totals = run.job.folder.close()
        return totals
