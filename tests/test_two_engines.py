"""Two engines on one file, and turns that are cut off: what is in memory never differs from what the log says."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from clew import Budget, Engine, Request, SQLite
from clew.core.view import View
from clew.engine.append import Addition
from clew.engine.settings import Settings
from clew.errors import Purged

BUDGET = Budget(window=100_000)


def chat(*said: str, system: str = "") -> dict[str, Any]:
    told = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(said)]
    return {"model": "m", "messages": ([{"role": "system", "content": system}] if system else []) + told}


def texts(view: View) -> list[str]:
    return [node.item.text for node in view.nodes]


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Engine, Engine]:
    here, there = (SQLite(tmp_path / "clew.db") for _ in range(2))
    return Engine(here, BUDGET), Engine(there, BUDGET)


async def logged(engine: Engine, session: str) -> list[str]:
    return texts(await Engine(engine.store, BUDGET).open(Addition(chat("nothing"), session)))


async def test_a_request_that_comes_twice_while_its_system_prompt_grows() -> None:
    engine = Engine(SQLite(":memory:"), BUDGET)
    await engine.prepare(Request(json.dumps(chat("hello " * 60, system="it is 9:59")).encode()))
    again = Request(json.dumps(chat("hello " * 60, "hi", "go on", system="it is 10:00")).encode())
    first, second = await asyncio.gather(engine.prepare(again), engine.prepare(again))
    assert texts(first) == texts(second)
    assert first.branch == second.branch


async def test_who_is_cancelled_while_catching_up_knows_what_others_wrote(pair: tuple[Engine, Engine]) -> None:
    here, there = pair
    for n in range(30):
        name = f"s{n}"
        await here.prepare(Addition(chat("first"), name))
        await there.append(Addition(chat("the door code is 4711"), name))
        cut = asyncio.create_task(here.prepare(Addition(chat("cut off"), name)))
        for _ in range(n):
            await asyncio.sleep(0.0002)
        cut.cancel()
        with suppress(asyncio.CancelledError):
            await cut
        sent = await here.prepare(Addition(chat("what is the door code?"), name))
        assert texts(sent) == await logged(there, name)
        assert "the door code is 4711" in texts(sent)


async def test_purged_words_are_not_sent_from_memory(pair: tuple[Engine, Engine]) -> None:
    here, there = pair
    view = await here.prepare(Addition(chat("words to be purged"), "s"))
    await there.store.purge("default", [view.branch], "as asked")  # type: ignore[attr-defined]
    fresh = await there.prepare(Addition(chat("a fresh start"), "s"))
    assert (await here.find("default", "fresh start", fresh.branch))[0].id == fresh.nodes[0].id
    assert texts(await here.prepare(Addition(chat("and now?"), "s"))) == ["a fresh start", "and now?"]
    for purging in (there, here):
        name = f"item purged by {'another' if purging is there else 'the same'}"
        view = await here.prepare(Addition(chat("the key is 12345"), name))
        await purging.store.purge_item("default", view.nodes[0].id, "leaked")  # type: ignore[attr-defined]
        sent = await here.prepare(Addition(chat("and now?"), name))
        assert "12345" not in str(texts(sent))
        assert texts(sent) == await logged(there, name)


async def test_a_name_that_was_purged_and_begun_anew_is_another_conversation(pair: tuple[Engine, Engine]) -> None:
    here, there = pair
    said = ("words to be purged", "yes", "and now?")
    acts: dict[str, Callable[[View], Awaitable[object]]] = {
        "request": lambda view: here.prepare(Request(chat(*said), session="request")),
        "report": lambda view: here.observe(view, {"input_tokens": 77, "output_tokens": 1}),
        "pin": lambda view: here.pin(view, view.nodes[0].id),
    }
    for name, act in acts.items():
        view = await here.prepare(Request(chat(said[0]), session=name))
        await there.store.purge("default", [view.branch], "as asked")  # type: ignore[attr-defined]
        fresh = await there.prepare(Request(chat("a fresh start"), session=name))
        assert fresh.branch != view.branch
        with suppress(Purged):
            await act(view)
        assert [place.content for place in (await there.store.load("default", fresh.branch)).said] == [
            node.content for node in fresh.nodes
        ]
        [call] = await there.store.calls("default", fresh.branch)
        assert call.usage is None
    assert texts(await here.prepare(Request(chat(*said, "go on"), session="request"))) == [*said, "go on"]
    assert await there.store.check(deep=True) == []  # type: ignore[attr-defined]


async def test_an_addition_goes_to_the_newest_branch_of_its_name(pair: tuple[Engine, Engine]) -> None:
    here, there = pair
    many = " and so on with many words of its own" * 6
    first = ["what is the plan" + many, "the plan is this" + many, "do it" + many]
    old = await here.prepare(Request(chat(*first), session="s"))
    other = [first[0], "something else altogether, no plan" + many, "then stop" + many]
    new = await there.prepare(Request(chat(*other), session="s"))
    assert old.branch != new.branch
    sent = await here.prepare(Addition(chat("to whom do I speak?"), "s"))
    assert sent.branch == new.branch
    assert texts(sent) == await logged(there, "s")


@pytest.mark.parametrize("added", ["dicts with large tools", "appended"])
async def test_memory_is_bounded_whatever_takes_it(added: str) -> None:
    engine = Engine(SQLite(":memory:"), BUDGET, Settings(memory=2_000_000))
    tools = [{"type": "function", "function": {"name": f"t{n}", "description": "x" * 2_000}} for n in range(50)]
    for n in range(60):
        if added == "appended":
            name = f"s{n % 3}"
            if n < 3:
                await engine.prepare(Addition(chat(f"{n}"), name))
            await engine.append(Addition(chat("word " * 20_000), name))
        else:
            await engine.prepare(Request({**chat(f"question {n}"), "tools": tools}))
    here = [engine._turns.branches.get("default", b.id) for b in await engine.store.branches("default")]
    kept = [branch for branch in here if branch]
    assert sum(branch.bytes for branch in kept) <= 2_000_000 or len(kept) == 1  # the last one stays
    assert len(kept) < (3 if added == "appended" else 10)
