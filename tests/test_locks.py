"""A store that another process has locked: a call waits as long as its caller would, and no longer."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Barrier

import psycopg
import pytest

import clew
from asking import request
from clew import Engine, Request, SQLite, open_store
from clew.errors import StoreError
from clew.store import patience
from clew.store.places import is_url
from clew.store.sql import SQLStore
from clew.store.sqlite.opening import connect
from clew.testing import Answer, StrictProvider, conversation
from clients import plain_of

LOCKED = "locked by another process"


@contextmanager
def locked(place: str) -> Iterator[None]:
    """While somebody else has the store to themselves."""
    if is_url(place):
        with psycopg.connect(place, options="-c search_path=clew") as server:
            server.execute("lock table branch in access exclusive mode")
            yield
            server.rollback()
        return
    with closing(sqlite3.connect(place, isolation_level=None)) as db:
        db.execute("begin exclusive")
        yield
        db.execute("rollback")


async def said(store: SQLStore, n: int) -> str:
    return (await Engine(store).prepare(Request(conversation(n, 2), session=f"s{n}"))).branch


async def test_a_caller_with_little_patience_waits_no_longer(store: SQLStore, place: str) -> None:
    with locked(place), pytest.raises(StoreError, match=LOCKED), patience(0.3):
        await said(store, 1)
    assert await store.branches("default") == []
    assert await said(store, 1)


async def test_a_store_can_be_told_to_have_little_patience(place: str) -> None:
    store = open_store(place, patience=0.3)
    with locked(place), pytest.raises(StoreError, match=LOCKED):
        await said(store, 1)
    with patience(60):  # on a busy machine
        assert await said(store, 1)
    await store.close()


async def test_whoever_waits_does_not_stop_the_loop_and_goes_on_when_it_is_free(store: SQLStore, place: str) -> None:
    with locked(place):
        turn = asyncio.create_task(said(store, 1))
        for _ in range(50):
            await asyncio.sleep(0.01)
        assert not turn.done()
    assert await turn in {b.id for b in await store.branches("default")}


async def test_whoever_leaves_is_not_waited_for_any_more(tmp_path: Path) -> None:
    place = str(tmp_path / "clew.db")
    store = SQLite(place, patience=1_000)
    with locked(place):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(said(store, 1), 0.2)
        with pytest.raises(StoreError, match=LOCKED), patience(0.5):  # its turn came, in the one thread that writes
            await store.label("default", "nobody", tags=("a",))
    await store.close()


async def test_whoever_waits_behind_a_patient_one_waits_no_longer(tmp_path: Path) -> None:
    place = str(tmp_path / "clew.db")
    store = SQLite(place, patience=1_000)
    with locked(place):
        patient = asyncio.create_task(said(store, 1))
        told = ""
        while "waiting for other writers" not in told:  # until the patient one has begun, it waits for the lock itself
            with pytest.raises(StoreError, match=f"{LOCKED}|waiting for other writers") as error, patience(0.3):
                await store.label("default", "nobody", tags=("a",))
            told = str(error.value)
        assert not patient.done()
    assert await patient
    await store.close()


async def test_a_locked_store_is_not_taken_for_a_damaged_one(tmp_path: Path) -> None:
    place = str(tmp_path / "clew.db")
    store = SQLite(place, patience=0.3)
    await said(store, 1)
    with locked(place), pytest.raises(StoreError, match=LOCKED):
        await store.check()
    assert await store.check() == []
    await store.close()


def test_a_wrapped_request_goes_out_within_its_own_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = str(tmp_path / "clew.db")
    engine = Engine(SQLite(place, patience=1_000))
    with StrictProvider([Answer("one"), Answer("two"), Answer("three")]) as provider:
        client = clew.wrap(plain_of(provider, "openai_chat").with_options(timeout=2), engine)
        ask = client.chat.completions.create
        assert ask(**request("openai_chat")).choices[0].message.content == "one"
        with locked(place):
            assert ask(**request("openai_chat")).choices[0].message.content == "two"
        assert "clew failed; the original request is sent unchanged" in caplog.text
        assert LOCKED in caplog.text
        assert ask(**request("openai_chat")).choices[0].message.content == "three"
    clew.run(engine.store.close())


COLLECTED = """
import gc, sys
from clew import SQLite

class Forgotten:
    pass

gc.disable()
lost = Forgotten()
lost.store, lost.itself = SQLite(f"{sys.argv[1]}/lost.db"), lost  # only the collector finds it
del lost
# It may run wherever something is made, also where another store is being opened.
sys.setprofile(lambda frame, event, arg: gc.collect() if frame.f_code.co_name == "_prepare" else None)
SQLite(f"{sys.argv[1]}/other.db")
print("opened")
"""


def test_the_collector_may_let_go_of_a_store_while_another_is_opened(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COLLECTED, str(tmp_path)], capture_output=True, text=True, timeout=300
    )  # it would wait for itself for ever
    assert done.stdout == "opened\n", done.stderr


def test_who_opens_a_new_file_at_once_with_others_waits_for_them(tmp_path: Path) -> None:
    """SQLite does not, where two want a log beside it at the same moment: one in twelve tries showed that."""
    many = 8
    begin = Barrier(many)

    def opened(file: Path) -> None:
        begin.wait()
        connect(str(file), migrate=True).close()

    with ThreadPoolExecutor(many) as threads:
        for n in range(25):
            list(threads.map(opened, [tmp_path / f"{n}.db"] * many))
