"""The engine over whole sessions: stable prefixes, time travel, nothing lost, two hosts at once."""

import asyncio
import json
import threading
from dataclasses import replace as with_
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clew
import clew.store
from amounts import cases
from clew import Budget, Engine, Request, SQLite, events, wire
from clew.core.bridge import begin
from clew.core.items import Digests, Item
from clew.core.view import Swap, View
from clew.engine.append import Addition
from clew.engine.settings import Settings
from clew.errors import Ambiguous, BadRequest, Conflict, NotFound, OverBudget
from clew.steps import default
from clew.steps.protocol import Pipeline
from clew.store.sql import SQLStore
from clew.testing import check_laws, conversation, view_of
from clew.tokens import Counter, Plain
from clew.tokens.target import Target
from clew.wire import check
from conftest import conversations


def turns(body: dict[str, Any], format: str = "openai_chat") -> list[dict[str, Any]]:
    """The requests a client made on the way to this body: one wherever the assistant began to speak, and the last."""
    key = wire.FORMATS[format].LIST
    messages = body[key]

    def spoke(message: dict[str, Any]) -> bool:
        return message.get("role") in ("assistant", "model") or message.get("type") in ("reasoning", "function_call")

    starts = [i for i, m in enumerate(messages) if spoke(m) and not spoke(messages[i - 1])]
    return [{**body, key: messages[:end]} for end in [*starts, len(messages)]]


async def session(engine: Engine, body: dict[str, Any], format: str) -> list[View]:
    """Play a conversation and hold each view against laws 2, 7 and 8."""
    views: list[View] = []
    for request in turns(body, format):
        view = await engine.prepare(Request(json.dumps(request).encode(), format))
        assert check(clew.body(view), format) == []
        budget = await engine.limits.target("default", view.frame)
        assert budget.size(view).within(budget.limit)
        if views and len(view.edits) == len(views[-1].edits):
            before = [n.id for n in views[-1].nodes]
            assert [n.id for n in view.nodes[: len(before)]] == before, "8 stable prefix"
        views.append(view)
    return views


async def time_travel(store: SQLStore, engine: Engine, views: list[View]) -> None:
    """Law 9: every earlier call can be made again from the log alone, and its digest proves it."""
    calls = await store.calls("default", views[-1].branch)
    sent = {(v.branch, v.seq): v for v in views}
    for call in calls:
        again = await engine.resume("default", call)
        view = sent[call.branch, call.seq]
        assert [(n.id, n.content) for n in again.nodes] == [(n.id, n.content) for n in view.nodes]
        assert clew.body(again) == clew.body(view)
        contents = again.digests.run("", (n.content for n in again.nodes))
        assert again.digests.link(again.digests.frame(again.frame), (contents,)) == call.digest


@settings(max_examples=cases(14, dear=True), suppress_health_check=list(HealthCheck))
@given(
    number=st.integers(0, 2**32),
    count=st.integers(1, 12),
    format=st.sampled_from(sorted(wire.FORMATS)),
    window=st.integers(900, 6_000),
)
def test_sessions_are_stable_replayable_and_lossless(number: int, count: int, format: str, window: int) -> None:
    async def play() -> None:
        body = conversation(number, count, format, wordy=30)
        items = wire.decode(body, format)[1]
        engine = Engine(SQLite(":memory:"), Budget(window=window + 1_000, reserve=200))
        views = await session(engine, body, format)
        assert isinstance(engine.store, SQLite)
        await time_travel(engine.store, engine, views)
        cold = await Engine(engine.store, engine.budget).prepare(Request(body, format))
        assert [n.id for n in cold.nodes] == [n.id for n in views[-1].nodes]
        found = [o.item for n in views[-1].nodes for o in await engine.recall("default", n.id)]
        said = [
            item for item in found if item.kind != "summary"
        ]  # a note that was recalled by itself stands for nothing
        assert sorted(map(repr, said)) == sorted(map(repr, items)), "3 lossless"
        await engine.store.close()

    asyncio.run(play())


@pytest.mark.few(1)
async def test_a_real_session_in_a_small_window(store: SQLStore) -> None:
    row = next(iter(conversations()))
    body = {"model": "gpt-4o", "messages": row["messages"]}
    engine = Engine(
        store, Budget(window=24_000), Settings(expand=False)
    )  # what is recalled by itself stands for nothing
    views = await session(engine, body, "openai_chat")
    assert any(v.edits for v in views)
    await time_travel(store, engine, [*views])
    found = [o.item for n in views[-1].nodes for o in await engine.recall("default", n.id)]
    assert sorted(map(repr, found)) == sorted(map(repr, wire.decode(body)[1]))


@pytest.mark.few(1)
@pytest.mark.parametrize(("window", "many", "words"), [(8_000, 2, 250), (8_000, 4, 300), (32_000, 8, 800)])
async def test_what_an_agent_asked_for_is_shown_to_it_once(store: SQLStore, window: int, many: int, words: int) -> None:
    """Else it asks again, and again."""
    engine = Engine(store, Budget(window=window))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all of it."}]
    for turn in range(8):
        ids = [f"c{turn}-{n}" for n in range(many)]
        calls = [{"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}} for id in ids]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        results = [f"{id}: " + " ".join(f"word-{id}-{k}" for k in range(words)) for id in ids]
        messages += [{"role": "tool", "tool_call_id": id, "content": r} for id, r in zip(ids, results, strict=True)]
        sent = clew.body(await engine.prepare(Request({"model": "gpt-4o", "messages": messages})))["messages"]
        shown = [m for m in sent if m.get("tool_call_id") in ids]
        assert [m["content"][:6] for m in shown] == [r[:6] for r in results]  # whole, or a preview of it


async def test_laws_hold_on_real_transcripts() -> None:
    for number, row in enumerate(conversations()):
        view = view_of({"model": "gpt-4o", "messages": row["messages"]}, "openai_chat")
        size = Target.of(Budget(window=10**9)).size(view)
        if size.tokens > 60_000:
            continue
        target = Target.of(Budget(window=(2_000, 16_000)[number % 2], model="gpt-4o"))
        needs = target.meter.frame(view.frame).tokens
        if needs < target.limit.tokens - 500:
            await check_laws(default(), view, target.aim(target.size(view)), fits=True)


async def test_usage_is_recorded_with_its_call(store: SQLStore) -> None:
    engine = Engine(store)
    view = await engine.prepare(Request(conversation(1, 2)))
    counted = Target.of(Budget(window=8_000, model="gpt-4o")).size(view).tokens
    await engine.observe(view, {"input_tokens": counted, "output_tokens": 0})
    [call] = await store.calls("default", view.branch)
    assert (call.seq, call.model, call.format, call.exact) == (view.seq, "gpt-4o", "openai_chat", True)
    assert call.usage == {"input": call.predicted, "output": 0, "cache_read": 0, "cache_write": 0}


@pytest.mark.few(1)
async def test_two_hosts_on_one_branch_lose_nothing(store: SQLStore) -> None:
    body = conversation(3, 6)
    one, two = Engine(store, Budget(window=4_000)), Engine(store, Budget(window=4_000))
    for request in turns(body):
        views = await asyncio.gather(*(e.prepare(Request(request, session="s")) for e in (one, two, one)))
        assert len({v.branch for v in views}) == 1
    assert len({v.seq for v in views}) == 3
    trace = await store.load("default", views[0].branch)
    assert len(trace.said) == len(wire.decode(body)[1])


async def test_a_cancelled_turn_leaves_the_log_as_it_was_or_wholly_written(store: SQLStore) -> None:
    class Slow:
        async def __call__(self, view: View, target: Target) -> View:
            await asyncio.sleep(30)
            return view

    body = conversation(5, 8)
    engine = Engine(store, Budget(window=2_500), Settings(step=Pipeline(Slow())))
    task = asyncio.create_task(engine.prepare(Request(body)))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await store.branches("default") == []
    engine.settings = with_(engine.settings, step=default())
    view = await engine.prepare(Request(body))
    assert view.edits


async def test_a_step_that_leaves_too_much_is_tried_again(store: SQLStore) -> None:
    class Timid:
        async def __call__(self, view: View, target: Target) -> View:
            cut = Swap(0, len(view.nodes) // 2, [Item("summary", "user", "Words were said.")])
            return view.replace_all([cut], by=self)

    said = [{"role": role, "content": f"{n} " + "word " * 100} for n in range(20) for role in ("user", "assistant")]
    engine = Engine(store, Budget(window=2_000, reserve=500), Settings(step=Timid()))
    view = await engine.prepare(Request({"model": "gpt-4o", "messages": said}))
    target = await engine.limits.target("default", view.frame)
    assert target.size(view).within(target.limit)
    assert len(view.edits) == 2


async def test_recall_takes_short_ids_and_tells_what_is_wrong(store: SQLStore) -> None:
    engine = Engine(store, Budget(window=3_000))
    view = await engine.prepare(Request(conversation(7, 10)))
    stand_in = next(n for n in view.nodes if n.id in view.stand_ins())
    short = stand_in.item.text.rsplit("recall ", 1)[1][:10]
    assert await engine.recall("default", short) == await engine.recall("default", stand_in.id)
    assert await engine.recall("default", short, branch=view.branch) == await engine.recall("default", short)
    for bad, says in (("zz", "is not an id"), ("", "is not an id"), ("f" * 32, "no item has the id")):
        with pytest.raises(NotFound, match=says):
            await engine.recall("default", bad)
    ids = [place.id for place in (await store.load("default", view.branch)).said]
    assert len(ids) > 16  # so that two of them begin alike, whatever the store's secret
    crowded = max("0123456789abcdef", key=[id[0] for id in ids].count)
    with pytest.raises(Ambiguous, match=r"matches \d+ ids; give more of it"):
        await engine.recall("default", crowded)
    other = await engine.prepare(Request(conversation(8, 1), session="other"))
    with pytest.raises(NotFound):
        await engine.recall("default", short, branch=other.branch)


async def test_search_finds_what_was_folded_on_this_branch_only(store: SQLStore) -> None:
    engine = Engine(store, Budget(window=3_000))
    body = conversation(9, 10)
    body["messages"][1]["content"] = "the codeword is xylophone_77, remember"
    view = await engine.prepare(Request(body))
    [node] = await engine.search("default", "xylophone_77", view.branch)
    assert node.item.text == "the codeword is xylophone_77, remember"
    assert await engine.search("default", 'NEAR("quoted" AND *', view.branch) == []
    other = await engine.prepare(Request(conversation(8, 1), session="other"))
    assert await engine.search("default", "xylophone_77", other.branch) == []


async def test_a_tokenizer_of_ones_own_counts(store: SQLStore) -> None:
    by_word = Counter(Plain("words", lambda text: len(text.split())))
    view = await Engine(store, Budget(window=3_000), Settings(counter=by_word)).prepare(Request(conversation(1, 2)))
    [call] = await store.calls("default", view.branch)
    assert call.exact is False


async def test_the_blocking_face_works_inside_and_outside_a_loop(store: SQLStore) -> None:
    def blocking() -> str:
        engine = Engine(SQLite(":memory:"))
        return clew.run(engine.prepare(Request(conversation(1, 1)))).branch

    assert await asyncio.to_thread(blocking)
    assert blocking()  # a caller that blocks its own loop gets its answer all the same


async def test_work_that_is_begun_is_not_waited_for() -> None:
    may_end = threading.Event()

    async def work() -> str:
        await asyncio.to_thread(may_end.wait, 10)
        return "done"

    begun = begin(work())
    assert not begun.done()
    may_end.set()
    assert await asyncio.wrap_future(begun) == "done"


async def test_a_conflict_is_an_error_not_a_loss(store: SQLStore) -> None:
    engine = Engine(store)
    view = await engine.prepare(Request(conversation(1, 1)))
    batch = clew.store.Batch(view.branch, 0, (clew.store.Said(()),))
    with pytest.raises(Conflict, match="another writer was first"):
        await store.write("default", batch)


def test_an_items_digest_ignores_where_the_item_stands() -> None:
    digests = Digests()
    item = Item("text", "user", "hi")
    first, second = digests.chain([item, item])
    assert first.content == second.content
    assert first.id != second.id


async def test_listeners_hear_what_happened_and_none_of_what_was_said(store: SQLStore) -> None:
    heard: list[events.Event] = []
    engine = Engine(store, Budget(window=2_500), Settings(listeners=[heard.append, events.log]))
    view = await engine.prepare(Request(conversation(3, 8)))
    await engine.observe(view, {"input_tokens": 9})
    node = next(iter(view.stand_ins()))
    await engine.recall("default", node)
    kinds = [type(e).__name__ for e in heard]
    assert (kinds[0], kinds[-4:]) == ("Appended", ["Called", "Observed", "Judged", "Recalled"])
    assert set(kinds[1:-4]) == {"Began", "Edited"}
    edits = [e for e in heard if isinstance(e, events.Edited)]
    assert len(edits) == len(view.edits)
    assert all(e.tokens_before > e.tokens_after > 0 for e in edits if "Repair" not in e.by)
    said = {n.item.text for n in view.nodes if len(n.item.text) > 20}
    assert not any(text in repr(e) for e in heard for text in said)


async def test_a_listener_that_fails_stops_nothing(store: SQLStore, caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: events.Event) -> None:
        raise RuntimeError("no ears")

    engine = Engine(store, Budget(window=2_500), Settings(listeners=[broken]))
    assert (await engine.prepare(Request(conversation(3, 8)))).nodes
    assert "a listener failed on Appended" in caplog.text


async def test_a_failed_turn_is_an_event(store: SQLStore) -> None:
    heard: list[events.Event] = []
    engine = Engine(store, Budget(window=100, reserve=0), Settings(listeners=[heard.append]))
    body = conversation(3, 2)
    body["messages"][0]["content"] = "a long prompt " * 100
    with pytest.raises(OverBudget):
        await engine.prepare(Request(body))
    assert [e.error for e in heard if isinstance(e, events.Failed)] == ["OverBudget"]


async def test_bytes_of_an_sdk_survive_the_log(store: SQLStore) -> None:
    image = {"image": {"format": "png", "source": {"bytes": b"\x89PNG\r\n\x1a\n" + bytes(range(256))}}}
    body = {"modelId": "us.amazon.nova-pro-v1:0", "messages": [{"role": "user", "content": [{"text": "see"}, image]}]}
    view = await Engine(store).prepare(Request(body))
    assert clew.body(view) == body
    [call] = await store.calls("default", view.branch)
    assert clew.body(await Engine(store).resume("default", call)) == body


async def test_a_variant_differs_in_what_is_said_and_leaves_the_engine_alone(store: SQLStore) -> None:
    engine = Engine(store, Budget(window=2_500), Settings(secrets="redact"))
    step, nothing = engine.settings.step, Pipeline()
    engine.settings = with_(engine.settings, step=nothing)
    other = engine.variant(step=step, compaction="off")
    assert (engine.settings.step, engine.settings.compaction) == (nothing, "on")
    assert (other.settings.step, other.settings.compaction, other.budget, other.store) == (
        step,
        "off",
        engine.budget,
        store,
    )
    assert engine.variant().settings.step is nothing
    with pytest.raises(BadRequest, match="secrets: cannot be changed after the engine is created"):
        engine.settings = with_(engine.settings, secrets="off")
    key = "AKIAQ3EGRX7WLZ5TDH4K"
    view = await other.prepare(Request({"messages": [{"role": "user", "content": f"the key is {key}"}]}))
    [node] = await engine.recall("default", view.nodes[0].id)
    assert key not in node.item.text


async def test_with_other_tools_nothing_is_expected_from_the_cache(store: SQLStore) -> None:
    engine, said = Engine(store), [{"role": "user", "content": "hi " * 50}]
    tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
    for more in ({}, {}, {"tools": [tool]}):
        view = await engine.prepare(Request({"model": "gpt-4o", "messages": list(said), **more}))
        said += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "go on"}]
    first, second, third = await store.calls("default", view.branch)
    assert (first.cached, second.cached, third.cached) == (0, first.predicted, 0)


async def test_a_conversation_in_which_nothing_was_said_cannot_be_looked_at(store: SQLStore) -> None:
    with pytest.raises(NotFound, match="conversation work is empty: send a user message first"):
        await Engine(store).open(Addition({"model": "gpt-4o", "messages": []}, "work"))


async def test_a_result_that_comes_after_its_call_was_given_up_takes_that_back(store: SQLStore) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    said: list[dict[str, Any]] = [{"role": "user", "content": "Read."}]
    said += [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "user", "content": "Well?"}]
    engine = Engine(store)

    def sent(view: View) -> str:
        return json.dumps(clew.body(view)["messages"])

    assert "no result" in sent(await engine.prepare(Request({"model": "gpt-4o", "messages": list(said)}, session="w")))
    said.append({"role": "tool", "tool_call_id": "c1", "content": "It is there."})
    whole = sent(await engine.prepare(Request({"model": "gpt-4o", "messages": said}, session="w")))
    assert "no result" not in whole
    assert "It is there." in whole
