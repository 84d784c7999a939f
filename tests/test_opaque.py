"""What only a provider reads is never folded, moved or turned into words; steps fold around it."""

import asyncio
import json
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from amounts import cases
from clew import Budget, Engine, Request, body
from clew.engine.settings import Settings
from clew.errors import OverBudget
from clew.steps import PRESETS
from clew.store.sql import SQLStore
from clew.testing import check_laws, conversation, view_of
from clew.tokens.target import Target
from clew.wire import FORMATS, check
from clew.wire.convert.extras import with_tail

Message = dict[str, Any]

TASK = "Rename the port setting to `listen_port` everywhere. Never touch the billing tables."
TOOLS: Message = {
    "type": "additional_tools",
    "role": "developer",
    "tools": [
        {"type": "namespace", "name": "shell", "tools": [{"name": f"t{n}", "description": "d" * 40}]} for n in "abc"
    ],
}
RULES: Message = {
    "type": "message",
    "role": "developer",
    "content": [{"type": "input_text", "text": "Be brief. " * 40}],
}
CONFIG: Message = {"type": "configuration_update", "reasoning": {"effort": "low"}}
SEALED: Message = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA" * 60}
TRIGGER: Message = {"type": "compaction_trigger"}
UNKNOWN: Message = {"type": "weather_report", "id": "wr_1", "sky": "grey " * 30}
DEVELOPER: Message = {"type": "message", "role": "developer", "content": "From now on answer in French. " * 10}
SEARCH: Message = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}


def user(text: str) -> Message:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def work(n: int, words: int = 300) -> list[Message]:
    call = {"type": "custom_tool_call", "id": f"ctc_{n}", "call_id": f"c{n}", "name": "shell", "input": f"ls part_{n}"}
    sealed = {"type": "reasoning", "id": f"rs_{n}", "summary": [], "encrypted_content": "c2VhbGVk"}
    found = [{"type": "input_text", "text": f"file_{n}.py has handler_{n} at line {n}. " * (words // 8)}]
    return [sealed, call, {"type": "custom_tool_call_output", "call_id": f"c{n}", "output": found}]


def responses(*items: Message) -> Message:
    return {"model": "gpt-6-luna", "input": list(items), "store": False}


def around(*opaque: Message) -> list[Message]:
    """A session with one of these after every fourth piece of work."""
    said = [TOOLS, RULES, user("<environment_context>cwd /srv</environment_context>"), user(TASK)]
    rest = list(opaque)
    for n in range(40):
        said += work(n)
        if n % 4 == 3 and rest:
            said.append(rest.pop(0))
    return [*said, *rest]


def lines(messages: list[Message]) -> list[str]:
    return [json.dumps(m, sort_keys=True) for m in messages]


def kept_in_order(sent: list[Message], opaque: list[Message]) -> bool:
    """Whether these stand in what was sent, byte for byte and in their order."""
    found = iter(lines(sent))
    return all(line in found for line in lines(opaque))


@pytest.mark.few(4)
@pytest.mark.parametrize("preset", ["default", "clearing", "summarizing", "sliding"])
@pytest.mark.parametrize("window", [6_000, 12_000, 20_000])
async def test_what_only_the_provider_reads_stays_byte_for_byte(store: SQLStore, preset: str, window: int) -> None:
    opaque = [SEALED, CONFIG, UNKNOWN, DEVELOPER, SEARCH, {**TOOLS, "tools": TOOLS["tools"][:1]}]
    engine = Engine(store, Budget(window=window, reserve=500, tail=1_000), Settings(step=PRESETS[preset]()))
    view = await engine.prepare(Request(responses(*around(*opaque))))
    sent = body(view)["input"]
    assert view.edits, "nothing was folded: the window is too large for this test"
    assert sent[:2] == [TOOLS, RULES]
    assert kept_in_order(sent, opaque)
    assert any(TASK in line for line in lines(sent)), "the task of the user is gone"
    assert check(body(view), "openai_responses") == []


async def test_neighbours_of_what_stays_are_folded(store: SQLStore) -> None:
    engine = Engine(store, Budget(window=6_000, reserve=500, tail=500))
    view = await engine.prepare(Request(responses(*around(SEALED, DEVELOPER))))
    sent = lines(body(view)["input"])
    for stays in (SEALED, DEVELOPER):
        at = sent.index(json.dumps(stays, sort_keys=True))
        assert "custom_tool_call" not in sent[at - 1]
        assert "custom_tool_call" not in sent[at + 1]


@pytest.mark.parametrize("preset", ["default", "clearing", "summarizing", "sliding"])
async def test_encrypted_reasoning_stays_or_goes_with_its_call(store: SQLStore, preset: str) -> None:
    engine = Engine(store, Budget(window=6_000, reserve=500, tail=1_500), Settings(step=PRESETS[preset]()))
    sent = body(await engine.prepare(Request(responses(*around()))))["input"]
    kinds = [m.get("type") for m in sent]
    thought = [m["id"].removeprefix("rs_") for m in sent if m.get("type") == "reasoning"]
    called = [m["call_id"].removeprefix("c") for m in sent if m.get("type") == "custom_tool_call"]
    assert thought == called
    assert 0 < len(called) < 40
    assert all(after == "custom_tool_call" for at, after in pairwise(kinds) if at == "reasoning")


async def test_a_compaction_of_the_clients_own_passes_unfolded_while_it_fits(store: SQLStore) -> None:
    said = [*around(), TRIGGER]
    engine = Engine(store, Budget(window=40_000, reserve=500, high=0.2, low=0.1))
    view = await engine.prepare(Request(responses(*said)))
    assert not view.edits
    assert body(view)["input"] == said


async def test_a_trigger_stays_last_where_the_request_must_be_folded(store: SQLStore) -> None:
    engine = Engine(store, Budget(window=4_000, reserve=500, tail=500))
    view = await engine.prepare(Request(responses(*around(), TRIGGER)))
    sent = body(view)["input"]
    assert view.edits
    assert sent[-1] == TRIGGER
    assert any(TASK in line for line in lines(sent))


@pytest.mark.parametrize(("more", "is_beside"), [({"compaction": {"type": "summarize"}}, False), ({}, True)], ids=str)
async def test_nothing_is_put_beside_a_question_where_the_provider_is_to_compact(
    store: SQLStore, more: Message, is_beside: bool
) -> None:
    engine = Engine(store, Budget(window=8_000, reserve=500, tail=500))
    said = [*around(), {"type": "message", "role": "assistant", "content": "I have seen all of it."}]
    assert (await engine.prepare(Request(responses(*said, user("Go on.")), session="s"))).edits
    said += [user("Go on."), {"type": "message", "role": "assistant", "content": "Yes."}]
    asked = responses(*said, user("At which line of file_3.py is handler_3?")) | more
    sent = body(await engine.prepare(Request(asked, session="s")))["input"]
    assert any("[data: from earlier" in line for line in lines(sent)) == is_beside


async def test_what_alone_does_not_fit_is_an_error_with_numbers(store: SQLStore) -> None:
    huge = {**SEALED, "encrypted_content": "gAAAA" * 9_000}
    engine = Engine(store, Budget(window=4_000, reserve=500))
    with pytest.raises(OverBudget, match="only the provider"):
        await engine.prepare(Request(responses(user(TASK), huge, *work(1))))


async def test_searches_that_fill_the_window_leave_oldest_first(store: SQLStore) -> None:
    """Rather than an error: what the provider ran for the model is history, the last of it to go."""
    said = [user(TASK)]
    for n in range(30):
        said += [{**SEARCH, "id": f"ws_{n}", "results": [{"text": f"page {n} " * 200}]}]
        said += [{"type": "message", "role": "assistant", "content": f"Page {n} is read."}]
    engine = Engine(store, Budget(window=9_000, reserve=500, tail=500))
    view = await engine.prepare(Request(responses(*said, user("Go on."))))
    sent = lines(body(view)["input"])
    assert not any("ws_0" in line for line in sent)
    assert any('"ws_29"' in line for line in sent)


def test_nothing_is_told_after_a_trigger() -> None:
    asked = responses(user(TASK), TRIGGER)
    assert with_tail(asked, "openai_responses", "status") == asked
    assert with_tail(responses(user(TASK)), "openai_responses", "status")["input"][-1]["content"] == "status"


def messages(*said: Message) -> Message:
    tool = {"name": "shell", "input_schema": {"type": "object"}}
    frame = {"model": "claude-opus-4-8", "max_tokens": 500, "system": "You work.", "tools": [tool]}
    return {**frame, "messages": list(said)}


def used(n: int) -> list[Message]:
    call = {"type": "tool_use", "id": f"toolu_{n}", "name": "shell", "input": {"command": f"ls part_{n}"}}
    back = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": f"file_{n}.py has handler_{n}. " * 40}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [back]}]


@pytest.mark.parametrize("preset", ["default", "clearing", "summarizing", "sliding"])
async def test_blocks_and_system_messages_in_the_middle_stay(store: SQLStore, preset: str) -> None:
    system = {"role": "system", "content": "The user switched to read-only mode. " * 5}
    block = {"type": "compaction", "content": "What was before: a plan. " * 10}
    served: list[Message] = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "ports"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "x", "e": "z" * 90}]},
        {"type": "text", "text": "Found it."},
    ]
    said: list[Message] = [{"role": "user", "content": TASK}]
    for n in range(30):
        said += used(n)
        said += [system] if n == 6 else []
        if n == 12:
            said += [{"role": "assistant", "content": [block, {"type": "text", "text": "Going on."}]}]
            said += [{"role": "user", "content": "Yes, go on."}]
        if n == 20:
            said += [{"role": "assistant", "content": served}, {"role": "user", "content": "Good."}]
    engine = Engine(store, Budget(window=4_500, reserve=500, tail=500), Settings(step=PRESETS[preset]()))
    view = await engine.prepare(Request(messages(*said)))
    sent = body(view)["messages"]
    assert view.edits
    assert check(body(view), "anthropic") == []
    assert system in sent
    blocks = [b for m in sent if isinstance(m["content"], list) for b in m["content"]]
    assert kept_in_order(blocks, [block, *served])
    assert any(TASK in line for line in lines(sent))


async def test_tools_that_change_in_the_middle_stay_where_anthropic_takes_them(store: SQLStore) -> None:
    added = {"role": "system", "content": [{"type": "tool_addition", "tool": {"type": "tool_reference", "name": "x"}}]}
    said: list[Message] = [{"role": "user", "content": TASK}]
    for n in range(30):
        said += [*used(n), *([added] if n in (6, 7, 20) else [])]
    view = await Engine(store, Budget(window=4_000, reserve=500, tail=500)).prepare(Request(messages(*said)))
    sent = body(view)
    assert view.edits
    assert check(sent, "anthropic") == []
    assert sent["messages"].count(added) == 3


async def test_a_request_for_a_summary_passes_unfolded_while_it_fits(store: SQLStore) -> None:
    said = [{"role": "user", "content": TASK}, *(m for n in range(30) for m in used(n))]
    engine = Engine(store, Budget(window=40_000, reserve=500, high=0.2, low=0.1))
    asked = {**messages(*said), "compaction": {"type": "summarize"}}
    view = await engine.prepare(Request(asked))
    assert not view.edits
    assert body(view) == asked


@settings(max_examples=cases(25, dear=True), deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(sorted(PRESETS)), st.integers(900, 12_000), st.integers(0, 3))
@example(510511, "clearing", 900, 0)
@example(2942, "clearing", 2892, 0)
def test_all_laws_hold_around_it(seed: int, preset: str, window: int, pins: int) -> None:
    """Whatever stands wherever, in both formats that have such things."""
    random = Random(seed)
    said = conversation(seed, 12, "openai_responses", 20)
    for thing in random.choices([SEALED, CONFIG, UNKNOWN, DEVELOPER, SEARCH], k=random.randrange(6)):
        said["input"].insert(random.randrange(len(said["input"]) + 1), thing)
    budget = Budget(window=window, reserve=window // 5, tail=window // 10)
    step = PRESETS[preset]()
    asyncio.run(check_laws(step, view_of(said, pins=pins, seed=seed), Target.of(budget), fits=preset != "null"))


def test_each_format_reads_and_writes_what_it_does_not_know() -> None:
    odd = {"type": "no_such_thing", "n": [1, {"a": None}]}
    for format, message in (("openai_responses", odd), ("anthropic", {"role": "assistant", "content": [odd]})):
        codec = FORMATS[format]
        assert codec.write(codec.read(message, "here")) == [message]
