"""Group commit: what waits for the writer of a file is written together, and each of it is all there or not at all."""

import asyncio
import os
import sqlite3
import tempfile
import threading
from collections import Counter
from collections.abc import Awaitable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import cases
from clew import Engine, Request, SQLite
from clew.core.items import Digests, Item
from clew.errors import Conflict, StoreError
from clew.store.alone import FileTurns
from clew.store.records import Batch, Event, Said
from clew.store.sqlite import TOGETHER, Group
from clew.store.sqlite.database import SQLiteDatabase
from clew.store.sqlite.opening import connect
from clew.store.waiting import LEAST_WAIT, Wait, patience
from clew.store.writing import learn
from clew.testing import conversation
from processes import Begun

SCOPE = "default"
BRANCHES = ("north", "east", "south")


def commits(path: Path) -> int:
    """Transactions in the write-ahead log since it was begun anew."""
    log = Path(f"{path}-wal").read_bytes()
    page, salt = int.from_bytes(log[8:12]), log[16:24]
    frames = (log[at : at + 24] for at in range(32, len(log), 24 + page))
    return sum(frame[8:16] == salt and frame[4:8] != bytes(4) for frame in frames)  # the last one has a size


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """While somebody else writes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("begin immediate")
        yield
        db.execute("rollback")


def batch(store: SQLite, branch: str, seq: int, text: str, opened: bool = False) -> Batch:
    """Two events, so that one of them alone would show."""
    digests = Digests(store.secret, SCOPE)
    nodes = list(digests.chain(Item("text", "user", f"{text} {n}") for n in range(2)))
    events: tuple[Event, ...] = tuple(Said((node,)) for node in nodes)
    return Batch(branch, seq, events, opened=opened, learned=(("kind", f"{branch} {seq} {text}", {"n": seq}),))


# A batch where its branch ends, one that comes too late or too early, a label, a value.
ACTS = st.lists(st.tuples(st.sampled_from(BRANCHES), st.sampled_from([0, 0, 0, -2, 2, None])), min_size=2, max_size=40)


@settings(max_examples=cases(10))
@given(ACTS)
def test_what_one_does_wrong_concerns_nobody_else(acts: list[tuple[str, int | None]]) -> None:
    asyncio.run(_all_at_once(acts))


async def _all_at_once(acts: list[tuple[str, int | None]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clew.db"
        store = SQLite(path, patience=1_000)
        for branch in BRANCHES:
            await store.write(SCOPE, batch(store, branch, 0, "opens", opened=True))
        ends, expected, begun = Counter(dict.fromkeys(BRANCHES, 2)), list[bool](), list[Awaitable[None]]()
        for n, (branch, off) in enumerate(acts):
            if off is None:
                begun.append(store.label(SCOPE, branch, tags=(str(n),)))
                expected.append(True)
                continue
            begun.append(store.write(SCOPE, batch(store, branch, ends[branch] + off, f"act {n}")))
            expected.append(off == 0)
            ends[branch] += 2 * (off == 0)
        before = commits(path)
        with locked(path):
            tasks = [asyncio.ensure_future(one) for one in begun]
            await asyncio.sleep(0.01)
            assert not any(task.done() for task in tasks), "answered before it was written"
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [answer is None for answer in answers] == expected
        assert all(answer is None or isinstance(answer, Conflict) for answer in answers)
        # The first one, which found the file locked, and all others together, as many at a time as may be.
        assert commits(path) - before <= 1 + -(-len(acts) // TOGETHER)
        for branch in BRANCHES:
            assert [h.seq for h in await store.events(SCOPE, branch)] == list(range(ends[branch]))
        written = sum(done for (_, off), done in zip(acts, expected, strict=True) if off is not None)
        assert len(await store.learned(SCOPE, "kind")) == len(BRANCHES) + written
        assert await store.check(deep=True) == []
        await store.close()
        again = SQLite(path)
        assert await again.check() == [], "as many turns as were acknowledged"
        await again.close()


async def test_who_waits_less_leaves_the_others_waiting(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    patient, hasty = SQLite(path, patience=1_000), SQLite(path, patience=0.3)
    with locked(path):
        first = asyncio.ensure_future(patient.label(SCOPE, "nobody", tags=("a",)))
        second = asyncio.ensure_future(patient.label(SCOPE, "nobody", tags=("b",)))
        with pytest.raises(StoreError, match="locked by another process"):
            await hasty.label(SCOPE, "nobody", tags=("c",))
        second.cancel()
        assert not first.done()
    await first
    for store in (patient, hasty):
        await store.close()


async def test_a_report_is_one_transaction_with_what_it_teaches(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    store = SQLite(path)
    engine = Engine(store)
    view = await engine.prepare(Request(conversation(1, 3)))
    await store.learn(SCOPE, "limit", view.frame.model, {"tokens": 5_000})
    engine = Engine(store)
    view = await engine.prepare(Request(conversation(1, 4)))
    before = commits(path)
    await engine.observe(view, {"input_tokens": 6_000, "output_tokens": 1})
    assert commits(path) == before + 1
    assert (await store.learned(SCOPE, "calibration")).keys() == {view.frame.model}
    assert await store.learned(SCOPE, "limit") == {view.frame.model: {}}, "so much went well"
    [*_, call] = await store.calls(SCOPE, view.branch)
    assert call.usage is not None
    await store.close()


async def test_what_a_report_teaches_is_kept_although_its_call_was_purged(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "clew.db")
    engine = Engine(store)
    view = await engine.prepare(Request(conversation(1, 3)))
    await store.purge(SCOPE, [view.branch], "test")
    await engine.observe(view, {"input_tokens": 6_000, "output_tokens": 1})
    assert (await store.learned(SCOPE, "calibration")).keys() == {view.frame.model}
    await store.close()


def test_where_the_disk_is_full_those_are_refused_who_need_the_room(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    db = SQLiteDatabase(connect(str(path), migrate=True), str(path))
    pages = db.connection.execute("pragma page_count").fetchone()[0]
    db.connection.execute(f"pragma max_page_count = {pages + 8}")  # as small as that disk
    with ThreadPoolExecutor(1) as thread:
        group, gate = Group(thread, db, FileTurns(f"{path}-turn")), threading.Event()
        thread.submit(gate.wait)  # so that all of them gather

        def put(name: str, size: int) -> Future[None]:
            return group.submit(lambda: learn(db, SCOPE, "kind", name, {"text": "x" * size}), Wait(1_000))

        asked = [put(f"n{n}", 1_000_000 if n % 3 == 1 else 10) for n in range(12)]
        gate.set()
        wait(asked)
    full = [isinstance(one.exception(), sqlite3.OperationalError) for one in asked]
    assert full == [n % 3 == 1 for n in range(12)]
    names = {name for name, _ in db.ask("learned", scope=SCOPE, kind="kind")}
    assert names == {f"n{n}" for n in range(12) if n % 3 != 1}
    assert commits(path) == -(-12 // TOGETHER)
    db.close()


KILLED = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[2])
from test_grouping import SCOPE, batch
from clew import SQLite
async def main(path, told):
    store = SQLite(path)
    async def talk(branch):
        events = await store.events(SCOPE, branch)
        seq = len(events)
        while True:
            await store.write(SCOPE, batch(store, branch, seq, f"{branch} at {seq}", opened=not seq))
            seq += 2
            os.write(1, f"{branch} {seq}\\n".encode())
    await asyncio.gather(*(talk(f"b{n}") for n in range(8)))
asyncio.run(main(sys.argv[1], 1))
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no kill -9 on Windows")
async def test_a_crash_leaves_of_each_act_all_or_nothing(tmp_path: Path) -> None:
    path, known = tmp_path / "clew.db", dict[str, int]()
    for round in range(cases(4)):
        with Begun("-c", KILLED, str(path), str(Path(__file__).parent)) as writer:
            lines = [writer.stdout.readline() for _ in range(10 + 7 * round)]
            writer.kill()
            lines += writer.stdout.readlines()
        for branch, told in map(str.split, lines):
            known[branch] = max(known.get(branch, 0), int(told))
        store = SQLite(path)
        for branch, seq in known.items():
            there = await store.events(SCOPE, branch)
            assert len(there) >= seq, "acknowledged and not there"
            assert len(there) % 2 == 0, "half of an act is there"
            assert [h.seq for h in there] == list(range(len(there)))
        assert await store.check(deep=True) == []
        await store.close()


def test_who_waited_for_others_in_vain_has_no_time_left_for_the_next_act(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    db = SQLiteDatabase(connect(str(path), migrate=True), str(path))
    db.connection.execute("pragma busy_timeout = 10")
    with ThreadPoolExecutor(1) as thread, locked(path), patience(0.3):
        group = Group(thread, db, FileTurns(f"{path}-turn"))
        error = group.submit(lambda: learn(db, SCOPE, "kind", "n", {}), Wait(1_000)).exception()
        assert isinstance(error, sqlite3.OperationalError)
        assert Wait(1_000).most == LEAST_WAIT
    db.close()
