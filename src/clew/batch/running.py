"""A run: an archive, an act and a folder for the results. Begun again after any end, it goes on where it was."""

import secrets
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from clew.batch.acts import BatchAct
from clew.batch.folder import BatchFolder, BatchTotals, TaskDone
from clew.batch.sources import TASK_BYTES, BatchTask, archive, tasks
from clew.batch.work import Job, work
from clew.errors import BadRequest, ClewError

# Each process begins anew: a fork of this one would take along locks that nobody there lets go.
SPAWNING = get_context("spawn")


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


def through_pool(job: Job, tasks: Iterable[BatchTask], processes: int) -> Iterator[TaskDone]:
    """What comes of each task, as soon as it is done. Raises what no other task could go on after, as a full disk."""
    waiting = iter(tasks)
    again = deque[BatchTask]()
    pool: list[Worker] = []
    try:
        while True:
            while len(pool) < processes and (task := again.popleft() if again else next(waiting, None)) is not None:
                pool.append(Worker(job, task))
            if not pool:
                return
            for ready in wait([worker.answers for worker in pool]):
                worker = next(one for one in pool if one.answers is ready)
                try:
                    answer = worker.answers.recv()
                except (EOFError, ConnectionError):  # it ended
                    pool.remove(worker)
                    if (code := worker.end()) > 0:  # by an error of its own, which the next one would have too
                        raise ClewError(f"a process ended with exit code {code}: its error is above") from None
                    again.append(worker.task)
                    continue
                if isinstance(answer, BaseException):
                    raise answer
                yield answer
                if (task := again.popleft() if again else next(waiting, None)) is None or not worker.give(task):
                    pool.remove(worker)
                    worker.end()
                    again += [task] if task is not None else []
    finally:
        for worker in pool:
            worker.process.kill()  # what it had not finished is done again by the next run
        for worker in pool:
            worker.end()


class Worker:
    """A process that does one task after the other."""

    def __init__(self, job: Job, task: BatchTask) -> None:
        self.task = task
        self.answers, theirs = SPAWNING.Pipe()
        self.process: SpawnProcess = SPAWNING.Process(target=_serve, args=(theirs, job), daemon=True)
        with _undisturbed():
            self.process.start()
        theirs.close()  # so that its end can be heard
        self.give(task)

    def give(self, task: BatchTask) -> bool:
        """The next task; False if the process is gone."""
        self.task = task
        try:
            self.answers.send(task)
        except OSError:
            return False
        return True

    def end(self) -> int:
        """There is no more to do; its exit code, below 0 if a signal ended it."""
        self.answers.close()
        self.process.join()
        code = self.process.exitcode or 0
        self.process.close()
        return code


@contextmanager
def _undisturbed() -> Iterator[None]:
    """A process that begins here never hears Ctrl+C: who began it hears it, and ends it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _serve(tasks: Connection, job: Job) -> None:
    """What a process of the pool does, until nobody gives it a task any more."""
    with suppress(EOFError, OSError):
        while True:
            task: BatchTask = tasks.recv()
            try:
                answer: TaskDone | BaseException = work(job, task)
            except Exception as error:
                answer = error
            tasks.send(answer)
