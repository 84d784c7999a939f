"""Forks that are compacted before anything is said on them are written, listed, undone, exported and mended."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from clew import Budget, Engine, Request, Sessions, SQLite, open_store
from clew.core.view import View
from clew.engine.append import Addition
from clew.errors import NotFound
from clew.sessions.export_log import export
from clew.sessions.import_log import take_in
from clew.store.places import is_url
from clew.store.protocol import Store
from clew.store.records import Origin
from clew.store.sql import SQLStore
from old_stores import LATER, LATER_ON_A_SERVER
from test_sessions import Run, chain

WORD = {"messages": [{"role": "user", "content": "Another way."}]}


def small(store: Store) -> Engine:
    return Engine(store, Budget(window=3_000, reserve=300))


async def roomy(store: Store, turns: int = 12) -> Run:
    """A conversation in which nothing had to be compacted."""
    run = Run(Engine(store, Budget(window=100_000)))
    for _ in range(turns):
        await run.turn()
    return run


async def folded_fork(store: Store) -> tuple[Run, View]:
    """A conversation and a fork of it, whose first event is a compaction."""
    run = await roomy(store)
    await Sessions(run.engine).fork("run", "try")
    request = Request({"model": "gpt-4o", "messages": run.messages}, session="try")
    return run, await small(store).prepare(request)


async def test_a_client_that_goes_back_to_an_earlier_request_is_compacted_there(store: SQLStore) -> None:
    run = Run(Engine(store, Budget(window=100_000)))
    requests: list[list[dict[str, Any]]] = []
    for _ in range(12):
        run.messages += [*_turn(len(requests))]
        requests.append(list(run.messages))
        await run.engine.prepare(Request({"model": "gpt-4o", "messages": run.messages}))
    for _ in range(2):
        view = await small(store).prepare(Request({"model": "small", "messages": requests[7]}))
        assert view.edits
    opening, folded = reversed(await store.sessions("default", view.branch))
    assert (opening.cause, opening.number, opening.items, opening.calls) == ("fork", 1, 0, 0)
    assert (folded.cause, folded.number, folded.parent, folded.calls) == ("compaction", 2, opening.id, 2)
    assert opening.seq == folded.seq == (opening.parent_seq or 0) + 1
    assert await store.check(deep=True) == []


def _turn(n: int) -> list[dict[str, object]]:
    return [
        {"role": "assistant", "content": f"Page {n} is read."},
        {"role": "user", "content": f"Page {n + 1}, then: " + f"all is well on page {n}\n" * 40},
    ]


async def test_a_fork_is_compacted_at_once(store: SQLStore) -> None:
    run = await roomy(store)
    before = await chain(run.engine)
    await Sessions(run.engine).fork("run", "try")
    engine = Engine(store, Budget(window=100_000))
    view = await engine.open(Addition({"model": "gpt-4o", "messages": []}, session="try"))
    after = await engine.compact(view)
    assert len(after.nodes) < len(view.nodes)
    assert [s.cause for s in await chain(run.engine, "try")] == ["fork", "compaction"]
    assert await chain(run.engine) == before
    assert await store.check(deep=True) == []


async def test_its_chain_is_walked_and_its_compaction_taken_back(store: SQLStore) -> None:
    run, view = await folded_fork(store)
    sessions = Sessions(Engine(store, Budget(window=100_000)))
    opening, folded = await chain(run.engine, "try")
    assert [(s.name, s.number) for s in await sessions.lineage("try")] == [("run", 1), ("try", 1), ("try", 2)]
    assert (await sessions.get("try"), await sessions.get("try.1")) == (folded, opening)
    assert await sessions.calls("try.1") == []
    assert [one.call.seq for one in await sessions.calls("try.2")] == [view.seq]
    assert (await sessions.view("try.1")).nodes == run.sent[-1].nodes
    assert (await sessions.diff("try")).stand_ins
    with pytest.raises(NotFound, match="not with a compaction"):
        await sessions.diff("try.1")
    undone = await sessions.undo("try")
    assert undone.sessions == (folded.id,)
    assert undone.view.nodes == run.sent[-1].nodes
    assert [s.undone is not None for s in await chain(run.engine, "try")] == [False, True]
    assert await store.check(deep=True) == []


async def test_what_comes_of_it_comes_of_its_newest_session(store: SQLStore) -> None:
    run, view = await folded_fork(store)
    opening, folded = await chain(run.engine, "try")
    for name, parent in (("sub", view.branch), ("other", folded.id)):
        await run.engine.prepare(Addition(WORD, name, origin=Origin("subagent", parent)))
        assert (await Sessions(run.engine).get(name)).parent == folded.id
    await Sessions(run.engine).fork("try", "again")
    assert [s.number for s in await Sessions(run.engine).lineage("again")] == [1, 1, 2, 1]
    assert await store.ancestry("default", (await Sessions(run.engine).get("sub")).branch) == [(view.branch, view.seq)]
    assert opening.ended_by == "compaction"


async def test_it_is_exported_and_imported(store: SQLStore, tmp_path: Path) -> None:
    _, view = await folded_fork(store)
    lines = [line async for line in export(store, "default", [view.branch])]
    other = SQLite(tmp_path / "other.db")
    await take_in(other, "default", lines)
    assert [line async for line in export(other, "default", [view.branch])] == lines
    assert [s.id for s in await other.sessions("default", view.branch)] == [
        s.id for s in await store.sessions("default", view.branch)
    ]
    assert await other.check(deep=True) == []
    await take_in(other, "default", lines, name="beside")
    assert [s.cause for s in await chain(Engine(other), "beside")] == ["fork", "compaction"]
    assert await other.check(deep=True) == []
    await other.close()


@pytest.mark.few(2)
@pytest.mark.parametrize("cause", ["", " where cause = 'fork'", " where cause = 'compaction'"])
async def test_its_list_is_made_again_from_the_log(store: SQLStore, place: str, cause: str) -> None:
    run, _ = await folded_fork(store)
    await Sessions(Engine(store, Budget(window=100_000))).undo("try")
    before = await Sessions(run.engine).all()
    with closing(psycopg.connect(place) if is_url(place) else sqlite3.connect(place)) as db:
        db.execute(f"delete from {'clew.' * is_url(place)}session{cause}")
        db.commit()
    assert await store.check() != []
    assert await store.repair()
    assert await store.check() == []
    assert await Sessions(run.engine).all() == before


async def test_its_parent_is_purged_and_it_inherits(store: SQLStore) -> None:
    run, view = await folded_fork(store)
    await Sessions(run.engine).fork("try", "again")
    for branch in (run.sent[-1].branch, view.branch):
        await store.purge("default", [branch], "done with it")
        assert await store.check(deep=True) == []
    causes = [s.cause for s in reversed(await Sessions(run.engine).all())]
    assert causes == ["start", "fork", "compaction", "fork"]
    assert (await Sessions(run.engine).view("again")).nodes == view.nodes


async def test_a_store_of_before_takes_it_too(store: SQLStore, place: str) -> None:
    run = await roomy(store)
    await Sessions(run.engine).fork("run", "try")
    before = await Sessions(run.engine).all()
    await store.close()
    with closing(psycopg.connect(place) if is_url(place) else sqlite3.connect(place)) as db:
        if is_url(place):
            db.execute("set search_path to clew")
        db.execute("drop index session_place")
        db.execute("alter table session drop column opening")
        db.execute("create unique index session_place on session (branch, seq)")
        for act in (*LATER, *(LATER_ON_A_SERVER if is_url(place) else ())):
            db.execute(act)
        db.execute("update meta set value = '2' where key = 'version'" if is_url(place) else "pragma user_version = 3")
        db.commit()
    again = open_store(place)
    assert await Sessions(Engine(again)).all() == before
    await small(again).prepare(Request({"model": "gpt-4o", "messages": run.messages}, session="try"))
    assert [s.cause for s in await chain(Engine(again), "try")] == ["fork", "compaction"]
    assert await again.check() == []
    await again.close()
