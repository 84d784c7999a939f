"""Compacting when the agent has just finished its list of tasks."""

import json
from typing import Any

from clew import Budget, Engine, Request, SQLite, body
from clew.core.view import View

LONG = "handler_{0}_{1} took {1} ms in src/part_{0}/mod_{1}.py, as it did before the change\n"


def called(n: int, name: str, given: Any, result: str) -> list[dict[str, Any]]:
    call = {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{n}", "content": result},
    ]


def plan(n: int, *states: str) -> list[dict[str, Any]]:
    return called(n, "update_plan", {"plan": [{"step": f"part {i}", "status": s} for i, s in enumerate(states)]}, "ok")


def work(parts: int, turns: int) -> list[list[dict[str, Any]]]:
    """What each turn adds: a list of parts, some calls for each, and the list with that part ticked off."""
    said = [[{"role": "user", "content": "Build all parts."}, *plan(0, *["pending"] * parts)]]
    n = 1
    for part in range(parts):
        for _ in range(turns):
            said.append(called(n, "bash", {"command": f"make {n}"}, "".join(LONG.format(n, k) for k in range(9))))
            n += 1
        said.append(plan(n, *["completed"] * (part + 1), *["pending"] * (parts - part - 1)))
        n += 1
    return said


async def folded(budget: Budget, said: list[list[dict[str, Any]]]) -> list[int]:
    """The turns in which something was folded."""
    store = SQLite(":memory:")
    engine = Engine(store, budget)
    messages: list[dict[str, Any]] = []
    when, edits = list[int](), 0
    for n, turn in enumerate(said):
        messages += turn
        view: View = await engine.prepare(Request({"model": "gpt-4o", "messages": messages}))
        assert body(view)
        if len(view.edits) != edits:
            when.append(n)
        edits = len(view.edits)
    await engine.close()
    await store.close()
    return when


async def test_when_the_last_task_is_done_and_more_than_half_is_full() -> None:
    said = work(3, 9)  # some 270 tokens a call
    budget = Budget(window=14_000, reserve=1_000, tail=1_000)
    assert await folded(budget, said) == [], "there is room for all of it"
    with_done = Budget(window=14_000, reserve=1_000, tail=1_000, done=0.5)
    assert await folded(with_done, said) == [len(said) - 1], "not in the middle of the work, only at its end"
    assert await folded(with_done, work(1, 9)) == [], "it is done, and most of the window is free"
    low = Budget(window=14_000, reserve=1_000, tail=1_000, done=0.2)  # what a fold leaves is more than that
    again = [*said, *work(1, 1)]
    assert await folded(low, again) == [len(said) - 1], "and not again for a little"
