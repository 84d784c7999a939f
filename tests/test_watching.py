"""A store file that is deleted, replaced, emptied or robbed of its log: nothing is acknowledged that is not in it."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

import processes
from clew import Engine, Request, SQLite
from clew.errors import StoreError
from clew.store import restore
from clew.store.sqlite.watching import Watch
from clew.testing import conversation

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows keeps a file that is open")

LOST = "changed under a process that has it open"
LOOK = (
    "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('select * from event').fetchall(); db.close()"
)
KILLED = """
import asyncio, os, sys, clew
from clew.testing import conversation
async def main(path, turns):
    engine = clew.Engine(clew.SQLite(path))
    for n in range(turns):
        await engine.prepare(clew.Request(conversation(n, 3), session=f"s{n}"))
    os._exit(0)
asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


async def said(store: SQLite, name: str) -> str:
    return (await Engine(store).prepare(Request(conversation(len(name), 3), session=name))).branch


def run(script: str, *args: object) -> None:
    processes.run("-c", script, *map(str, args), check=True)


async def killed(path: Path, turns: int) -> None:
    """Leave the files of a store as a process does that is killed while it works with it."""
    store = SQLite(path)
    for n in range(turns):
        await Engine(store).prepare(Request(conversation(n, 3), session=f"s{n}"))
    left = {end: Path(f"{path}{end}").read_bytes() for end in ("", "-wal", "-shm", "-mark")}
    await store.close()
    for end, data in left.items():
        Path(f"{path}{end}").write_bytes(data)


def replace(path: Path) -> None:
    """Another store in its place, as `mv` has it."""
    other = path.with_name("other.db")
    run(KILLED, other, 1)
    other.replace(path)


def write_over(path: Path) -> None:
    """An older copy in its place, as `cp` has it: the same file with other bytes."""
    path.write_bytes(path.with_name("old.db").read_bytes())


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def unlog(path: Path) -> None:
    Path(f"{path}-wal").unlink()


HARM: list[Callable[[Path], None]] = [Path.unlink, replace, write_over, cut, empty, unlog]


@pytest.mark.parametrize("harm", HARM)
async def test_nothing_is_acknowledged_that_is_not_in_the_file_at_its_path(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    path = tmp_path / "clew.db"
    first = SQLite(path)
    await said(first, "one")
    await first.backup(tmp_path / "old.db")
    await said(first, "two")
    await first.close()
    store = SQLite(path)
    await said(store, "three")
    harm(path)
    for _ in range(2):
        with pytest.raises(StoreError, match=LOST):
            await said(store, "four")
        with pytest.raises(StoreError, match=LOST):
            await store.branches("default")
    await store.close()


async def test_what_others_do_to_the_file_by_right_is_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("clew.db")
    store = SQLite(path)
    for n in range(30):
        await Engine(store).prepare(Request(conversation(n, 12), session=f"s{n}"))
    other = SQLite(path)
    gone = [await said(other, "gone"), *[b.id for b in (await other.branches("default"))[:25]]]
    assert (await other.purge("default", gone, "test")).wiped  # the file is written anew, and smaller
    await said(store, "more")
    await other.backup("copy.db")
    await other.close()
    run(LOOK, path)
    monkeypatch.chdir("/")
    await said(store, "again")
    assert len(await store.branches("default")) == 30 - 24 + 2
    await store.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["clew.db", "copy.db"]


async def test_a_second_store_on_a_file_does_not_let_go_of_the_firsts_locks(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    store = SQLite(path)
    await said(store, "one")
    await SQLite(path).close()
    run(LOOK, path)  # another process, which would delete the log if it took itself for the last
    assert Path(f"{path}-wal").exists()
    await said(store, "two")
    with sqlite3.connect(path) as db:
        assert db.execute("select count(*) from branch").fetchone() == (2,)
    db.close()
    await store.close()


async def problems(path: Path, repair: bool = False) -> list[tuple[str, int]]:
    store = SQLite(path)
    if repair:
        await store.repair()
    found = [(p.what.partition(":")[0], p.count) for p in await store.check(deep=True)]
    await store.close()
    return found


MISSING = "turns that were acknowledged and are not in the file"


async def test_a_missing_log_is_noticed_even_after_others_wrote_on(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    await killed(path, 3)
    assert await problems(path) == []
    await killed(path, 4)
    unlog(path)
    store = SQLite(path)
    await said(store, "later")
    await store.close()
    assert await problems(path) == [(MISSING, 4)]
    assert await problems(path, repair=True) == []
    assert await problems(path) == []


async def test_many_threads_look_while_the_log_is_brought_home(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await killed(path, 1)
    db = sqlite3.connect(path, isolation_level=None)
    [secret], [turns] = db.execute("select value from meta where key in ('secret', 'turns') order by key").fetchall()
    watch = Watch(path, secret, turns, logged=True)
    ended = Event()

    def look() -> None:
        while not ended.is_set():
            watch.look()

    with ThreadPoolExecutor(3) as threads, closing(db):
        looking = [threads.submit(look) for _ in range(3)]
        for turn in range(turns + 1, turns + 500):
            db.execute("update meta set value = ? where key = 'turns'", (turn,))
            db.execute("pragma wal_checkpoint")
        ended.set()
        for done in looking:
            done.result()


async def test_there_is_no_false_alarm(tmp_path: Path) -> None:
    path, copy = tmp_path / "clew.db", tmp_path / "copy.db"
    await killed(path, 3)
    store = SQLite(path)
    await store.backup(copy)
    await said(store, "later")
    await store.close()
    assert await problems(path) == []
    await killed(path, 5)
    restore(copy, path)  # over what was killed
    assert await problems(path) == []
    await killed(path, 5)
    path.unlink()
    restore(copy, path)  # where only the log of what was there is left
    assert await problems(path) == []
    await killed(path, 5)
    for end in ("", "-wal", "-shm", "-mark"):
        shutil.copy(f"{path}{end}", tmp_path / f"moved.db{end}")
    assert await problems(tmp_path / "moved.db") == []
    for end in ("", "-wal", "-shm"):
        Path(f"{path}{end}").unlink()
    await SQLite(path).close()  # another one, beside the mark of the first
    assert await problems(path) == []


async def test_an_older_copy_over_the_file_is_noticed_although_the_log_has_the_newest_turn(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await killed(path, 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        [secret], [turns] = db.execute(
            "select value from meta where key in ('secret', 'turns') order by key"
        ).fetchall()
        db.execute("pragma wal_checkpoint")
        old = path.read_bytes()
        db.execute("update meta set value = ? where key = 'turns'", (turns + 1,))
        db.execute("pragma wal_checkpoint")
        watch = Watch(path, secret, turns + 1, logged=True)
        db.execute("update meta set value = ? where key = 'turns'", (turns + 2,))
        watch.commit(turns + 2)
        path.write_bytes(old)
        with pytest.raises(StoreError, match="truncated or overwritten"):
            watch.look()
