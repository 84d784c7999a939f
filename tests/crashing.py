"""A client killed again and again while it writes. python tests/crashing.py ROUNDS SEED STORE...

One process imports clew and forks a client per round, so that a round costs milliseconds. The client opens the store
and goes on with its sessions: it appends, records, pins and compacts, and says what it begins and what was
acknowledged. `kill -9` comes at a random moment of a random act. Every now and then another fork looks whether all that
was acknowledged is there.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib import import_module
from itertools import chain
from typing import Any

from clew import Budget, Engine, Request, SQLite, View, body, open_store
from clew.core import rawjson
from clew.store.sql import SQLStore
from clew.testing import conversation

SESSIONS = ("north", "east", "south", "west")
WINDOW = 3_000  # tokens: a few turns, and it is full
SPAN = 0.02  # seconds: about as long as the longest act, a compaction
LINES = 20  # that a client may get to say before it is killed
LOOK = 25  # kills between two looks at the store
SCOPE = "default"

Say = Callable[..., object]
Act = Callable[[Say], Coroutine[Any, Any, None]]


@dataclass
class Host:
    """What a host remembers of one store when its client is gone: what was acknowledged."""

    turns: Counter[str] = field(default_factory=Counter)  # by session: so many are done
    calls: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))  # by branch: digest of the body
    usages: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    pins: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    stand_ins: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def hear(self, act: str, branch: str, *told: Any) -> None:
        """Remember one thing that a client was told is done."""
        match act, told:
            case "append", (session, turn, seq, digest):
                self.turns[session] = turn + 1
                self.calls[branch][seq] = digest
            case "record", (seq, tokens):
                self.usages[branch][seq] = tokens
            case "pin", (id,):
                self.pins[branch].add(id)
            case "compact", (*ids,):
                self.stand_ins[branch].update(ids)


@dataclass
class Outcome:
    """What came of all rounds."""

    kills: int = 0
    during: Counter[str] = field(default_factory=Counter)  # by act: kills that cut it off
    acknowledged: Counter[str] = field(default_factory=Counter)
    unheard: int = 0  # calls in the log that no client was told of
    problems: list[str] = field(default_factory=list)


# --- the client -------------------------------------------------------------------------------------------------------


def digest(view: View) -> str:
    """Of the bytes that send a view."""
    return sha256(rawjson.dumps(body(view))).hexdigest()


@cache
def bodies(session: str) -> list[dict[str, Any]]:
    """The requests of a session, each the one before it and more."""
    whole = conversation(sum(session.encode()), 30, wordy=20)
    said = whole["messages"]
    ends = [n for n in range(2, len(said) + 1) if n == len(said) or said[n]["role"] == "assistant"]
    return [{**whole, "messages": said[:n]} for n in ends]


async def work(engine: Engine, turns: Counter[str], chance: random.Random, say: Say) -> None:
    """Go on with the sessions until somebody ends it."""
    while True:
        session = chance.choice(SESSIONS)
        requests = bodies(session)
        turn = min(turns[session], len(requests) - 1)
        say("begin", "append")
        view = await engine.prepare(Request(requests[turn], session=session))
        say("append", view.branch, session, turn, view.seq, digest(view))
        turns[session] = turn + 1
        if chance.random() < 0.5:
            tokens = chance.randrange(1, WINDOW)
            say("begin", "record")
            await engine.observe(view, {"input_tokens": tokens, "output_tokens": 1})
            say("record", view.branch, view.seq, tokens)
        if turn in (3, 9):
            say("begin", "pin")
            await engine.pin(view, view.nodes[-1].id)
            say("pin", view.branch, view.nodes[-1].id)
        if chance.random() < 0.3:
            say("begin", "compact")
            after = await engine.compact(view)
            new = after.edits[len(view.edits) :]
            say("compact", view.branch, *(n.id for e in new for n in e.stand_ins))


async def look(store: SQLStore, host: Host) -> tuple[list[str], int]:
    """Everything acknowledged that is not there, or is not as it was; calls that nobody was told of."""
    found = [f"doctor: {p.count} {p.what}" for p in await store.check(deep=True)]
    engine = Engine(store)
    unheard = 0
    for branch, calls in host.calls.items():
        there = {c.seq: c for c in await store.calls(SCOPE, branch)}
        unheard += len(there.keys() - calls.keys())
        found += [f"call {seq} of {branch} is lost" for seq in calls.keys() - there.keys()]
        for seq in calls.keys() & there.keys():
            if digest(await engine.resume(SCOPE, there[seq])) != calls[seq]:
                found.append(f"call {seq} of {branch} is not what was sent")
        for seq, tokens in host.usages[branch].items():
            if ((there[seq].usage if seq in there else None) or {}).get("input") != tokens:
                found.append(f"usage of call {seq} of {branch} is lost")
        trace = await store.load(SCOPE, branch)
        found += [f"pin {id} of {branch} is lost" for id in host.pins[branch] - trace.pinned]
        stand_ins = {n.id for e in trace.edits for n in e.stand_ins}
        found += [f"stand-in {id} of {branch} is lost" for id in host.stand_ins[branch] - stand_ins]
    return found, unheard


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


def round(where: str, host: Host, chance: random.Random, outcome: Outcome) -> None:
    """Let a client work, and kill it."""
    seed = chance.random()

    async def client(say: Say) -> None:
        say("begin", "open")
        engine = Engine(open_store(where), Budget(window=WINDOW))
        await work(engine, host.turns, random.Random(seed), say)

    heard, told = os.pipe()
    child = fork(client, heard, told)
    os.close(told)
    said = listen(heard, 1 if chance.random() < 0.3 else chance.randrange(2, LINES))
    time.sleep(chance.uniform(0, SPAN))
    said += end(child, heard)
    outcome.kills += 1
    outcome.during[said[-1][1] if said and said[-1][0] == "begin" else "nothing"] += 1
    take_down(said, host, outcome)


def examine(where: str, host: Host, outcome: Outcome) -> None:
    """Look at a store from a process of its own."""

    async def client(say: Say) -> None:
        store = open_store(where)
        problems, unheard = await look(store, host)
        await store.close()
        say(problems[:9], unheard)

    [(problems, unheard)] = hear(client)
    outcome.problems += problems
    outcome.unheard += unheard


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
    for request in chain.from_iterable(map(bodies, SESSIONS)):
        await engine.compact(await engine.prepare(Request(request)))
    await store.close()


if __name__ == "__main__":
    asyncio.run(warm_up(sys.argv[3]))
    json.dump(vars(storm(sys.argv[3:], int(sys.argv[1]), int(sys.argv[2]))), sys.stdout)
