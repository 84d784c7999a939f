"""What a scenario says: figures with their units, and the clocks that they are read from."""

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from types import TracebackType

TICK = os.sysconf("SC_CLK_TCK")
BEAT = 0.002  # seconds


@dataclass(frozen=True)
class Figure:
    """One figure; less is better unless `more`."""

    name: str
    unit: str
    value: float
    wall: float | None = None  # the same by the clock, where `value` is CPU
    more: bool = False


def cpu() -> float:
    """Seconds of CPU of this process, and of those that it started."""
    return time.process_time() + others()


def others() -> float:
    """Seconds of CPU of the processes that this one started."""
    gone = os.times()
    return gone.children_user + gone.children_system + sum(map(cpu_of, children(os.getpid())))


def children(process: int) -> list[int]:
    """The processes that a process started and that are still there."""
    found: list[int] = []
    for tasks in Path(f"/proc/{process}/task").glob("*/children"):
        found += map(int, tasks.read_text().split())
    return found


def cpu_of(process: int) -> float:
    """Seconds of CPU of another process and of all below it."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / TICK + sum(map(cpu_of, children(process)))
    except OSError:  # it has just ended
        return 0.0


class Spent:
    """What a block took, in seconds: CPU of all threads, of this one (the loop's), and by the clock."""

    def __init__(self, server: int | None = None) -> None:
        self.cpu = self.loop = self.wall = self.served = 0.0
        self._server = server

    def _elsewhere(self) -> tuple[float, float]:
        return others(), cpu_of(self._server) if self._server else 0.0

    def __enter__(self) -> "Spent":
        # What looking at other processes costs is outside, at both ends.
        self._others, self._served = self._elsewhere()
        self._begun = time.process_time(), time.thread_time(), time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        now = time.process_time(), time.thread_time(), time.perf_counter()
        self.cpu, self.loop, self.wall = (a - b for a, b in zip(now, self._begun, strict=True))
        more, served = self._elsewhere()
        self.cpu += more - self._others
        self.served = served - self._served


class Beat:
    """A task that sleeps 2 ms again and again, and notes how late it wakes and what the loop's thread did meanwhile."""

    def __init__(self) -> None:
        self.late: list[float] = []
        self.held: list[float] = []  # CPU of the loop's thread between two beats

    async def _go(self) -> None:
        while True:
            begun, worked = time.perf_counter(), time.thread_time()
            await asyncio.sleep(BEAT)
            self.late.append(time.perf_counter() - begun - BEAT)
            self.held.append(time.thread_time() - worked)

    async def __aenter__(self) -> "Beat":
        self._task = asyncio.create_task(self._go())
        await asyncio.sleep(0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.sleep(BEAT)  # the beat that was kept waiting comes, too
        self._task.cancel()

    def figures(self, what: str) -> list[Figure]:
        """The middle, 99 of 100, and the worst, by the clock; and the longest that the loop's own work took."""
        late = [1e3 * second for second in self.late]
        return [
            Figure(f"{what}: beat late, p50", "ms clock", middle(late)),
            Figure(f"{what}: beat late, p99", "ms clock", high(late)),
            Figure(f"{what}: beat late, worst", "ms clock", max(late)),
            Figure(f"{what}: loop held, worst", "ms CPU", 1e3 * max(self.held)),
        ]


def middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def high(values: Sequence[float]) -> float:
    return quantiles(values, n=100)[-1] if len(values) > 1 else values[0]


def rss() -> int:
    """Bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
