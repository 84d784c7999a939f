"""Logs in which something is not as clew writes it, and all that one does with a conversation."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from clew import Budget, Engine, Request, Sessions, SQLite
from clew.engine.settings import Settings
from clew.errors import NotFound, OverBudget
from clew.sessions.export_log import export
from clew.sessions.import_log import take_in
from clew.steps import PRESETS
from clew.steps.chapters.allowance import Allowance, CallLimits
from clew.steps.chapters.by_model import ByModel
from clew.store.protocol import Store
from clew.store.sql import SQLStore
from clew.testing import ScriptedModel, conversation, write_chapter

Line = dict[str, Any]
Spot = tuple[str | int, ...]


def nested(levels: int) -> Any:
    """Lists in lists."""
    return [nested(levels - 1)] if levels else []


ODD: list[Any] = [
    *(None, True, 0, -1, 1.5, 10**30, 10**400, "", "x", "\0", "\ud800", "f" * 32, "tool", "assistant"),
    *([], {}, [None], [[]], [{}], [1], ["x"], [["a", 1, "b"]], {"a": 1}, {"type": "text"}),
    *(float("nan"), float("inf"), nested(60), nested(300), nested(900)),
]


def spots(value: Any, at: Spot = ()) -> Iterator[Spot]:
    """Where in a value something could be otherwise."""
    if at:
        yield at
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from spots(value[key], (*at, key))


def spoil(value: Any, random: Random, within: Spot = ()) -> Spot:
    """Let one thing in a value be otherwise; each kind of place has the same chance, however often it is there."""
    kinds = defaultdict(list)
    for spot in spots(value):
        if spot[: len(within)] == within:
            kinds[tuple(key if isinstance(key, str) else 0 for key in spot)].append(spot)
    *way, last = found = random.choice(kinds[random.choice(sorted(kinds, key=str))])
    for key in way:
        value = value[key]
    if random.random() < 0.8:
        value[last] = random.choice(ODD)
    else:
        del value[last]
    return found


# --- a log with all that there can be ---------------------------------------------------------------------------------


def worked(turns: int) -> Line:
    """An agent at work: commands that fail, files, tasks, rules of the user's."""
    said: list[Line] = [{"role": "user", "content": "Never touch a.py. Always write tests first."}]
    for n in range(turns):
        name, given = (
            ("bash", {"command": f"make t{n}"}),
            ("write", {"path": f"src/f{n}.py", "content": "x = 1\n" * 5}),
            ("todo_write", {"todos": [{"content": f"do {n}", "status": "pending", "id": str(n)}]}),
        )[n % 3]
        call = {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        said += [
            {"role": "assistant", "content": f"step {n} done, next one then. " * 30, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"exit code 1\nerror: e{n}" if n % 3 == 0 else "ok"},
            {"role": "user", "content": f"Always do u{n} from now on. " * 5},
        ]
    return {"model": "gpt-4o", "messages": said}


@dataclass
class Log:
    """A conversation as an export and as a store, and the request that comes next."""

    kind: str
    lines: list[Line] = field(repr=False)
    next: Line = field(repr=False)
    budget: Budget

    @property
    def format(self) -> str | None:
        return None if self.kind in ("work", "notes") else self.kind


async def made(kind: str, path: str) -> Log:
    """A log of a kind: an agent at work, the same with a model's notes, or a conversation in some format."""
    plain = kind in ("work", "notes")
    bodies = [worked(n) if plain else conversation(5, n, kind, 40) for n in range(1, 15)]
    log = Log(kind, [], bodies.pop(), Budget(window=5_000 if plain else 6_000, reserve=500))
    store, settings = SQLite(path), None
    if kind == "notes":
        writer = ByModel(ScriptedModel(write_chapter), size=300, seconds=60, allowance=Allowance(CallLimits()))
        settings = Settings(step=PRESETS["summarizing"](), author=writer)
    engine = Engine(store, log.budget, settings)
    if plain:  # a client that says its reminders only once
        bodies[6]["messages"][4]["content"] += "<system-reminder>-</system-reminder>"
    for n, body in enumerate(bodies):
        view = await engine.prepare(Request(body, log.format, session="run"))
        await engine.observe(view, {"input_tokens": 2_000, "output_tokens": 20})
        for _ in range(100 if kind == "notes" else 0):
            await asyncio.sleep(0.002)  # a chapter is written meanwhile
        if n in (2, len(bodies) - 3):
            shown = {node.id for node in view.nodes}
            said = [place.id for place in (await store.load("default", view.branch)).said]
            await engine.pin(view, next((id for id in said if id not in shown), said[0]))  # out of view, if any is
        if n == 8 and not plain:
            with suppress(NotFound):
                await Engine(store, Budget(window=100_000)).undo("default", view.branch)
        if n == 5:
            await Sessions(engine).fork("run", "aside")
    branches = sorted(await store.branches("default"), key=lambda branch: branch.session == "run")
    log.lines = [json.loads(line) async for line in export(store, "default", [branch.id for branch in branches])]
    await engine.close()
    await store.close()
    return log


# --- all that one does with it ----------------------------------------------------------------------------------------


async def live(store: SQLStore, name: str, log: Log) -> list[bytes]:
    """A turn, a compaction, a recall, an undo, another turn, and all that looks after a conversation; its export."""
    branch = await store.session("default", name)
    assert branch
    engine = Engine(store, log.budget)
    await engine.view("default", branch)
    view = await engine.compact(await engine.prepare(Request(log.next, log.format, session=name)))
    for id in [*(n.id for n in view.nodes), *(view.digests.handle(e.old)[:10] for e in view.edits)]:
        await engine.recall("default", id, view.branch)
    await Sessions(engine).search("error", name)
    with suppress(NotFound, OverBudget):  # there is nothing to undo, or no room for it
        await Engine(store, Budget(window=100_000)).undo("default", view.branch)
    await Engine(store, log.budget).prepare(Request(log.next, log.format, session=name))
    await Sessions(engine).all()
    await store.check(deep=True)
    await store.repair()
    written = [line async for line in export(store, "default", [view.branch])]
    await store.purge_item("default", view.nodes[0].id, "test")
    await store.purge("default", [view.branch], "test")
    return written


async def take(store: Store, lines: list[Line]) -> None:
    await take_in(store, "default", [json.dumps(line).encode() for line in lines])
