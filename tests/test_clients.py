"""Random clients: whatever they do to their own history, the view stands for exactly what they sent."""

import asyncio
import copy
import json
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clew
from amounts import cases
from clew import Budget, Engine, Request, SQLite, wire
from clew.core.align import matches, patches
from clew.engine.settings import Settings
from clew.testing import conversation
from clew.wire import check

Body = dict[str, Any]


def meddle(random: Random, messages: list[Body], first: int) -> None:
    """Something a client may do between two calls, leaving calls and results together."""
    texts = [i for i, m in enumerate(messages) if i >= first and m["role"] == "user" and isinstance(m["content"], str)]
    if not texts:
        return
    at = random.choice(texts)
    match random.randrange(6):
        case 0:
            messages.insert(at, {"role": "user", "content": f"<system-reminder>{random.random()}</system-reminder>"})
        case 1:
            messages[at]["content"] += f" <system-reminder>{random.random()}</system-reminder>"
        case 2:
            del messages[at]
        case 3:
            messages[at]["content"] = f"quite other words {random.random()}"
        case 4:
            del messages[first:at]
        case 5:
            results = [m for m in messages if m["role"] == "tool" and isinstance(m["content"], str)]
            for message in results[: len(results) // 2]:
                message["content"] = message["content"][:20]


@settings(max_examples=cases(6, dear=True), suppress_health_check=list(HealthCheck))
@given(
    number=st.integers(0, 2**32),
    format=st.sampled_from(("anthropic", "openai_chat")),
    window=st.integers(1_800, 5_000),
    restart=st.booleans(),
    raw=st.booleans(),
)
def test_a_view_stands_for_exactly_what_was_sent(
    number: int, format: str, window: int, restart: bool, raw: bool
) -> None:
    async def play() -> None:
        random = Random(number)
        whole = conversation(number, 10, format, wordy=30)
        first = 0 if format == "anthropic" else 1
        body: Body = {**whole, "messages": whole["messages"][: first + 1]}
        rest = whole["messages"][first + 1 :]
        engine = Engine(SQLite(":memory:"), Budget(window=window, reserve=100), Settings(expand=False))
        while True:
            sent = json.dumps(body).encode() if raw else copy.deepcopy(body)
            view = await engine.prepare(Request(sent, format))
            items = wire.decode(body, format)[1]
            assert check(clew.body(view), format) == []
            trace = await engine.store.load("default", view.branch)
            assert [p.content for p in trace.said] == [view.digests.content(i) for i in items]
            behind = [o for n in view.nodes for o in await engine.recall("default", n.id)]
            assert len(behind) == len(items)
            # A fold keeps what it was made of, though the client rewrote it since: both are the same first node.
            said = {trace.alias.get(p.id, p.id): i for i, p in enumerate(trace.said)}
            places = [said[trace.alias.get(o.id, o.id)] for o in behind]
            assert sorted(places) == list(range(len(items)))
            assert len(places) < 2 or any(e.by == "Repair()" for e in view.edits) or places == sorted(places)
            again = await engine.resume("default", (await engine.store.calls("default", view.branch))[-1])
            assert [n.id for n in again.nodes] == [n.id for n in view.nodes]
            if not rest:
                break
            upto = next((i for i, m in enumerate(rest) if m["role"] == "user" and isinstance(m["content"], str)), 0) + 1
            body["messages"] = [*copy.deepcopy(body["messages"]), *rest[:upto]]
            rest = rest[upto:]
            if random.random() < 0.6:
                meddle(random, body["messages"], first)
            if restart and random.random() < 0.3:
                engine = Engine(engine.store, engine.budget, Settings(expand=False))

    asyncio.run(play())


@given(st.lists(st.sampled_from("abcdefgh")), st.lists(st.sampled_from("abcdefgh")))
def test_patches_turn_what_was_known_into_what_was_sent(old: list[str], new: list[str]) -> None:
    found = matches(old, new)
    assert all(old[m.old] == new[m.new] for m in found)
    assert found == sorted(set(found))
    assert len({m.old for m in found}) == len({m.new for m in found}) == len(found)
    out = list(old)
    gaps = patches(found, len(old), len(new))
    for gap in reversed(gaps):
        out[gap.start : gap.stop] = new[gap.begin : gap.end]
    last = found[-1].new + 1 if found else 0
    assert out + (new[last:] if not gaps or gaps[-1].stop < len(old) else []) == new
