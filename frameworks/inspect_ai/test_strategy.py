"""Inspect's own agent, its real loop against a provider that refuses what real ones refuse."""

import asyncio
import re
from pathlib import Path

import pytest
from frameworks.inspect_ai.reading import THRESHOLD, WINDOW, Body, asked, evaluated, model_of, reading
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentReasoning,
    ContentText,
    get_model,
)

from clew import Budget, Engine, Sessions, SQLite, run
from clew.adapters.inspect_ai import ClewCompaction, session_in
from clew.testing import Answer, Call, StrictProvider


def test_growth_past_the_window_is_never_refused_and_what_left_is_found() -> None:
    found = Answer(calls=(Call("search_history", {"query": "KEY_3"}),))
    with StrictProvider(reading(12, found), window=WINDOW) as provider:
        strategy = ClewCompaction("clew.db", threshold=THRESHOLD)
        log = evaluated(model_of(provider), strategy, *strategy.tools)
    assert log.status == "success", log.error
    heard = asked(provider)
    assert len(heard) == 14
    assert max(one.spent.input for one in heard) <= WINDOW
    assert "KEY_3 = 14133" in str(heard[-1].body)
    assert "Never write to part_1.py." in str(heard[-1].body)
    assert log.samples
    messages = log.samples[0].messages
    assert sum("of no interest" in m.text for m in messages if m.role == "tool") >= 24  # Inspect's own list is whole
    chain = run(Sessions(Engine(SQLite("clew.db"))).all())
    assert len({session.branch for session in chain}) == 1


def test_an_oversized_result_leaves_the_view_and_can_be_found() -> None:
    script = [
        Answer(calls=(Call("read", {"path": "part_99.py"}),)),
        Answer(calls=(Call("search_history", {"query": "part_99.py line 1500"}),)),
        Answer(calls=(Call("submit", {"answer": "14133"}),)),
    ]
    with StrictProvider(script, window=WINDOW) as provider:
        strategy = ClewCompaction("clew.db", threshold=THRESHOLD)
        log = evaluated(model_of(provider), strategy, *strategy.tools)
    assert log.status == "success", log.error
    _, before, after = asked(provider)
    assert max(before.spent.input, after.spent.input) <= WINDOW
    assert "part_99.py line 1500 of no interest" not in str(before.body)
    assert "part_99.py line 1500 of no interest" in str(after.body)


def test_samples_that_run_at_once_have_conversations_of_their_own() -> None:
    """Epochs of one sample, which begin with the very same words."""

    def script(body: Body) -> Answer:
        known = re.findall(r"part_(\d+)\.py", str(body))
        n = 1 + max(map(int, known))
        return Answer(calls=(Call("submit", {"answer": "1"}) if n > 12 else Call("read", {"path": f"part_{n}.py"}),))

    with StrictProvider(script, window=WINDOW) as provider:
        log = evaluated(model_of(provider), ClewCompaction("clew.db", threshold=3_000), epochs=3)
    assert log.status == "success", log.error
    assert len(asked(provider)) == 3 * 12
    sessions = run(Sessions(Engine(SQLite("clew.db"))).all())
    assert len({session.name for session in sessions}) == 3
    assert {session.cause for session in sessions} <= {"start", "compaction"}


def test_an_engine_of_ones_own_is_used() -> None:
    engine = Engine(SQLite("own.db"), Budget(window=THRESHOLD))
    with StrictProvider(reading(10), window=WINDOW) as provider:
        log = evaluated(model_of(provider), ClewCompaction(engine, threshold=THRESHOLD))
    assert log.status == "success", log.error
    assert run(Sessions(engine).all())


def test_where_clew_fails_inspect_trims(caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine(SQLite("own.db"), Budget(window=THRESHOLD))
    run(engine.store.close())
    with StrictProvider(reading(10), window=WINDOW) as provider:
        log = evaluated(model_of(provider), ClewCompaction(engine, threshold=THRESHOLD))
    assert log.status == "success", log.error
    assert max(one.spent.input for one in asked(provider)) <= WINDOW
    assert not Path("clew.db").exists()


def test_while_there_is_room_the_provider_hears_the_very_bytes() -> None:
    heard = []
    for strategy in (None, ClewCompaction("clew.db", threshold=100_000)):
        with StrictProvider(reading(2)) as provider:
            evaluated(model_of(provider), strategy)
            said = [one.body["input"] for one in asked(provider)]
            heard.append(re.sub(r"'(id|call_id)': '\w+'", "", str(said)))  # of which each is made up anew
    assert heard[0] == heard[1]


async def test_signed_thinking_is_left_out_once_what_stood_before_it_changed() -> None:
    thought = [ContentReasoning(reasoning="Hm.", signature="signed"), ContentText(text="Noted.")]
    messages: list[ChatMessage] = [ChatMessageSystem(content="Be brief.")]
    for n in range(40):
        messages += [
            ChatMessageUser(content=f"Turn {n}: " + "all is well. " * 80),
            ChatMessageAssistant(content=thought),
        ]
    messages.append(ChatMessageUser(content="Go on."))
    model = get_model("mockllm/claude-sonnet-5-2", memoize=False)
    out, extra = await ClewCompaction("clew.db", threshold=THRESHOLD).compact(model, messages, [])
    assert extra is None
    assert out[0] is messages[0]
    assert out[-1] is messages[-1]
    assert len(out) < len(messages)
    assert not any(isinstance(c, ContentReasoning) for m in out if isinstance(m.content, list) for c in m.content)
    again, _ = await ClewCompaction("clew.db", threshold=THRESHOLD).compact(
        model, [*out, *messages[1:40]], []
    )  # restarted
    assert session_in(again) == session_in(out)


async def test_an_agent_that_begins_in_a_tool_of_another_is_its_child() -> None:
    def said(words: str) -> list[ChatMessage]:
        return [ChatMessageUser(content=f"{words} {n}: " + "all is well. " * 80) for n in range(60)]

    strategy, model = ClewCompaction("clew.db", threshold=THRESHOLD), get_model("mockllm/model", memoize=False)
    await strategy.compact(model, said("Lead"), [])
    await asyncio.create_task(strategy.compact(model, said("Find"), []))  # as Inspect runs a tool
    sessions = await Sessions(Engine(SQLite("clew.db"))).all()
    assert sorted({str(s.cause) for s in sessions} - {"compaction"}) == ["start", "subagent"]
