"""One engine on several event loops: what asyncio's own locks do not bear."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from clew import Budget, Engine, Request, SQLite
from clew.core.bridge import Lock
from clew.engine.append import Addition

TURNS = 12


def side_by_side(*works: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run each on a loop of its own in a thread of its own; what one raises is raised."""
    errors: list[BaseException] = []

    def alone(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            asyncio.run(work())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=alone, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def said(text: str) -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}


def test_additions_to_one_conversation_from_two_loops_are_all_there(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "clew.db")
    engine = Engine(store, Budget(window=50_000))

    def adds(who: str) -> Callable[[], Coroutine[Any, Any, None]]:
        async def work() -> None:
            turns = [engine.prepare(Addition(said(f"{who} {n}"), "shared")) for n in range(TURNS)]
            await asyncio.gather(*turns)

        return work

    side_by_side(adds("left"), adds("right"))

    async def look() -> None:
        view = await engine.open(Addition({**said(""), "messages": []}, "shared"))
        expected = {f"{who} {n}" for who in ("left", "right") for n in range(TURNS)}
        assert sorted(n.item.text for n in view.nodes) == sorted(expected)
        await engine.prepare(Addition(said("afterwards"), "shared"))
        await store.close()

    asyncio.run(look())


def test_a_history_that_is_sent_from_two_loops_is_answered_on_both(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "clew.db")
    engine = Engine(store, Budget(window=50_000))
    history: list[dict[str, str]] = []
    for n in range(TURNS):
        history += [{"role": "user", "content": f"question {n}"}, {"role": "assistant", "content": f"answer {n}"}]

    async def work() -> None:
        for n in range(TURNS):
            body = {"model": "gpt-4o", "messages": history[: 2 * n + 1]}
            views = await asyncio.gather(*(engine.prepare(Request(body, session="same")) for _ in range(3)))
            assert {len(view.nodes) for view in views} == {2 * n + 1}

    side_by_side(work, work)
    asyncio.run(work())
    asyncio.run(store.close())


def test_a_loop_after_another_finds_no_lock_of_the_first(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "clew.db")
    engine = Engine(store, Budget(window=50_000))

    async def crowd() -> None:
        await asyncio.gather(*(engine.prepare(Request(said("hello"), session="one")) for _ in range(5)))

    for _ in range(3):
        asyncio.run(crowd())
    asyncio.run(store.close())


def test_a_turn_that_is_cancelled_while_it_waits_holds_nobody_up() -> None:
    lock = Lock()
    order: list[str] = []

    async def hold(who: str) -> None:
        async with lock:
            order.append(who)
            await asyncio.sleep(0)

    async def work() -> None:
        await lock.__aenter__()
        tasks = [asyncio.create_task(hold(who)) for who in "abc"]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await lock.__aexit__()
        tasks[1].cancel()  # its turn has come, and it does not know yet
        await asyncio.wait(tasks)
        assert [task.cancelled() for task in tasks] == [True, True, False]
        await hold("d")

    asyncio.run(work())
    assert order == ["c", "d"]


def test_the_lock_is_held_by_one_at_a_time_on_any_number_of_loops() -> None:
    lock, inside, seen = Lock(), [0], []

    async def work() -> None:
        for _ in range(200):
            async with lock:
                inside[0] += 1
                seen.append(inside[0])
                await asyncio.sleep(0)
                inside[0] -= 1

    side_by_side(*[work] * 4)
    assert set(seen) == {1}
