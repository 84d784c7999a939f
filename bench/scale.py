"""What a large store costs beside a small one.

python bench/scale.py [--sessions N] [--few N] [--items N] [--long N] [--folder DIR] [--json FILE]
python bench/scale.py --postgres URL [--all N] [--json FILE] [--keep]: `servers.py` says what that does

Two pairs: a store of many sessions beside one of few, all sessions being of one size; and one long session beside a
short one. Both of a pair are measured in turns, in one process. Every other session has a name; those without are found
by their history.
"""

import argparse
import asyncio
import hashlib
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import orjson

from clew import Budget, Engine, Request, SQLite
from clew.engine.append import Addition
from clew.engine.recall import everywhere
from filling import LONG, SCOPE, SYSTEM, Message, fill, name_of, turns, turns_of
from session import show

T = TypeVar("T")

FEW = 10  # sessions of a small store
PURGES = 2
ROUNDS, LONG_ROUNDS = 6, 3
MODEL, WINDOW = "gpt-4o", 200_000
LEAD = {"role": "system", "content": SYSTEM}
HOT = 25  # turns in a row
COMMON = "return the value of self if name is None"
RARE = "zipimporter bytecode mismatch"
APPEND, ADD = "append, hot", "addition, hot"
NEW = 1_000_000  # numbers from here on are of sessions that are in no store


class Client:
    """Re-sends one session whole each turn, as bytes."""

    def __init__(self, number: int, items: int, long: int = LONG) -> None:
        self.name = name_of(number)
        self._coming = turns(number, long)
        self._said = bytearray(orjson.dumps({"model": MODEL, "messages": [LEAD]})[:-2])
        for turn in islice(self._coming, turns_of(items)):
            self._add(turn)

    def request(self, scope: str = SCOPE) -> Request:
        """The whole session, with two messages more."""
        self._add(next(self._coming))
        return Request(bytes(self._said) + b"]}", scope=scope, session=self.name)

    def addition(self) -> Addition:
        """Two messages more, and nothing else."""
        self._add(turn := next(self._coming))
        return Addition({"model": MODEL, "messages": [LEAD, *turn]}, str(self.name))

    def _add(self, turn: Sequence[Message]) -> None:
        self._said += b"," + b",".join(map(orjson.dumps, turn))


class Subject:
    """A store that is measured."""

    def __init__(self, path: Path, sessions: int, items: int) -> None:
        self.path, self.sessions, self.items = path, sessions, items
        self.clients: dict[int, Client] = {}
        self.times: dict[str, list[float]] = defaultdict(list)

    async def measure(self, round: int) -> None:
        """Take all times once, on one session."""
        number = round % self.sessions + 1
        client = self.clients[number] = self.clients.get(number) or Client(number, self.items)
        engine = self._engine()
        request = client.request()
        await self._time("reading the body: orjson.loads + sha256", asyncio.to_thread(_read, request))
        known = "its name" if client.name else "its history"
        view = await self._time(f"append, cold: found by {known}", engine.prepare(request))
        for _ in range(HOT):
            request = client.request()
            view = await self._time(APPEND, engine.prepare(request))
        if client.name:
            engine = await self._add(client, engine)
        await self._time("branch loaded", engine.store.load(SCOPE, view.branch))
        call = (await self._time("calls of a session", engine.store.calls(SCOPE, view.branch)))[-1]
        await self._time("view: resume the newest call", engine.resume(SCOPE, call))
        await self._time("search: rare words", engine.find(SCOPE, RARE, view.branch))
        await self._time("search: common words", engine.find(SCOPE, COMMON, view.branch))
        await self._time("search in all sessions: rare words", everywhere(engine.store, SCOPE, RARE, 20))
        await self._time("search in all sessions: common words", everywhere(engine.store, SCOPE, COMMON, 20))
        await self._time("branches listed", engine.store.branches(SCOPE))
        stranger = Client(NEW + 2 * round, 100).request()
        await self._time("append, cold: a new conversation of 100 items", engine.prepare(stranger))
        await engine.store.close()

    async def purge(self, number: int) -> None:
        """Take a whole session away, as the command does: first as a trial. Then the file is written anew."""
        store = SQLite(self.path)
        branch = (await store.branches(SCOPE))[-1 - number].id
        await self._time("purge of a session, dry run", store.purge(SCOPE, [branch], "measured", dry_run=True))
        await self._time("purge of a session, and the file written anew", store.purge(SCOPE, [branch], "measured"))
        await store.close()

    async def _add(self, client: Client, engine: Engine) -> Engine:
        """The same by a host that sends only what is new."""
        for _ in range(HOT):
            await self._time(ADD, engine.prepare(client.addition()))
        await engine.store.close()
        engine = self._engine()
        await self._time("addition, cold", engine.prepare(client.addition()))
        return engine

    def _engine(self) -> Engine:
        return Engine(SQLite(self.path), Budget(window=WINDOW))

    async def _time(self, what: str, act: Awaitable[T]) -> T:
        begun = time.perf_counter()
        done = await act
        self.times[what].append(time.perf_counter() - begun)
        return done


async def cold_open(path: Path) -> float:
    """Seconds of CPU that loading the newest branch of a store takes whoever has just opened it."""
    store = SQLite(path)
    branch = (await store.branches(SCOPE))[0].id
    begun = time.process_time()
    await store.load(SCOPE, branch)
    took = time.process_time() - begun
    await store.close()
    return took


def _read(request: Request) -> None:
    assert isinstance(request.body, bytes)
    orjson.loads(request.body)
    hashlib.sha256(request.body).digest()


async def compare(folder: Path, rounds: int, small: tuple[int, int], large: tuple[int, int]) -> list[Subject]:
    """Both stores, measured in turns."""
    pair = []
    for sessions, items in (small, large):
        path = folder / f"{sessions}x{items}.db"
        if took := await fill(path, sessions, items):
            print(f"{path.name}: {path.stat().st_size / 1e6:,.0f} MB in {took:.0f} s", file=sys.stderr)
        # A copy: whoever gave a folder may want to measure again.
        pair.append(Subject(Path(shutil.copy(path, path.with_suffix(".copy"))), sessions, items))
    for round in range(rounds):
        for subject in pair:
            print(f"\rround {round + 1} of {rounds}: {subject.path.stem} ", end="", file=sys.stderr)
            await subject.measure(round)
    for number in range(PURGES if small[0] > 1 else 0):
        for subject in pair:
            await subject.purge(number)
    print(file=sys.stderr)
    for subject in pair:
        subject.path.unlink()
    return pair


def table(one: Subject, other: Subject) -> list[tuple[str, ...]]:
    """A row for each act: its median in both stores, and how many times longer it takes in the large one."""
    head = ("milliseconds, median", *(f"{s.sessions:,} x {s.items:,} items" for s in (one, other)), "ratio")
    return [head, *_rows(one, other)]


def result(one: Subject, other: Subject, sizes: Sequence[int]) -> dict[str, Any]:
    """The same, to be kept."""
    figures = {}

    def put(what: str, small: float, large: float) -> None:
        both = {"small_ms": round(1e3 * small, 2), "large_ms": round(1e3 * large, 2)}
        figures[what] = {**both, "ratio": round(large / small, 2)}

    for what, times in one.times.items():
        put(what, median(times), median(other.times[what]))
        if what in (APPEND, ADD):
            put(f"{what}, 95 of 100 take at most", _high(times), _high(other.times[what]))
    settings = {
        "small_items": one.sessions * one.items,
        "large_items": other.sessions * other.items,
        "small_bytes": sizes[0],
        "large_bytes": sizes[1],
        "rounds": ROUNDS,
        "purges": PURGES,
    }
    return {"made": datetime.now(UTC).date().isoformat(), "settings": settings, "figures": figures}


def _rows(one: Subject, other: Subject) -> Iterator[tuple[str, ...]]:
    for what in one.times:
        yield _row(what, one.times[what], other.times[what], median)
        if what in (APPEND, ADD):
            yield _row("  95 of 100 take at most", one.times[what], other.times[what], _high)


def _row(
    what: str, one: Sequence[float], other: Sequence[float], of: Callable[[Sequence[float]], float]
) -> tuple[str, ...]:
    return what, f"{of(one) * 1e3:.2f}", f"{of(other) * 1e3:.2f}", f"{of(other) / of(one):.2f}"


def _high(times: Sequence[float]) -> float:
    return quantiles(times, n=20)[-1]


async def run(folder: Path, few: int, sessions: int, items: int, long: int, into: Path | None) -> None:
    """Print both tables, and write the first."""
    if sessions > few:
        one, other = await compare(folder, ROUNDS, (few, items), (sessions, items))
        show(table(one, other))
        print()
        if into:
            sizes = [(folder / f"{n}x{items}.db").stat().st_size for n in (few, sessions)]
            into.write_bytes(orjson.dumps(result(one, other, sizes), option=orjson.OPT_INDENT_2) + b"\n")
    if long > items:
        show(table(*await compare(folder, LONG_ROUNDS, (1, items), (1, long))))
        took = [await cold_open(folder / f"1x{long}.db") for _ in range(LONG_ROUNDS)]
        print(f"\n{long:,} items loaded by whoever has just opened the store: {median(took):.3f} s of CPU")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--few", type=int, default=FEW, help="sessions of the small store")
    parser.add_argument("--items", type=int, default=1_000, help="of each session")
    parser.add_argument("--long", type=int, default=100_000, help="items of the one long session")
    parser.add_argument("--folder", type=Path, help="where stores are kept for the next time")
    parser.add_argument("--postgres", metavar="URL", help="measure on this server instead, in databases of its own")
    parser.add_argument("--all", type=int, default=10_000_000, help="items of the large store on a server")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where figures are written")
    parser.add_argument("--keep", action="store_true", help="leave the databases there for the next time")
    given = parser.parse_args()
    if given.postgres:
        import servers

        servers.run(given.postgres, given.all, given.json, given.keep)
        return
    with TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        asyncio.run(run(folder, given.few, given.sessions, given.items, given.long, given.json))


if __name__ == "__main__":
    main()
