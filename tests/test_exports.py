"""Export and import: what was written can be written again, anywhere, and is the same."""

import json
from pathlib import Path
from typing import Any

import pytest

from clew import Budget, Engine, Request, Sessions, SQLite, body
from clew.engine.append import Addition
from clew.errors import BadRequest, Conflict
from clew.sessions.export_log import export
from clew.sessions.import_log import take_in
from clew.store.protocol import Store
from clew.store.records import Origin
from clew.store.sql import SQLStore
from clew.testing import conversation
from test_sessions import WINDOW, Run

WORD = {"messages": [{"role": "user", "content": "Look there."}]}


async def lines(store: Store, *branches: str, scope: str = "default") -> list[bytes]:
    return [line async for line in export(store, scope, branches)]


async def busy(store: Store) -> list[str]:
    """A store with all that there can be: folds, pins, reports, an undo, forks, a sub-agent, a client that edits."""
    run = Run(Engine(store, Budget(window=WINDOW, reserve=500)))
    await run.until(4)
    await run.engine.pin(run.sent[-1], run.sent[-1].nodes[0].id)
    await run.engine.observe(run.sent[-1], {"input_tokens": 4_000, "output_tokens": 20})
    run.messages[-1] = {
        **run.messages[-1],
        "content": f"{run.messages[-1]['content']}<system-reminder>-</system-reminder>",
    }
    await run.turn()
    await Sessions(Engine(store, Budget(window=100_000))).undo("run")
    await run.turn()
    fork = await Sessions(run.engine).fork("run.2", "try")
    await run.engine.prepare(Addition({"messages": [{"role": "user", "content": "Another way."}]}, "try"))
    sub = {"messages": [{"role": "user", "content": "Look into it."}]}
    child = await run.engine.prepare(Addition(sub, "sub", origin=Origin("subagent", fork.branch)))
    await run.engine.prepare(Request(conversation(3, 9)))  # nobody's
    await store.label("default", fork.branch, tags=("a", "b"), archived=True)
    return [run.sent[-1].branch, child.branch]


@pytest.mark.few(1)
async def test_what_is_exported_imported_and_exported_again_is_the_same(store: Store, tmp_path: Path) -> None:
    branches = await busy(store)
    first = await lines(store, *branches)
    other = SQLite(tmp_path / "other.db")
    made = await take_in(other, "theirs", first)
    assert made[-1] == branches[-1]
    assert await lines(other, *branches, scope="theirs") == first
    was = {s.id: s for s in await store.sessions("default")}
    now = {s.id: s for s in await other.sessions("theirs")}
    assert {id: (s.cause, s.parent, s.at, s.calls, s.cost, s.tags) for id, s in now.items()} == {
        id: (s.cause, s.parent, s.at, s.calls, s.cost, s.tags) for id, s in was.items() if id in now
    }
    for branch in branches:
        assert await calls_are_proven(other, "theirs", branch) == await calls_are_proven(store, "default", branch)
    assert await other.check(deep=True) == []
    await other.close()


async def test_what_a_conversation_is_only_beside_does_not_go_with_it(store: Store, tmp_path: Path) -> None:
    engine = Engine(store, Budget(window=WINDOW, reserve=500))
    alice = await engine.prepare(Addition({"messages": [{"role": "user", "content": "I am Alice."}]}, "one"))
    bob = await engine.prepare(Addition(WORD, "two", origin=Origin("beside", alice.branch)))
    alone, both = await lines(store, bob.branch), await lines(store, alice.branch, bob.branch)
    assert b"Alice" not in b"".join(alone)
    for written, cause in ((alone, "start"), (both, "beside")):
        other = SQLite(tmp_path / f"{cause}.db")
        await take_in(other, "theirs", written)
        assert [s.cause for s in await other.sessions("theirs", bob.branch)] == [cause]
        await other.close()


async def test_a_fork_of_a_fork_has_nothing_that_was_said_behind_it(store: Store, tmp_path: Path) -> None:
    """It parted from a beginning that both its parents have: what the first of them said later is not its own."""
    engine = Engine(store, Budget(window=WINDOW, reserve=500))
    said = [{"role": r, "content": c} for r, c in (("user", "Begin."), ("assistant", "Yes."), ("user", "Amber."))]
    said += [{"role": "assistant", "content": "Well."}, {"role": "user", "content": "Beryl."}]
    for until in (1, 3, 5):
        await engine.prepare(Request({"model": "gpt-4o", "messages": said[:until]}))
    first = (await store.sessions("default"))[0].branch
    calls = [call.seq for call in await store.calls("default", first)]
    second = await engine.fork("default", first, calls[2], "second")
    third = await engine.fork("default", second, calls[0], "third")
    written = await lines(store, third)
    assert b"Begin" in b"".join(written)
    assert b"Amber" not in b"".join(written)
    for branches in ([third], [second, third]):
        other = SQLite(tmp_path / f"{len(branches)}.db")
        await take_in(other, "theirs", await lines(store, *branches))
        assert await calls_are_proven(other, "theirs", third) == await calls_are_proven(store, "default", third)
        assert await other.check(deep=True) == []
        await other.close()


@pytest.mark.few(1)
async def test_an_import_that_was_cut_off_before_it_labelled_a_branch_does_so_when_asked_again(
    store: Store, tmp_path: Path
) -> None:
    branches = await busy(store)
    first = await lines(store, *branches)
    other = SQLite(tmp_path / "other.db")
    made = await take_in(other, "theirs", first)
    for branch in made:
        await other.label("theirs", branch, (), archived=False)
    assert await take_in(other, "theirs", first) == []
    assert await lines(other, *branches, scope="theirs") == first
    await other.close()


async def calls_are_proven(store: Store, scope: str, branch: str) -> list[dict[str, Any]]:
    """Every call of a branch made again from the log alone; its digest proves that it is the one that was sent."""
    engine, sent = Engine(store), []
    for call in await store.calls(scope, branch):
        view = await engine.resume(scope, call)
        chain = view.digests.run("", (n.content for n in view.nodes))
        assert view.digests.link(call.frame, (chain,)) == call.digest
        sent.append(body(view))
    assert sent
    return sent


async def test_ids_that_stand_ins_name_recall_the_same_in_another_store(store: Store, tmp_path: Path) -> None:
    [branch, _] = await busy(store)
    other = SQLite(tmp_path / "other.db")
    await take_in(other, "default", await lines(store, branch))
    view = await Engine(store).view("default", branch)
    for edit in view.edits:
        short = view.digests.handle(edit.old)[:10]
        there = await Engine(other).recall("default", short, branch)
        assert [n.item for n in there] == [n.item for n in await Engine(store).recall("default", short)]
    await other.close()


async def test_an_imported_conversation_goes_on(store: Store, tmp_path: Path) -> None:
    run = Run(Engine(store, Budget(window=WINDOW, reserve=500)))
    await run.until(3)
    other = SQLite(tmp_path / "other.db")
    await take_in(other, "default", await lines(store, run.sent[-1].branch))
    again = Run(Engine(other, Budget(window=WINDOW, reserve=500)), "run", list(run.messages), list(run.sent))
    assert body(await run.turn()) == body(await again.turn())
    unnamed = await Engine(store).prepare(Request(conversation(5, 4)))
    await take_in(other, "default", await lines(store, unnamed.branch))
    assert (await Engine(other).prepare(Request(conversation(5, 5)))).branch == unnamed.branch
    await other.close()


async def test_a_conversation_that_grew_goes_on_where_it_was(store: Store, tmp_path: Path) -> None:
    run = Run(Engine(store, Budget(window=WINDOW, reserve=500)))
    other = SQLite(tmp_path / "other.db")
    for compactions in (1, 3, 3):
        await run.until(compactions)
        written = await lines(store, run.sent[-1].branch)
        await take_in(other, "default", written)
        assert await lines(other, run.sent[-1].branch) == written
    assert await calls_are_proven(other, "default", run.sent[-1].branch)
    again = Sessions(Engine(other))
    assert (await again.get("run")).number == (await Sessions(run.engine).get("run")).number
    assert await other.check(deep=True) == []
    await other.close()


async def test_a_conversation_beside_itself_needs_a_name(store: Store) -> None:
    run = Run(Engine(store, Budget(window=WINDOW, reserve=500)))
    await run.until(2)
    written = await lines(store, run.sent[-1].branch)
    assert await take_in(store, "default", written) == []  # it is there already
    assert len(await take_in(store, "default", written, "copy")) == 1
    sessions = Sessions(run.engine)
    assert body(await sessions.view("copy")) == body(await sessions.view("run"))
    assert (await sessions.get("copy")).number == (await sessions.get("run")).number
    await run.turn()
    assert await take_in(store, "default", written) == []
    with pytest.raises(Conflict, match="import it under another name"):
        await take_in(store, "default", with_another_end(written))
    copies = await take_in(store, "another scope", written)
    assert len(copies) == 1
    assert await take_in(store, "another scope", written) == []
    assert body(await Engine(store).view("another scope", copies[0])) == body(await sessions.view("copy"))
    [second] = await take_in(store, "another scope", written, "copy")
    assert await store.session("another scope", "copy") == second != copies[0]


def with_another_end(written: list[bytes]) -> list[bytes]:
    last = next(line for line in reversed(written) if b'"kind":"call"' in line)
    return [line.replace(b'"kind":"call"', b'"kind":"pin"') if line is last else line for line in written]


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("at", "change", "error"),
    [
        (0, b"{}", "line 1: not a"),
        (0, b'{"clew": 99}', "line 1: written by another clew"),
        (3, b"{", "line 4: "),
        (3, b'{"what": 1}', "line 4: not a line that `clew export` wrote: what"),
        (-1, b'{"event": 999, "at": 1, "kind": "pin"}', ", got 999"),
    ],
)
async def test_a_file_that_is_not_whole_is_refused_and_nothing_is_written(
    store: Store, tmp_path: Path, at: int, change: bytes, error: str
) -> None:
    run = Run(Engine(store, Budget(window=WINDOW, reserve=500)))
    await run.until(1)
    written = await lines(store, run.sent[-1].branch)
    written[at] = change
    other = SQLite(tmp_path / "other.db")
    with pytest.raises(BadRequest, match=error):
        await take_in(other, "default", written)
    assert await other.branches("default") == []
    await other.close()


FOREIGN: list[tuple[str, dict[str, Any]]] = [  # the first line of a sort, and what somebody put there
    ("branch", {"branch": "\ud800"}),
    ("branch", {"branch": "short"}),
    ("branch", {"parent": "f" * 16, "parent_seq": 0}),
    ("branch", {"after": "f" * 16}),
    ("branch", {"cause": "<b>"}),
    ("branch", {"at": 10**400}),
    ("branch", {"tags": 3}),
    ("item", {"kind": "spell"}),
    ("item", {"name": [3]}),
    ("node", {"item": -1}),
    ("frame", {"format": "morse"}),
    ("said", {"kind": "session"}),
    ("said", {"at": float("nan")}),
    ("client", {"start": -3}),
    ("client", {"note": {"alias": {"x": [1]}}}),
    ("client", {"note": {"alias": {}, "switch": {"format": "morse"}}}),
    ("edit", {"note": None}),
    ("edit", {"note": {"by": "x", "evidence": {}, "spent": "x"}}),
    ("edit", {"note": {"by": "x", "evidence": [], "spent": 0}}),
    ("session", {"note": {"session": "x"}}),
    ("revert", {"note": {"sessions": [[1]]}}),
    ("usage", {"start": 10**9}),
    ("usage", {"note": {"usage": {"input": -(10**30)}, "cost": 1}}),
    ("call", {"note": {"frame": 99}}),
    ("call", {"stop": 10**30}),
]


async def test_a_hostile_file_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    store, other = SQLite(tmp_path / "clew.db"), SQLite(tmp_path / "other.db")
    written = await lines(store, *await busy(store))
    sorts = [line["kind"] if "event" in line else next(iter(line)) for line in map(json.loads, written)]
    for sort, change in FOREIGN:
        at = sorts.index(sort)
        changed = json.dumps(json.loads(written[at]) | change).encode()
        with pytest.raises(BadRequest, match=f"^line {at + 1}: "):
            await take_in(other, "default", [*written[:at], changed, *written[at + 1 :]])
    assert await other.branches("default") == []
    await other.close()
    await store.close()


@pytest.mark.few(1)
async def test_what_begins_twice_before_its_parent_or_in_nothing_is_refused(store: Store) -> None:
    written = await lines(store, *await busy(store))
    opening = next(line for line in written if line.startswith(b'{"branch":'))
    event = next(line for line in written if line.startswith(b'{"event":'))
    for broken, error in (
        ([*written, opening], "begins twice"),
        ([written[0], event], "not a line that `clew export` wrote"),
    ):
        with pytest.raises(BadRequest, match=error):
            await take_in(store, "other", broken)
    assert await store.branches("other") == []


@pytest.mark.few(1)
async def test_heirs_of_a_purged_conversation_are_exported_with_what_they_inherited(
    store: SQLStore, tmp_path: Path
) -> None:
    run, child = await busy(store)
    early = await Engine(store).prepare(Addition(WORD, "early", origin=Origin("subagent", run, 3)))
    await store.purge("default", [run], "done with it")
    left = await store.sessions("default")
    written = await lines(store, child, early.branch)
    other = SQLite(tmp_path / "other.db")
    made = await take_in(other, "default", written)
    assert await lines(other, child, early.branch) == written
    totals = [(s.name, s.items, s.calls, s.sent) for s in left if s.branch in made]
    assert sums(totals) == sums([(s.name, s.items, s.calls, s.sent) for s in await other.sessions("default")])
    assert [s.name for s in await Sessions(Engine(other)).lineage("early")] == ["try", "early"]
    assert await other.check() == []
    await other.close()


def sums(totals: list[tuple[str | None, int, int, int]]) -> dict[str | None, list[int]]:
    """What each conversation came to."""
    names = {name for name, *_ in totals}
    return {
        n: [sum(column) for column in zip(*(own for name, *own in totals if name == n), strict=True)] for n in names
    }


@pytest.mark.few(1)
async def test_a_file_that_was_cut_off_is_refused_wherever_that_was(store: Store) -> None:
    written = await lines(store, *await busy(store))
    for end in (*range(0, len(written), 25), len(written) - 1):
        with pytest.raises(BadRequest):
            await take_in(store, "other", written[:end])
    assert await store.branches("other") == []
