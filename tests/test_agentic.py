"""The method llm: the agent is told how full its window is, and decides; auto is untouched by it."""

import json
import re
from dataclasses import replace as with_
from itertools import pairwise
from typing import Any

import pytest

from clew import Budget, Engine, Request, Sessions, SQLite, body
from clew.control import ContextController
from clew.engine.append import Addition
from clew.engine.settings import Settings
from clew.errors import BadRequest, Busy
from clew.steps.handoff import BEGUN
from clew.steps.threshold import threshold
from clew.store.protocol import Store
from clew.store.records import Origin
from clew.tokens.target import Target
from clew.wire.rules.check import check
from test_sessions import message

MODEL = "gpt-4o"
STATUS = re.compile(r"<context_status>(\{.*?\})</context_status>$")


def call(id: str, tool: str, **given: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": tool, "arguments": json.dumps(given)}}


def told(sent: dict[str, Any]) -> dict[str, int] | None:
    """The context status at the end of a request, if there is one."""
    last = sent["messages"][-1]["content"]
    text = last if isinstance(last, str) else last[-1].get("text", "")
    found = STATUS.search(text or "")
    return json.loads(found[1]) if found else None


def names(sent: dict[str, Any]) -> list[str]:
    return [tool.get("function", tool)["name"] for tool in sent.get("tools", ())]


def controller(store: Store, window: int = 6_000, **settings: Any) -> ContextController:
    made = ContextController(Engine(store, Budget(window=window, reserve=500)), **settings)
    made.method = "llm"
    return made


async def test_the_status_is_on_every_call_and_nowhere_else(store: SQLite) -> None:
    steering = controller(store)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all pages."}]
    used = []
    for n in range(6):
        sent = await steering.prepare(Request({"model": MODEL, "messages": messages}, session="s"))
        found = told(sent.body)
        assert found is not None
        assert found["context_window"] == 6_000
        assert found["remaining_tokens"] == 5_500 - (await steering.engine.expected(sent.view) + 64)
        framed = (await steering.engine.limits.target("default", sent.view.frame)).frame
        assert found["used_pct"] == 100 * (5_500 - framed - found["remaining_tokens"]) // (5_500 - framed)
        assert check(sent.body) == []
        assert "context_status" not in json.dumps(body(sent.view)["messages"])
        used.append(found["used_pct"])
        messages += message(n)
    assert used == sorted(used)
    stored = await store.nodes("default", [p.id for p in (await store.load("default", sent.view.branch)).said])
    assert not any("context_status" in node.item.text for node in stored.values())


async def test_neither_status_nor_new_session_in_auto_for_sub_agents_or_an_unknown_window(store: SQLite) -> None:
    request = Request({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}, session="s")
    automatic = ContextController(Engine(store, Budget(window=6_000)))
    sent = await automatic.prepare(request)
    assert (told(sent.body), names(sent.body)) == (None, ["recall", "search_history"])
    steering = controller(store)
    child = Request({"model": MODEL, "messages": [{"role": "user", "content": "go"}]}, session="c")
    sent = await steering.prepare(Request(child.body, session="c", origin=Origin("subagent", sent.view.branch)))
    assert (told(sent.body), names(sent.body)) == (None, ["recall", "search_history"])
    unknown = ContextController(Engine(store))
    unknown.method = "llm"
    mystery = {"model": "mystery-1", "messages": [{"role": "user", "content": "hi"}]}
    assert told((await unknown.prepare(Request(mystery))).body) is None
    plain = ContextController(Engine(store, Budget(window=6_000)), offer=False)
    assert (await plain.prepare(request)).body == request.body


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("", "when used_pct >= 75"),
        ("60%", "when used_pct >= 60"),
        ("90,000 tokens", "when more than 90,000 tokens are used"),
        ("after each milestone", "Call this after each milestone."),
    ],
)
async def test_the_users_words_replace_when_and_how(store: SQLite, when: str, words: str) -> None:
    steering = controller(store, when=when, how="Write it as a table.")
    sent = await steering.prepare(Request({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}))
    text = sent.body["tools"][0]["function"]["description"]
    assert words in text
    assert "Write it as a table." in text
    assert ("used_pct >= 75" in text) == (when == "")


async def test_a_new_session_begins_with_the_request_the_summary_and_what_must_not_be_forgotten(store: SQLite) -> None:
    steering = controller(store)
    todos = call(
        "t1", "todo_write", todos=[{"content": "read p9", "status": "pending"}, {"content": "x", "status": "done"}]
    )
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Read all pages. Never touch the config file."},
        {"role": "assistant", "content": None, "tool_calls": [todos, call("k1", "skill", name="pdf")]},
        {"role": "tool", "tool_call_id": "t1", "content": "ok"},
        {"role": "tool", "tool_call_id": "k1", "content": "how to read a PDF"},
        *message(1),
    ]
    first = await steering.prepare(Request({"model": MODEL, "messages": messages}, session="s"))
    pinned = next(n for n in first.view.nodes if n.item.text.startswith("Page 1"))
    await steering.engine.pin(first.view, pinned.id)
    summary = "Task: read all pages. Done: p0, p1. Next: p2."
    assert await steering.answer(first.view, "new_session", {"summary": "  "}) == (
        "Error: the summary is blank: say what is done, what remains, and what you must not forget",
        True,
    )
    assert await steering.answer(first.view, "new_session", {"summary": summary}) == (BEGUN, False)
    messages += [
        {
            "role": "assistant",
            "content": "I start afresh.",
            "tool_calls": [call("r1", "read", page="p2.txt"), call("n1", "new_session", summary=summary)],
        },
        {"role": "tool", "tool_call_id": "r1", "content": "p2 says 42"},
        {"role": "tool", "tool_call_id": "n1", "content": BEGUN},
    ]
    sent = await steering.prepare(Request({"model": MODEL, "messages": messages}, session="s"))
    [opening, pin, rest, _] = sent.body["messages"]
    assert opening["role"] == "user"
    assert opening["content"].startswith(
        "What the user asked for, word for word:\n- request 1: The user: Read all pages. Never touch the config file.\n"
    )
    assert f"\n\nBy the assistant, not the user:\n  {summary}\n\n" in opening["content"]
    for words in ("Never touch the config file.", "open: read p9", "- pdf", "p2 says 42"):
        assert opening["content"].count(words) == 1
    assert "done: x" not in opening["content"]
    assert pin["content"] == pinned.item.text
    assert rest["content"].startswith("[earlier conversation out of view")
    assert told(sent.body)
    assert check(sent.body) == []
    sessions = Sessions(steering.engine)
    [parent, child] = await sessions.lineage("s")
    assert (parent.ended_by, child.cause, child.method) == ("handoff", "handoff", "llm")
    # The agent goes on; the client still sends all of it, and the new session stays.
    messages += [{"role": "assistant", "content": "Going on with p2."}, {"role": "user", "content": "Good."}]
    later = await steering.prepare(Request({"model": MODEL, "messages": messages}, session="s"))
    assert later.body["messages"][:3] == sent.body["messages"][:3]
    assert [m["content"] for m in later.body["messages"][3:-1]] == ["Going on with p2.", "Good."]
    # And a word said long ago can be had.
    answer = (await steering.answer(later.view, "search_history", {"query": "how to read a PDF"})).text
    assert "how to read a PDF" in answer
    assert answer.startswith("[data: from earlier")


async def test_the_same_words_from_another_tool_begin_nothing(store: SQLite) -> None:
    steering = controller(store)
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call("a", "other", summary="x")]},
        {"role": "tool", "tool_call_id": "a", "content": BEGUN},
    ]
    sent = await steering.prepare(Request({"model": MODEL, "messages": messages}))
    assert len(sent.view.nodes) == 3
    steering.method = "auto"
    messages[1] = {"role": "assistant", "content": None, "tool_calls": [call("a", "new_session", summary="x")]}
    assert len((await steering.prepare(Request({"model": MODEL, "messages": messages}))).view.nodes) == 3


async def test_the_net_holds_an_agent_that_ignores_its_status(store: SQLite) -> None:
    steering = controller(store)
    automatic = Engine(store, Budget(window=6_000, reserve=500))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all pages."}]
    most, fullest = [], 0
    for n in range(40):
        messages += message(n)
        sent = await steering.prepare(Request({"model": MODEL, "messages": messages}, session="llm"))
        assert check(sent.body) == []
        used = 5_500 - (told(sent.body) or {})["remaining_tokens"]
        fullest = max(fullest, used)
        assert used <= 5_500
        await automatic.prepare(Request({"model": MODEL, "messages": messages}, session="auto"))
        most.append(used)
    assert fullest > 0.9 * 5_500  # the agent has nearly all of it before clew acts
    counts = {name: (await Sessions(automatic).get(name)).number for name in ("llm", "auto")}
    assert 1 < counts["llm"] < counts["auto"]
    # Right after a compaction the status says so.
    drops = [b for a, b in pairwise(most) if b < a]
    assert drops
    assert max(drops) < 4_500


async def test_a_switch_obeys_on_the_next_call_and_waits_for_a_running_turn(store: SQLite) -> None:
    steering = ContextController(Engine(store, Budget(window=6_000)))
    request = Request({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}, session="s")
    with steering.turn(), pytest.raises(Busy, match="a turn is running"):
        steering.method = "llm"
    assert told((await steering.prepare(request)).body) is None
    steering.method = "llm"
    sent = await steering.prepare(request)
    assert told(sent.body)
    assert names(sent.body)[0] == "new_session"
    steering.method = "auto"
    sent = await steering.prepare(request)
    assert (told(sent.body), names(sent.body)) == (None, ["recall", "search_history"])


async def test_tools_of_the_agent_act_on_its_own_lineage(store: SQLite) -> None:
    steering = controller(store, 60_000)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all pages."}]
    for n in range(8):
        messages += message(n)
    sent = await steering.prepare(Request({"model": MODEL, "messages": messages}, session="s"))
    other = await steering.engine.prepare(Addition({"messages": [{"role": "user", "content": "ZX-81"}]}, "other"))
    page = next(n for n in sent.view.nodes if n.item.text.startswith("p3.txt"))
    assert "value 3005" in (await steering.answer(sent.view, "recall", {"id": page.id[:10], "lines": "6-6"})).text
    assert "no item has the id" in (await steering.answer(sent.view, "recall", {"id": other.nodes[0].id})).text
    assert "ZX-81" not in (await steering.answer(sent.view, "search_history", {"query": "ZX-81"})).text
    assert "Pinned: 1" in (await steering.answer(sent.view, "pin", {"id": page.id[:10]})).text
    done = (await steering.answer(sent.view, "truncate_context", {})).text
    assert re.match(r"Done: [\d,]+ tokens became [\d,]+\.", done)
    messages += message(8)
    sent = await steering.prepare(Request({"model": MODEL, "messages": messages}, session="s"))
    assert page in sent.view.nodes
    assert (await Sessions(steering.engine).get("s")).method == "llm"
    assert "Error: " in (await steering.answer(sent.view, "recall", {})).text


async def test_a_tool_of_the_same_name_is_nobodys(store: SQLite) -> None:
    own = {"type": "function", "function": {"name": "recall", "parameters": {"type": "object", "properties": {}}}}
    request = Request({"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "tools": [own]})
    with pytest.raises(BadRequest, match="has its own tools named recall: rename them, or do not offer clew's"):
        await controller(store).prepare(request)
    assert (await controller(store, offer=False).prepare(request)).body["tools"] == [own]


@pytest.mark.parametrize("format", ["openai_chat", "anthropic", "openai_responses", "bedrock", "gemini"])
async def test_every_format_takes_status_and_tools(store: SQLite, format: str) -> None:
    from clew.testing import conversation

    steering = controller(store, 200_000)
    sent = await steering.prepare(Request(conversation(3, 6, format), format))
    assert check(sent.body, format) == []
    assert "context_status" in json.dumps(sent.body)
    assert "new_session" in json.dumps(sent.body)


async def test_the_cached_prefix_is_byte_stable(store: SQLite) -> None:
    for method in ("auto", "llm"):
        steering = ContextController(Engine(store, Budget(window=60_000)))
        steering.method = method
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all pages."}]
        before = b""
        for n in range(10):
            messages += message(n)
            sent = await steering.prepare(Request({"model": MODEL, "messages": messages}, session=method))
            kept = sent.body["messages"][: -1 if method == "llm" else None]
            now = json.dumps([sent.body["tools"], kept]).encode()
            assert now.startswith(before)
            before = now[:-2]


@pytest.mark.parametrize(
    ("given", "high"),
    [
        (True, 0.7),
        ({"compression_threshold": 0.5}, 0.5),
        ({"compression_threshold": 1}, 1.0),
        ({}, 0.7),
        ({"buffer_tokens": 1_100}, 0.8),
    ],
)
def test_thresholds_are_what_they_say(given: Any, high: float) -> None:
    found = threshold(given)
    assert found is not None
    assert found.apply(Target.of(Budget(window=6_000, reserve=500))).budget.high == pytest.approx(high)


@pytest.mark.parametrize("given", [None, False])
def test_off_is_off(given: Any) -> None:
    assert threshold(given) is None


@pytest.mark.parametrize(
    "given",
    [
        {"compression_threshold": 0},
        {"compression_threshold": 1.01},
        {"compression_threshold": True},
        {"buffer_tokens": 0},
        {"buffer_tokens": 5, "compression_threshold": 0.5},
        {"threshold": 0.5},
        0.7,
        "yes",
    ],
)
def test_what_is_out_of_range_is_an_error(given: Any) -> None:
    with pytest.raises(BadRequest, match=r"must be|unknown|expected|not both") as error:
        threshold(given)
    assert isinstance(error.value, ValueError)


async def test_unset_means_identical_requests_and_set_means_before_it_is_full(store: SQLite) -> None:
    engine = Engine(store, Budget(window=6_000, reserve=500))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all pages."}]
    for n in range(12):
        messages += message(n)
    request = Request({"model": MODEL, "messages": messages})
    engine.settings = with_(engine.settings, compaction="off")
    view = await engine.prepare(request)
    assert body(view) == request.body
    engine.settings = Settings(threshold=threshold({"compression_threshold": 0.3}))
    assert await engine.expected(await engine.prepare(request)) <= 0.3 * 5_500
    # Reactive: with it off, what a provider refuses is made shorter all the same.
    other = Engine(store, Budget(window=6_000, reserve=500), Settings(compaction="off"))
    long = await other.prepare(Request({"model": MODEL, "messages": messages}, session="other"))
    await other.refused(long, "prompt is too long: 7000 tokens > 4000 maximum")
    shorter = await other.compact(long)
    assert await other.expected(shorter) < 4_000


async def test_the_method_of_a_session_is_remembered(store: SQLite) -> None:
    first = ContextController(Engine(store))
    first.method = "llm"
    await first.save("default", "work")
    second = ContextController(Engine(store))
    await second.load("default", "other")
    assert str(second.method) == "auto"
    await second.load("default", "work")
    assert str(second.method) == "llm"
