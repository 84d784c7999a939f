"""Turns on the branches of a file: one at a time on each, in all processes; who dies, leaves or is late is out."""

import asyncio
import os
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from clew import SQLite
from clew.errors import StoreError
from clew.store import patience
from processes import Begun

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="locks of descriptions are Linux's")

SCOPE = "default"
HOLDER = """
import asyncio, os, sys, time, clew
async def main():
    store = clew.SQLite(sys.argv[1])
    async with store.alone("default", "b"):
        print("held", flush=True)
        time.sleep(1_000)
asyncio.run(main())
"""


WRITER = """
import sqlite3, sys, time
from clew.store.alone import FileTurns
with FileTurns(sys.argv[1] + "-turn").writing():
    db = sqlite3.connect(sys.argv[1], isolation_level=None)
    db.execute("begin immediate")
    print("writes", flush=True)
    time.sleep(1_000)
"""


def turn(store: SQLite, branch: str = "b") -> AbstractAsyncContextManager[None]:
    return store.alone(SCOPE, branch)


async def test_one_at_a_time_on_a_branch_and_nobody_waits_for_another(tmp_path: Path) -> None:
    one, two = SQLite(tmp_path / "clew.db"), SQLite(tmp_path / "clew.db")
    inside, most, done = set[str](), 0, 0

    async def take(store: SQLite, branch: str) -> None:
        nonlocal most, done
        async with turn(store, branch):
            assert branch not in inside, "two at once"
            inside.add(branch)
            most = max(most, len(inside))
            await asyncio.sleep(0)
            inside.remove(branch)
            done += 1

    async with turn(one):
        for store in (one, two):
            await take(store, "c")
        await asyncio.gather(*(take(store, branch) for store in (one, two) * 20 for branch in "cdefghijklmnop"))
    await asyncio.gather(*(take(store, "b") for store in (one, two) * 20))
    assert done == 2 + 2 * 20 * 14 + 2 * 20
    assert most > 1
    for store in (one, two):
        await store.close()


async def test_the_turn_of_a_process_that_dies_ends(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    store = SQLite(path, patience=1_000)
    with Begun("-c", HOLDER, str(path)) as holder:
        assert holder.stdout.readline() == "held\n"
        asking = asyncio.ensure_future(turn(store).__aenter__())
        await asyncio.wait([asking], timeout=0.2)
        assert not asking.done()
        async with turn(store, "c"):
            pass
        holder.kill()
        holder.wait()
        await asking
    await store.close()


async def test_who_waits_in_vain_goes_on_without_it(tmp_path: Path) -> None:
    one, two, three = (SQLite(tmp_path / "clew.db", patience=most) for most in (1_000, 0.3, 1_000))
    async with turn(one):
        async with turn(two):
            pass
        with patience(0.1):
            async with turn(three):
                pass
    for store in (one, two, three):
        async with turn(store):
            pass
        await store.close()


async def test_who_is_cancelled_in_line_leaves_it(tmp_path: Path) -> None:
    one, two = (SQLite(tmp_path / "clew.db", patience=1_000) for _ in range(2))
    async with turn(one):
        for _ in range(20):  # more than there are threads to wait in
            asking = asyncio.ensure_future(turn(two).__aenter__())
            await asyncio.sleep(0.001)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
    for _ in range(3):
        for store in (two, one):
            async with turn(store):
                pass
    for store in (one, two):
        await store.close()


async def test_a_store_that_waits_can_be_closed(tmp_path: Path) -> None:
    one, two = (SQLite(tmp_path / "clew.db", patience=0.1) for _ in range(2))
    async with turn(one):
        async with turn(two):
            pass
        await two.close()
    await one.close()


def test_a_fork_is_told_so(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "clew.db")
    child = os.fork()
    if not child:
        try:
            store.alone(SCOPE, "b")
        except StoreError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    asyncio.run(store.close())


async def test_who_stands_in_line_behind_a_writer_that_hangs_waits_no_longer_than_it_would(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    store = SQLite(path, patience=0.3)
    with Begun("-c", WRITER, str(path)) as writer:
        assert writer.stdout.readline() == "writes\n"
        for why in ("locked by another process", "waiting for other writers", "waiting for other writers"):
            with pytest.raises(StoreError, match=why):
                await store.learn(SCOPE, "kind", "name", {})
        assert await store.learned(SCOPE, "kind") == {}, "nobody who reads waits"
        writer.kill()
    await store.learn(SCOPE, "kind", "name", {"n": 1})
    assert await store.learned(SCOPE, "kind") == {"name": {"n": 1}}
    await store.close()
