"""Sessions: every compaction ends one and begins its child; the chain is walked, resumed, undone, forked, searched."""

import random
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest

from amounts import cases
from clew import Budget, Engine, Request, Sessions, SQLite, body
from clew.core.items import Edit, Item, Node, new_id
from clew.core.view import View
from clew.engine.append import Addition
from clew.errors import Ambiguous, BadRequest, NotFound, OverBudget
from clew.sessions.totals import everything_said, totals
from clew.store.places import is_url
from clew.store.protocol import Store
from clew.store.records import Batch, Origin, Session
from clew.store.sql import SQLStore
from clew.wire.rules.check import check

WINDOW = 6_000


def message(n: int) -> list[dict[str, Any]]:
    """A turn of an agent: it reads a page, and says what it saw."""
    call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": f'{{"page": "p{n}.txt"}}'}}
    page = "\n".join(f"p{n}.txt line {i}: value {n * 1000 + i} of run-{n:03}" for i in range(12))
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{n}", "content": page},
        {"role": "assistant", "content": f"Page {n} is read: run-{n:03} looks fine."},
        {"role": "user", "content": f"Go on with page {n + 1}, and mind rule {n}."},
    ]


@dataclass
class Run:
    """A long session: what was said, and what was sent in each call."""

    engine: Engine
    name: str = "run"
    messages: list[dict[str, Any]] = field(default_factory=lambda: [{"role": "user", "content": "Read all pages."}])
    sent: list[View] = field(default_factory=list)

    async def turn(self) -> View:
        self.messages += message(len(self.sent))
        view = await self.engine.prepare(Request({"model": "gpt-4o", "messages": self.messages}, session=self.name))
        self.sent.append(view)
        return view

    async def until(self, compactions: int) -> None:
        sessions, edits = Sessions(self.engine), -1
        while True:
            now = len(self.sent[-1].edits) if self.sent else edits
            if now != edits and (await sessions.get(self.name)).number > compactions:
                return
            edits = now  # as long as there are no more of them it is the same session, and looking takes longer
            await self.turn()


@pytest.fixture
async def run(store: Store) -> Run:
    return Run(Engine(store, Budget(window=WINDOW, reserve=500)))


async def chain(engine: Engine, name: str = "run") -> list[Session]:
    return [s for s in reversed(await Sessions(engine).all()) if s.name == name]


@pytest.mark.few(1)
async def test_a_chain_of_many_compactions_loses_nothing(run: Run) -> None:
    count = cases(30, dear=True)
    await run.until(count)
    engine, store = run.engine, run.engine.store
    sessions = await chain(engine)
    assert [s.number for s in sessions] == list(range(1, count + 2))
    assert [s.parent for s in sessions[1:]] == [s.id for s in sessions[:-1]]
    assert {s.cause for s in sessions[1:]} == {"compaction"}
    assert all(s.ended and s.ended_by == "compaction" for s in sessions[:-1])
    assert sessions[-1].ended is None
    # Every original, byte for byte, from what the newest view shows.
    said = [node for id in (n.id for n in run.sent[-1].nodes) for node in await engine.recall("default", id)]
    texts = {n.item.text for n in said}
    expected = {m["content"] for m in run.messages if m["content"]}
    assert expected <= texts
    # Resume at ten random points equals what was sent then.
    calls = await store.calls("default", run.sent[-1].branch)
    assert len(calls) == len(run.sent)
    for at in random.Random(6).sample(range(len(calls)), 10):
        again = await Engine(store).resume("default", calls[at])
        assert body(again) == body(run.sent[at])
    await undo_gives_the_earlier_views_and_the_later_turns(run)


async def undo_gives_the_earlier_views_and_the_later_turns(run: Run) -> None:
    store = run.engine.store
    engine = Engine(store, Budget(window=200_000))  # room for what comes back
    sessions = Sessions(engine)
    trace = await store.load("default", run.sent[-1].branch)
    for n in (1, 2, 3):
        undone = await sessions.undo("run")
        before, said = next((seq, said) for seq, said in reversed(trace.calls) if seq < trace.folds[-n].seq)
        earlier = next(view for view in run.sent if view.seq == before)
        later = [p.id for p in trace.said[said:]]
        assert [x.id for x in undone.view.nodes] == [*(x.id for x in earlier.nodes), *later]
        assert undone.sessions == (trace.folds[-n].session,)
        assert (await sessions.get(trace.folds[-n].session)).undone
    # The next turn goes on from there: nothing refolds what was brought back, and the provider takes it.
    run.engine = engine
    view = await run.turn()
    assert [x.id for x in view.nodes][: len(undone.view.nodes)] == [x.id for x in undone.view.nodes]
    assert check(body(view)) == []


async def test_three_at_once_are_the_same_as_one_by_one(store: Store) -> None:
    one, other = (Run(Engine(store, Budget(window=WINDOW, reserve=500)), name) for name in ("one", "other"))
    for run in (one, other):
        await run.until(4)
    sessions = Sessions(Engine(store, Budget(window=200_000)))
    for _ in range(3):
        last = await sessions.undo("one")
    at_once = await sessions.undo("other", 3)
    assert body(last.view) == body(at_once.view)


async def test_an_undo_that_would_not_fit_is_refused_with_the_numbers(run: Run) -> None:
    await run.until(3)
    before = await run.engine.view("default", run.sent[-1].branch)
    with pytest.raises(
        OverBudget, match=r"after this undo the view would have [\d,]+ tokens, and 5,500 fit"
    ) as refusal:
        await Sessions(run.engine).undo("run", 3)
    assert refusal.value.needed > refusal.value.limit
    assert await run.engine.view("default", run.sent[-1].branch) == before


async def test_what_was_undone_is_held_until_there_is_no_room(store: Store) -> None:
    run = Run(Engine(store, Budget(window=WINDOW, reserve=500)))
    await run.until(1)
    undone = await Sessions(run.engine).undo("run")
    back = {n.id for n in undone.view.nodes} - {n.id for n in run.sent[-1].nodes}
    assert back
    began = len(await chain(run.engine))
    while len(await chain(run.engine)) < began + 3:  # compacted again and again, and not this
        view = await run.turn()
        assert back <= {n.id for n in view.nodes}
        assert view.pinned.isdisjoint(back), "nobody pinned it"
        assert check(body(view)) == []
    run.engine = Engine(store, Budget(window=WINDOW // 4, reserve=300))
    view = await run.turn()
    shown = {n.id for n in view.nodes}
    assert not back <= shown
    assert (await run.engine.store.load("default", view.branch)).held <= shown, "what is folded again is held no more"
    assert check(body(view)) == []


async def test_an_undo_takes_back_what_was_made_of_the_stand_ins_too(store: Store) -> None:
    """However often over: else their ids would still stand for something, in a view that has the originals again."""
    run = Run(Engine(store, Budget(window=WINDOW, reserve=500)))
    await run.until(1)
    branch = run.sent[-1].branch
    trace = await store.load("default", branch)
    first = trace.edits[-1].stand_ins[-1]
    items = [Item("summary", "user", text) for text in ("Shorter.", "Brief.")]
    shorter, brief = (Node(new_id() + new_id(), run.engine.digests("default").content(item), item) for item in items)
    made = [Edit("Shorter()", (first.id,), (shorter,)), Edit("Shorter()", (shorter.id,), (brief,))]
    await store.write("default", Batch(branch, trace.seq, (*made,)))
    assert "Brief." in [n.item.text for n in (await run.engine.view("default", branch)).nodes]
    undone = await Engine(store, Budget(window=100_000)).undo("default", branch)
    assert {n.item.text for n in undone.view.nodes} >= {m["content"] for m in run.messages if m["role"] == "user"}
    left = {n.id for edit in (await store.load("default", branch)).edits for n in edit.stand_ins}
    assert left.isdisjoint({first.id, shorter.id, brief.id})


async def test_nothing_is_left_to_undo(run: Run) -> None:
    await run.turn()
    with pytest.raises(NotFound, match="there is nothing to undo: no compaction"):
        await Sessions(run.engine).undo("run")


@pytest.mark.parametrize("count", [0, -1, -5])
async def test_nothing_and_less_cannot_be_undone(run: Run, count: int) -> None:
    while not (await run.turn()).edits:
        pass
    sessions = Sessions(run.engine)
    branch = (await sessions.get("run")).branch
    before = await run.engine.store.events("default", branch)
    with pytest.raises(BadRequest, match=f"at least 1, got {count}"):
        await sessions.undo("run", count)
    assert await run.engine.store.events("default", branch) == before


async def test_a_host_that_kept_our_stand_ins_is_recognised_after_an_undo(store: Store) -> None:
    engine = Engine(store, Budget(window=WINDOW, reserve=500))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all pages."}]
    for n in range(100):
        messages += message(n)
        view = await engine.prepare(Request({"model": "gpt-4o", "messages": messages}, session="kept"))
        messages = body(view)["messages"]  # a framework that stores what it was given
        if len(await chain(engine, "kept")) == 3:
            break
    roomy = Engine(store, Budget(window=100_000))
    undone = await Sessions(roomy).undo("kept", 2)
    said = (await store.load("default", view.branch)).said
    view = await roomy.prepare(Request({"model": "gpt-4o", "messages": [*messages, *message(100)]}, session="kept"))
    assert (await store.load("default", view.branch)).said[: len(said)] == said
    assert [n.id for n in view.nodes][: len(undone.view.nodes)] == [n.id for n in undone.view.nodes]


async def test_pins_survive_the_chain(run: Run) -> None:
    first = await run.turn()
    pinned = next(n for n in first.nodes if "rule 0" in n.item.text)
    await run.engine.pin(first, pinned.id)
    await run.until(6)
    assert pinned in run.sent[-1].nodes


async def test_totals_are_those_of_the_calls(run: Run) -> None:
    for _ in range(30):
        view = await run.turn()
        await run.engine.observe(view, {"input_tokens": 1_000, "output_tokens": 10, "cache_read_input_tokens": 500})
    sessions = await chain(run.engine)
    calls = await run.engine.store.calls("default", view.branch)
    assert len(sessions) > 2
    assert sum(s.calls for s in sessions) == len(calls) == 30
    assert sum(s.sent for s in sessions) == sum(c.predicted for c in calls)
    assert sum(s.input for s in sessions) == 30 * 1_500
    assert sum(s.output for s in sessions) == 300
    assert sum(s.cached for s in sessions) == 30 * 500
    assert sum(s.items for s in sessions) == len(run.messages)
    assert {s.model for s in sessions} == {"gpt-4o"}
    assert sum(s.cost for s in sessions) == pytest.approx(30 * (1_000 * 2.5 + 500 * 1.25 + 10 * 10) / 1e6)


async def test_a_diff_says_what_left_and_what_stands_in(run: Run) -> None:
    await run.until(4)
    diff = await Sessions(run.engine).diff("run.4")
    assert diff.after < diff.before
    assert diff.stand_ins
    assert diff.removed
    shown = {n.id for n in (await Sessions(run.engine).view("run.4")).nodes}
    assert shown.isdisjoint(n.id for n in diff.removed)
    assert sum(s.before for s in diff.stand_ins) - sum(s.after for s in diff.stand_ins) == diff.before - diff.after
    for stand_in in diff.stand_ins:
        assert [n.id for n in await run.engine.recall("default", stand_in.id)] == [n.id for n in stand_in.originals]
    assert diff.price_before
    assert diff.price_after
    assert diff.price_before.fresh > diff.price_after.fresh
    with pytest.raises(NotFound, match="not with a compaction"):
        await Sessions(run.engine).diff("run.1")


async def test_an_ended_session_is_resumed_with_its_tail(run: Run) -> None:
    await run.until(3)
    sessions = Sessions(run.engine)
    second, third = await sessions.get("run.2"), await sessions.get("run.3")
    view = await sessions.view("run.2")
    number, last = (await sessions.calls("run.2"))[-1]
    sent = await sessions.view("run.2", number)
    assert body(sent) == body(next(v for v in run.sent if v.seq == last.seq))
    assert view.nodes[: len(sent.nodes)] == sent.nodes
    assert len(view.nodes) > len(sent.nodes)  # and the turn in which it was compacted
    assert second.id == third.parent


async def test_a_fork_has_exactly_the_edits_of_its_past(run: Run) -> None:
    await run.until(3)
    sessions = Sessions(run.engine)
    forked = await sessions.fork("run.2", "try")
    assert (forked.cause, forked.parent) == ("fork", (await sessions.get("run.2")).id)
    view = await sessions.view("try")
    assert body(view) == body(await sessions.view("run.2"))
    more = await run.engine.prepare(Addition({"messages": [{"role": "user", "content": "Another way."}]}, "try"))
    assert more.branch == forked.branch
    assert more.nodes[-1].item.text == "Another way."
    assert (await sessions.view("run")).nodes[-1].item.text != "Another way."
    with pytest.raises(Ambiguous, match="already"):
        await sessions.fork("run.2", "try")


async def test_additions_need_no_history(store: Store) -> None:
    engine = Engine(store, Budget(window=WINDOW, reserve=500))
    whole = Run(engine, "whole")
    for n in range(30):
        expected = await whole.turn()
        new = message(n) if n else whole.messages[:5]
        view = await engine.prepare(Addition({"model": "gpt-4o", "messages": new}, "parts"))
    assert [n.content for n in view.nodes if n.id not in view.stand_ins()] == [
        n.content for n in expected.nodes if n.id not in expected.stand_ins()
    ]
    assert len(await chain(engine, "parts")) == len(await chain(engine, "whole"))


async def test_two_engines_add_to_one_session(store: Store) -> None:
    engines = [Engine(store, Budget(window=WINDOW, reserve=500)) for _ in range(2)]
    for n in range(60):
        new = [{"role": "user", "content": f"word {n} " * 30}]
        view = await engines[n % 2].prepare(Addition({"messages": new}, "both"))
    said = (await store.load("default", view.branch)).said
    nodes = await store.nodes("default", [p.id for p in said])
    assert [nodes[p.id].item.text.split()[1] for p in said] == [str(n) for n in range(60)]
    assert body(await Engine(store).view("default", view.branch)) == body(view)


async def test_a_sub_agent_knows_whose_it_is_and_recalls_its_lineage_only(store: Store) -> None:
    engine = Engine(store, Budget(window=WINDOW, reserve=500))
    parent = await engine.prepare(Addition({"messages": [{"role": "user", "content": "secret plan ZX-81"}]}, "main"))
    other = await engine.prepare(Addition({"messages": [{"role": "user", "content": "other plan QL-84"}]}, "other"))
    origin = Origin("subagent", parent.branch)
    child = await engine.prepare(Addition({"messages": [{"role": "user", "content": "do it"}]}, "sub", origin=origin))
    await engine.prepare(Addition({"messages": [{"role": "user", "content": "later word AT-86"}]}, "main"))
    [first, second] = await Sessions(engine).lineage("sub")
    assert (first.name, second.name, second.cause, second.parent) == ("main", "sub", "subagent", first.id)
    assert "ZX-81" in await engine.answer("default", "secret plan", child.branch)
    assert "AT-86" not in await engine.answer("default", "later word AT-86", child.branch)
    assert await engine.recall("default", parent.nodes[0].id, child.branch)
    with pytest.raises(NotFound):
        await engine.recall("default", other.nodes[0].id, child.branch)


async def test_search_over_a_session_its_lineage_or_all(run: Run) -> None:
    await run.until(3)
    await run.turn()
    await run.engine.prepare(Addition({"messages": [{"role": "user", "content": "elsewhere: run-000 too"}]}, "else"))
    sessions = Sessions(run.engine)
    newest = f"run-{len(run.sent) - 1:03}"
    assert await sessions.search("run-000", "run", "lineage")
    assert not any("run-000" in str(h.found.lines) for h in await sessions.search("run-000", "run", "session"))
    assert any(newest in str(h.found.lines) for h in await sessions.search(newest, "run", "session"))
    found = await sessions.search("run-000")
    assert {h.branch for h in found} == {(await sessions.get(n)).branch for n in ("run", "else")}


async def test_tags_and_archive(run: Run) -> None:
    await run.until(1)
    branch = run.sent[-1].branch
    await run.engine.store.label("default", branch, tags=("nightly", "slow"))
    await run.engine.store.label("default", branch, archived=True)
    assert {s.tags for s in await chain(run.engine)} == {("nightly", "slow")}
    assert all(s.archived for s in await chain(run.engine))
    await run.engine.store.label("default", branch, archived=False)
    assert not any(s.archived for s in await chain(run.engine))


async def test_a_name_is_a_conversation_a_number_in_it_or_an_id(run: Run) -> None:
    await run.until(2)
    sessions = Sessions(run.engine)
    first, second, third = await chain(run.engine)
    assert await sessions.get("run") == third
    assert await sessions.get("ru") == third
    assert await sessions.get("run.2") == second
    assert await sessions.get("run.1") == first
    assert await sessions.get(first.id) == third, "the id of the conversation"
    assert await sessions.get(second.id[:8]) == second
    for name, error in (("run.9", "3 sessions; there is no 9"), ("nobody", "no conversation or session matches")):
        with pytest.raises(NotFound, match=error):
            await sessions.get(name)
    await run.engine.prepare(Addition({"messages": [{"role": "user", "content": "x"}]}, "rub"))
    with pytest.raises(Ambiguous):
        await sessions.get("ru")


async def test_a_list_that_was_lost_is_made_again_from_the_log(store: SQLStore, place: str) -> None:
    run = Run(Engine(store, Budget(window=WINDOW, reserve=500)))
    sessions = Sessions(run.engine)
    for _ in range(24):
        await run.engine.observe(await run.turn(), {"input_tokens": 1_000, "output_tokens": 10})
    await sessions.fork("run.2", "try")
    await sessions.undo("run")
    before = await sessions.all()
    assert len(before) > 3
    with closing(psycopg.connect(place) if is_url(place) else sqlite3.connect(place)) as db:
        db.execute(f"delete from {'clew.' * is_url(place)}session")
        db.commit()
    assert await sessions.all() == []
    assert {p.what for p in await store.check()} == {
        "branches without a session",
        "sessions that the log has and the list of them has not",
    }
    assert await store.repair()
    assert await store.check() == []
    assert await sessions.all() == before


async def test_whoever_asks_sees_that_something_changed(store: SQLStore) -> None:
    engine = Engine(store, Budget(window=6_000))
    seen, said = [await store.state("default")], list[dict[str, Any]]()
    for n in range(10):
        said += [{"role": "user", "content": f"Step {n}. " + "Words to be folded. " * 100}]
        view = await engine.prepare(Request({"model": "gpt-4o", "messages": said}, session="a"))
        seen.append(await store.state("default"))
        await engine.observe(view, {"input_tokens": 10, "output_tokens": 5})
        seen.append(await store.state("default", view.branch))
        said += [{"role": "assistant", "content": f"Done {n}."}]
    await engine.undo("default", view.branch)
    seen.append(await store.state("default"))
    assert len(set(seen)) == len(seen), "after whatever happened"
    assert await store.state("default") == seen[-1], "and nothing happened since"
    await store.purge("default", [view.branch], "because")
    assert (await store.state("default")).purges > seen[-1].purges
    assert await store.state("elsewhere") == await store.state("nowhere")


@pytest.mark.few(1)
@pytest.mark.parametrize("client", ["You are pi.", "You are nobody that is known."])
async def test_what_its_client_would_have_paid_is_told_where_it_compacts_by_itself(client: str) -> None:
    """A client that compacts pays for a summary and what it writes anew, and saves on each call after that."""
    engine = Engine(SQLite(":memory:"), Budget(20_000))
    messages: list[dict[str, Any]] = [{"role": "system", "content": client}]
    for n in range(60):
        messages += message(n)
        view = await engine.prepare(Request({"model": "gpt-4o", "messages": messages}, session="run"))
        if not n:
            await engine.limits.client_compacted("default", view.frame, 12_000)
    found = await totals(engine, "default", await engine.store.sessions("default"))
    names = [name for name, *_ in found.bill]
    assert found.compactions > 0
    assert found.too_large > 0
    assert found.cost_everything > found.cost_sent > 0
    if "pi" in client:
        assert names == ["with clew", "without", "client compacting"]
        assert found.cost_everything > found.cost_client > found.cost_everything / 4
    else:
        assert names == ["with clew", "without"]
        assert found.cost_client == found.cost_everything
    await engine.close()


@pytest.mark.few(1)
@pytest.mark.parametrize("reports", [True, False])
async def test_what_everything_would_have_come_to_is_what_a_window_with_room_for_it_sends(reports: bool) -> None:
    """It is told by what was sent, and little of the log is read for it; beside a log of all of it, it is right."""
    sizes = dict[int, list[int]]()
    for window in (WINDOW, 400_000):
        engine = Engine(SQLite(":memory:"), Budget(window))
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all pages."}]
        for n in range(40):
            messages += message(n)
            view = await engine.prepare(Request({"model": "gpt-4o", "messages": messages}, session="run"))
            if reports:
                await engine.observe(view, {"input_tokens": await engine.expected(view), "output_tokens": 5})
            if n == 28 and window == WINDOW:
                await engine.undo("default", view.branch)
        calls = await engine.store.calls("default", view.branch)
        found = await everything_said(engine, "default", view.branch, calls)
        sizes[window] = found.sizes
        assert found.sizes == sorted(found.sizes)
        await engine.close()
    for told, sent in zip(*sizes.values(), strict=True):
        assert told == pytest.approx(sent, rel=0.05)
