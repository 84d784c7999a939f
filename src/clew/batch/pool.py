"""The tasks of a run through processes on this machine; one that ends too soon is replaced, and its task done again."""

import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from clew.batch.folder import TaskDone
from clew.batch.sources import BatchTask
from clew.batch.work import Job, work
from clew.errors import ClewError

# Each process begins anew: a fork of this one would take along locks that nobody there lets go.
SPAWNING = get_context("spawn")


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
