"""Conversations that differ in their words alone, at random, through gateways and the library: none gets a word of
another. Many more of them in `make fuzz-mixups`."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amounts import cases
from clew.store.sql import SQLStore
from mixups.clients import APPS
from mixups.conversations import MANNERS, Conversation
from mixups.judging import door_of
from mixups.plans import Act, Plan, plan
from mixups.running import Fuzzer, living, only, opened
from mixups.upstream import ScriptedUpstream
from mixups.world import Exchange, Mixup, Tally
from postgres import Server

WORLDS, PORTIONS = cases(4), 2


async def fuzzed(plans: Iterable[Plan], stores: list[SQLStore]) -> Tally:
    async with Fuzzer(stores) as fuzzer:
        return await fuzzer.fuzz(plans)


@pytest.mark.few(1)
@pytest.mark.parametrize("portion", range(PORTIONS))
async def test_no_conversation_gets_a_word_of_another(portion: int, tmp_path: Path) -> None:
    seeds = range(portion * WORLDS, (portion + 1) * WORLDS)
    tally = await fuzzed(map(plan, seeds), opened("", tmp_path))
    assert tally.faults() == {}
    assert tally.counts["folded turns"] > WORLDS
    assert tally.counts["searches"] > 5 * WORLDS
    assert tally.reached["still with its client"] >= 0.9 * tally.sought["still with its client"] > 0


@pytest.mark.nightly
async def test_so_it_is_on_a_server(server: Server, tmp_path: Path) -> None:
    tally = await fuzzed(map(plan, range(900, 902)), opened(server.url(server.database("template")), tmp_path))
    assert tally.faults() == {}
    assert tally.counts["turns"] > 50


ANYBODY = next(app for app in APPS if app.name == "app openai_chat x-clew-session" and not app.greets)
TURN = Act(0, "go_on", 1, 1)


def quiet(acts: tuple[Act, ...] = ()) -> Plan:
    """A world in which nothing happens by chance."""
    settled = replace(plan(0), ways=("gateway",), method="auto", tools=True, compaction="answer", window=2_000)
    return replace(settled, files=False, at_once=1, alike=False, clients=(ANYBODY,), acts=acts)


def forget(whose: Conversation) -> None:
    whose.words.clear()
    whose.tainted.clear()


async def test_the_judge_sees_a_word_of_another_at_every_door(tmp_path: Path) -> None:
    """A conversation that forgets which words are its own stands for an engine that gives it those of others."""
    stores, upstream = opened("", tmp_path), ScriptedUpstream()
    await upstream.start()
    async with living(quiet(), stores, upstream) as actor:
        world, whose = actor.world, actor.world.begin(0, 0)
        whose.manner, whose.name, whose.shares_name = MANNERS[0], "amber", False
        for _ in range(24):
            await actor.do(TURN)
        assert world.found == []
        for act in (TURN, Act(0, "ask", 1, 1), Act(0, "compact", 1, 1)):
            forget(whose)
            await actor.do(act)
        for how in (0, 1, 2, 3, 8):
            forget(whose)
            await actor.prober.probe(whose, how)
    for store in stores:
        await store.close()
    await upstream.stop()
    doors = {found.door.split(":")[0] for found in world.found}
    assert doors == {"asked", "sent", "answered compaction", "search", "recall", "mcp", "plugin", "export"}


def asked_aside(id: str, *after: dict[str, Any]) -> dict[str, Any]:
    """A request with a hidden question and a word in its answer."""
    function = {"name": "search_history", "arguments": "{}"}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}
    told = {"role": "tool", "tool_call_id": id, "content": "zqsomeon1z"}
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}, call, told, *after]}


@pytest.mark.parametrize(
    ("body", "door"),
    [
        (asked_aside("own"), "asked: search_history"),
        (asked_aside("other"), "sent: hidden answer of a failed try"),
        (asked_aside("other", {"role": "assistant", "content": "Done."}), "sent: hidden answer"),
    ],
)
def test_a_door_is_known(body: dict[str, Any], door: str) -> None:
    exchange = Exchange([], asked={"own": "search_history"})
    assert door_of(body, "openai_chat", {"zqsomeon1z"}, exchange) == door


async def test_what_is_told_says_how_to_see_it_again(tmp_path: Path) -> None:
    """A mix-up that does not come again is told with all acts that led to it."""
    made = quiet((TURN, Act(1, "go_on", 1, 1), TURN, TURN))
    async with Fuzzer(opened("", tmp_path)) as fuzzer:
        told = await fuzzer.told(made, Mixup("nowhere", "unknown", 2, "amber", ("word",), "…", frozenset({0})))
    assert told.endswith("python bench/fuzz_mixups.py --seed 0 --worlds 1 --acts 0,1,2")


def test_a_seed_is_a_world() -> None:
    assert plan(7) == plan(7) != plan(8)
    assert only(plan(7), [2, 5]).acts == (plan(7).acts[2], plan(7).acts[5])
