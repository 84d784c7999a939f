"""Group commit: what waits for the one writer of a file is written in one transaction, with one sync to the disk."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from threading import Lock

from clew.store.alone import FileTurns
from clew.store.sqlite.database import SQLiteDatabase
from clew.store.sqlite.watching import is_busy
from clew.store.waiting import Wait

TOGETHER = 8  # acts in one transaction: all of them go on at once afterwards, and nobody else is on the loop until then


@dataclass(slots=True, eq=False)
class Member:
    """One caller's act: a transaction by itself, or a part of one that it shares with others."""

    act: Callable[[], None]
    wait: Wait
    answer: Future[None] = field(default_factory=Future)
    busy: bool = False  # somebody else had a lock that it needed
    error: BaseException | None = None

    def tell(self) -> None:
        """Answer the caller."""
        if self.busy:
            self.wait.end()
        if self.error:
            self.answer.set_exception(self.error)
        else:
            self.answer.set_result(None)


class Group:
    """Those who wait for the thread that writes. It is busy with a sync most of the time, and there they gather."""

    def __init__(self, thread: ThreadPoolExecutor, db: SQLiteDatabase, turns: FileTurns) -> None:
        self._thread = thread
        self._db = db
        self._turns = turns
        self._lock = Lock()
        self._waiting: list[Member] = []

    def submit(self, act: Callable[[], None], wait: Wait) -> Future[None]:
        """Have an act written, with whatever else waits; it is answered once that is on the disk."""
        member = Member(act, wait)
        with self._lock:
            if not self._waiting:  # else whoever came first has called it
                self._thread.submit(self._write)
            self._waiting.append(member)
        return member.answer

    def _write(self) -> None:
        # In line with other processes where there are some: SQLite looks again and again whether its lock is free.
        with self._turns.writing() if self._db.crowded else nullcontext():
            with self._lock:
                came, self._waiting = self._waiting[:TOGETHER], self._waiting[TOGETHER:]
                more = bool(self._waiting)
            # Not before: until it begins, a caller may have waited for too long.
            left = [member for member in came if member.answer.set_running_or_notify_cancel()]
            while left:
                left = self._tried(left)
        if more:
            try:
                self._thread.submit(self._write)  # after what else waits for the thread
            except RuntimeError:  # the store is being closed
                self._write()

    def _tried(self, members: list[Member]) -> list[Member]:
        """Write these all together, and answer them; those that are to be tried again."""
        concerned = members  # by an error
        try:
            if len(members) == 1:
                members[0].act()
            else:
                with self._db.together():
                    for member in members:
                        concerned = [member]
                        self._do_part(member)
                    concerned = members
        except BaseException as error:
            if is_busy(error):
                concerned = [member for member in members if member.wait.is_over()]
            for member in members:
                member.busy = member.busy or is_busy(error)
                member.error = error if member in concerned else None
            for member in concerned:
                member.tell()
            return [member for member in members if member not in concerned]
        for member in members:
            member.tell()
        return []

    def _do_part(self, member: Member) -> None:
        try:
            member.act()
        except BaseException as error:
            if is_busy(error) or not self._db.connection.in_transaction:  # with it all before it is undone
                raise
            member.error = error
