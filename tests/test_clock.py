"""A clock that is set back: what the log has is later than now, and everything goes on as it was."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC

import psycopg
import pytest

from clew import Budget, Engine, Request, Sessions, open_store
from clew.core.times import universal
from clew.engine.append import Addition
from clew.screens.lines import moment
from clew.store.places import is_url
from clew.store.sql import SQLStore
from clew.testing import conversation

YEAR = 365 * 24 * 3600.0
COLUMNS = {"branch": ("at",), "event": ("at",), "session": ("at", "ended"), "learned": ("at",), "purge": ("at",)}


def set_back(place: str) -> None:
    """Let all that was written so far be a year later than it was: as if the clock were set back by one."""
    changes = [f"update {table} set {name} = {name} + {YEAR}" for table, names in COLUMNS.items() for name in names]
    if is_url(place):
        with psycopg.connect(place) as server:
            server.execute("set search_path to clew")
            for change in changes:
                server.execute(change.encode())
        return
    with closing(sqlite3.connect(place)) as db, db:
        for change in changes:
            db.execute(change)


@pytest.fixture
async def again(store: SQLStore, place: str) -> AsyncIterator[SQLStore]:
    """The store, opened after the clock was set back; before, three turns were taken and one compacted."""
    engine = Engine(store, Budget(window=3_000))
    whole = conversation(5, 12, wordy=20)
    for n in (4, 7):
        view = await engine.prepare(Request({**whole, "messages": whole["messages"][:n]}, session="run"))
    await engine.prepare(Request({**whole, "messages": whole["messages"][:7]}))
    await engine.compact(view)
    await store.close()
    set_back(place)
    opened = open_store(place)
    yield opened
    await opened.close()


async def test_turns_go_on_where_they_were(again: SQLStore) -> None:
    engine, whole = Engine(again, Budget(window=3_000)), conversation(5, 12, wordy=20)
    before = {b.id for b in await again.branches("default")}
    for name in ("run", None):
        for n in (8, 11):
            view = await engine.prepare(Request({**whole, "messages": whole["messages"][:n]}, session=name))
            await engine.observe(view, {"input_tokens": 100})
            assert view.branch in before
    assert await again.check(deep=True) == []


async def test_the_newest_session_of_a_name_is_the_one_that_began_last(again: SQLStore) -> None:
    engine, sessions = Engine(again, Budget(window=3_000)), Sessions(Engine(again))
    whole = conversation(5, 12, wordy=20)
    view = await engine.prepare(Request({**whole, "messages": whole["messages"][:11]}, session="run"))
    await engine.compact(view)
    chain = await sessions.lineage("run")
    assert (await sessions.get("run")).ended is None
    assert [s.number for s in chain] == sorted(s.number for s in chain)


async def test_a_branch_that_a_rewind_opens_is_the_newest_of_its_name(again: SQLStore) -> None:
    engine, whole = Engine(again, Budget(window=3_000)), conversation(5, 12, wordy=20)
    said = [*whole["messages"][:4], {"role": "user", "content": "Something else altogether."}]
    views = []
    for more in ([], [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Go on."}]):
        said += more
        views.append(
            await Engine(again, Budget(window=3_000)).prepare(Request({**whole, "messages": said}, session="run"))
        )
    assert views[0].branch == views[1].branch
    added = await engine.prepare(Addition({**whole, "messages": [{"role": "user", "content": "More."}]}, "run"))
    assert added.branch == views[1].branch


async def test_a_conversation_that_begins_anew_is_the_newest_of_its_name(again: SQLStore) -> None:
    talks = [conversation(seed, 4, wordy=20) for seed in (7, 8)]
    for whole in talks:
        views = [
            await Engine(again, Budget(window=3_000)).prepare(
                Request({**whole, "messages": whole["messages"][:n]}, session="run")
            )
            for n in (1, 3)
        ]
        assert views[0].branch == views[1].branch
        added = Addition({**whole, "messages": [{"role": "user", "content": "More."}]}, "run")
        assert (await Engine(again, Budget(window=3_000)).prepare(added)).branch == views[1].branch
        assert (await Sessions(Engine(again)).get("run")).branch == views[1].branch
    assert await again.check(deep=True) == []


async def test_an_agent_whose_title_was_asked_for_before_is_the_newest_of_its_name(store: SQLStore, place: str) -> None:
    said = [{"role": "user", "content": "Write a parser for the dates in this file."}]
    title = {"model": "gpt-4o", "messages": [{"role": "system", "content": "Give it a title."}, *said]}
    await Engine(store).prepare(Request(title, session="run"))
    await store.close()
    set_back(place)
    opened = open_store(place)
    tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
    work = {"model": "gpt-4o", "tools": [tool], "messages": [{"role": "system", "content": "You are an agent."}, *said]}
    views = [await Engine(opened).prepare(Request(work, session="run")) for _ in range(2)]
    assert views[0].branch == views[1].branch
    await opened.close()


@pytest.mark.parametrize("at", [1e15, -1e15, float("inf"), float("nan"), 2e10])
def test_a_time_that_no_calendar_has_is_told_all_the_same(at: float) -> None:
    assert moment(at)
    assert universal(at).tzinfo is UTC
