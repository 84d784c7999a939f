"""A client killed again and again while it writes. python tests/crashing.py ROUNDS SEED STORE...

One process imports clew and forks a client per round, so that a round costs milliseconds. The client opens the store
and goes on with its sessions: it appends, records, pins, compacts, undoes, forks and purges, and says what it begins
and what was acknowledged. `kill -9` comes at a random moment of a random act. Every now and then another fork looks
whether all that was acknowledged is there.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import chain
from typing import Any

from clew import Budget, Engine, Request, SQLite, open_store
from clew.core.view import View
from clew.engine.append import Addition
from clew.errors import NotFound, OverBudget
from clew.testing import conversation
from remembering import SCOPE, Host, Outcome, digest, look

SESSIONS = ("north", "east", "south", "west")
WINDOW = 3_000  # tokens: a few turns, and it is full
SPAN = 0.02  # seconds: about as long as the longest act of a turn, a compaction
SPANS = {"purge": 0.06}
LINES = 20  # that a client may get to say before its server is killed
SKIPPED = 3  # so often, at most, the act that is to be cut off is done before
LOOK = 25  # kills between two looks at the store
ADDING = ("notes", "diary")  # sessions of a host that sends only what is new
GOALS = ("open", "append", "add", "record", "pin", "compact", "undo", "fork", "purge")

Say = Callable[..., object]
Act = Callable[[Say], Coroutine[Any, Any, None]]


# --- the client -------------------------------------------------------------------------------------------------------


@cache
def bodies(session: str) -> list[dict[str, Any]]:
    """The requests of a session, each the one before it and more."""
    whole = conversation(sum(session.encode()), 30, wordy=20)
    said = whole["messages"]
    ends = [n for n in range(2, len(said) + 1) if n == len(said) or said[n]["role"] == "assistant"]
    return [{**whole, "messages": said[:n]} for n in ends]


async def work(engine: Engine, host: Host, chance: random.Random, say: Say, goal: str = "") -> None:
    """Go on with the sessions until somebody ends it; more often with acts of one kind, if one is the goal."""
    client = Client(engine, host, chance, say)

    def comes(act: str, often: float) -> bool:
        return act == goal or chance.random() < often

    while True:
        if comes("add", 0.1):
            await client.add(chance.choice(ADDING))
        session = chance.choice(SESSIONS)
        requests = bodies(session)
        turn = min(host.turns[session], len(requests) - 1)
        view = await client.append(Request(requests[turn], session=session), turn)
        if comes("record", 0.5):
            await client.record(view)
        if turn in (3, 9) or goal == "pin":
            await client.pin(view)
        if comes("compact", 0.3) or goal == "undo":
            await client.compact(view)
            if comes("undo", 0.3):
                await client.undo(view)
        if comes("fork", 0.1) or (goal == "purge" and chance.random() < 0.5):
            await client.fork(view, f"{session} {chance.getrandbits(40):x}")
        if goal and comes("purge", 0.02):  # whoever outlives a server that was killed does not know what went
            await client.purge(chance.choice(sorted(host.names)))


class Client:
    """Does one thing at a time, and says what it begins and what is done."""

    def __init__(self, engine: Engine, host: Host, chance: random.Random, say: Say) -> None:
        self.engine, self.host, self.chance, self._say = engine, host, chance, say

    def begin(self, *act: str) -> None:
        self._say("begin", *act)

    def done(self, act: str, branch: str, *told: Any) -> None:
        self._say(act, branch, *told)
        self.host.hear(act, branch, *told)

    async def append(self, request: Request, turn: int) -> View:
        self.begin("append")
        view = await self.engine.prepare(request)
        self.done("append", view.branch, request.session, turn, view.seq, digest(view))
        return view

    async def add(self, session: str) -> None:
        words = f"note {self.chance.getrandbits(60):x}"
        said = {"model": "gpt-4o", "messages": [{"role": "user", "content": words}]}
        self.begin("add")
        view = await self.engine.prepare(Addition(said, session))
        self.done("add", view.branch, session, words)

    async def record(self, view: View) -> None:
        tokens = self.chance.randrange(1, WINDOW)
        self.begin("record")
        await self.engine.observe(view, {"input_tokens": tokens, "output_tokens": 1})
        self.done("record", view.branch, view.seq, tokens)

    async def pin(self, view: View) -> None:
        self.begin("pin")
        with suppress(OverBudget):  # many were pinned already
            await self.engine.pin(view, view.nodes[-1].id)
            self.done("pin", view.branch, view.nodes[-1].id)

    async def compact(self, view: View) -> None:
        self.begin("compact")
        after = await self.engine.compact(view)
        new = after.edits[len(view.edits) :]
        self.done("compact", view.branch, *(n.id for e in new for n in e.stand_ins))

    async def undo(self, view: View) -> None:
        self.begin("undo")
        with suppress(OverBudget, NotFound):  # what was there before does not fit, or nothing was folded
            undone = await self.engine.undo(SCOPE, view.branch)
            self.done("undo", view.branch, *undone.sessions)

    async def fork(self, view: View, name: str) -> None:
        self.begin("fork")
        new = await self.engine.fork(SCOPE, view.branch, view.seq, name)
        self.done("fork", new, view.branch, view.seq)

    async def purge(self, branch: str) -> None:
        self.begin("purge", branch)
        await self.engine.store.purge(SCOPE, [branch], "test")  # type: ignore[attr-defined]
        self.done("purge", branch)


# --- who kills it -----------------------------------------------------------------------------------------------------


def fork(act: Act, heard: int, told: int) -> int:
    """Do something in a process of its own, which says into a pipe what it did; its id."""
    child = os.fork()
    if child:
        return child
    try:
        os.close(heard)  # so that it ends if nobody listens any more
        # A line is one write: it is there whole or not at all.
        asyncio.run(act(lambda *words: os.write(told, json.dumps(words).encode() + b"\n")))
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def hear(*acts: Act) -> list[Any]:
    """What processes say that do something at once, a line each time, until all are done."""
    heard, told = os.pipe()
    children = [fork(act, heard, told) for act in acts]
    os.close(told)
    with os.fdopen(heard) as lines:
        said = [json.loads(line) for line in lines]
    ends = [os.waitpid(child, 0)[1] for child in children]
    if any(ends):
        raise SystemExit("not all of them could do it; why is above")
    return said


def listen(heard: int, most: int) -> list[Any]:
    """What comes out of a pipe, up to so many lines or a few more."""
    lines = b""
    while lines.count(b"\n") < most and (more := os.read(heard, 1 << 16)):
        lines += more
    return [json.loads(line) for line in lines.splitlines()]


def end(child: int, heard: int) -> list[Any]:
    """Kill a process; what it said that nobody had heard yet."""
    os.kill(child, signal.SIGKILL)
    said = listen(heard, sys.maxsize)
    os.close(heard)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        raise SystemExit("the client ended before it was killed; what it said is above")
    return said


def take_down(said: list[Any], host: Host, outcome: Outcome) -> None:
    """Remember what a client was told is done."""
    for act, *rest in said:
        if act != "begin":
            outcome.acknowledged[act] += 1
            host.hear(act, *rest)
        elif rest[0] == "purge":
            host.going.add(rest[1])


def round(where: str, host: Host, chance: random.Random, outcome: Outcome) -> None:
    """Let a client work, and kill it."""
    seed, goal = chance.random(), chance.choice(GOALS)

    async def client(say: Say) -> None:
        say("begin", "open")
        engine = Engine(open_store(where), Budget(window=WINDOW))
        await work(engine, host, random.Random(seed), say, goal)

    heard, told = os.pipe()
    child = fork(client, heard, told)
    os.close(told)
    said, skip = list[Any](), chance.randrange(SKIPPED)
    while sum(line[:2] == ["begin", goal] for line in said) <= skip * (goal != "open"):
        said += listen(heard, 1)
    time.sleep(chance.random() ** 2 * SPANS.get(goal, SPAN))  # most acts are shorter
    said += end(child, heard)
    outcome.kills += 1
    outcome.during[said[-1][1] if said[-1][0] == "begin" else "nothing"] += 1
    take_down(said, host, outcome)
    if host.going:
        examine(where, host, outcome)


def examine(where: str, host: Host, outcome: Outcome) -> None:
    """Look at a store from a process of its own."""

    async def client(say: Say) -> None:
        store = open_store(where)
        seen = await look(store, host)
        await store.close()
        say(seen.problems[:9], seen.unheard, seen.mended, seen.gone)

    [(problems, unheard, mended, gone)] = hear(client)
    outcome.problems += problems
    outcome.unheard += unheard
    outcome.mended.update(mended)
    host.going.clear()  # those that are there are to be whole, as before
    for branch in gone:
        host.forget(branch)


def storm(stores: list[str], rounds: int, seed: int) -> Outcome:
    """So many kills, shared by the stores; the first of each meet it while it is made."""
    chance, outcome = random.Random(seed), Outcome()
    for n, where in enumerate(stores):
        host = Host()
        share = rounds * (n + 1) // len(stores) - rounds * n // len(stores)
        for kill in range(1, share + 1):
            round(where, host, chance, outcome)
            if kill == share or kill % LOOK == 0:
                examine(where, host, outcome)
    return outcome


async def warm_up(where: str) -> None:
    """Load what the first turn of a process loads, so that no client has to."""
    if where.startswith("postgresql:"):
        import_module("clew.store.postgres")
    store = SQLite(":memory:")
    engine = Engine(store, Budget(window=WINDOW))
    for request in chain.from_iterable(bodies(session)[:24:6] for session in SESSIONS):
        await engine.compact(await engine.prepare(Request(request)))
    await store.close()


if __name__ == "__main__":
    asyncio.run(warm_up(sys.argv[3]))
    json.dump(vars(storm(sys.argv[3:], int(sys.argv[1]), int(sys.argv[2]))), sys.stdout)
