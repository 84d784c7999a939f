"""Odd turns of lineage: forks that undo, names like others, children of forks in which nothing was said yet."""

from pathlib import Path

import pytest

from clew import Budget, Engine, Request, Sessions, SQLite
from clew.engine.append import Addition
from clew.engine.engine import body
from clew.errors import BadRequest
from clew.store.protocol import Store
from clew.store.records import Origin
from clew.store.sql import SQLStore
from clew.wire.rules.check import check
from test_sessions import WINDOW, Run, chain

WORD = {"messages": [{"role": "user", "content": "Another way."}]}


async def compacted(store: Store, times: int) -> Run:
    run = Run(Engine(store, Budget(window=WINDOW, reserve=500)))
    await run.until(times)
    return run


async def test_a_fork_that_undoes_a_compaction_it_inherited_leaves_its_parent_alone(store: SQLStore) -> None:
    run = await compacted(store, 2)
    before = await chain(run.engine)
    await Sessions(run.engine).fork("run", "try")
    roomy = Sessions(Engine(store, Budget(window=200_000)))
    undone = await roomy.undo("try")
    assert undone.sessions == (before[-1].id,)
    assert await chain(run.engine) == before
    assert (await roomy.view("run")).nodes == run.sent[-1].nodes
    assert await store.check() == []


async def test_what_an_undo_brought_back_is_folded_again_where_all_of_it_does_not_fit(store: SQLStore) -> None:
    run = await compacted(store, 3)
    back = await Engine(store, Budget(window=200_000)).undo("default", run.sent[-1].branch, 3)
    assert not back.view.edits
    view = await run.turn()  # raises where it does not fit
    assert view.edits
    assert check(body(view)) == []


async def test_a_number_in_a_conversation_is_not_the_beginning_of_another_name(store: Store) -> None:
    run = await compacted(store, 2)
    sessions = Sessions(run.engine)
    for name in ("run.12", "run.3"):
        await run.engine.prepare(Addition(WORD, name))
    assert await sessions.get("run.1") == (await chain(run.engine))[0]
    assert (await sessions.get("run.3")).name == "run.3"  # called so
    assert (await sessions.get("run.3.1")).name == "run.3"


async def test_a_sub_agent_of_a_fork_in_which_nothing_was_said_yet_is_the_forks(store: SQLStore) -> None:
    run = await compacted(store, 1)
    fork = await Sessions(run.engine).fork("run", "try")
    await run.engine.prepare(Addition(WORD, "sub", origin=Origin("subagent", fork.branch)))
    child = await Sessions(run.engine).get("sub")
    assert (child.parent, child.parent_seq) == (fork.id, fork.parent_seq)
    assert [s.name for s in await Sessions(run.engine).lineage("sub")] == ["run", "run", "try", "sub"]
    assert await store.check() == []


async def test_a_name_that_is_no_text_is_refused(store: Store) -> None:
    engine = Engine(store)
    for odd in (Addition(WORD, "\udcff"), Request(WORD, session="\udcff"), Request(WORD, scope="\udcff")):
        with pytest.raises(BadRequest, match="unpaired surrogate"):
            await engine.prepare(odd)
    assert await store.branches("default") == []


async def test_an_addition_needs_no_file_to_lock(tmp_path: Path) -> None:
    (tmp_path / "clew.db-turn").mkdir()
    store = SQLite(tmp_path / "clew.db")
    assert len((await Engine(store).prepare(Addition(WORD, "s"))).nodes) == 1
    await store.close()
