"""Large stores in minutes: sessions written straight into the log, as their turns would have been."""

import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace as with_
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import orjson

from clew import SQLite
from clew.core.edits import NO_EDITS
from clew.core.items import Digests, Item, Node
from clew.core.view import View
from clew.store import Batch, Call, Said, Store
from clew.store.records import Event
from clew.wire import decode

Message = dict[str, Any]

SCOPE = "default"
SYSTEM = "You are a coding agent. Work in small steps, run the tests, and say what you did."
BATCH = 500  # turns in one transaction
FULL = 160_000  # characters in view, above which a session is folded
HEAD, TAIL = 4, 40  # nodes that a fold leaves alone
SHORT, LONG = 60, 2_000  # characters of an item
SAME = ("continue", "yes", "ok, go on", "(no output)", "All tests pass.", "try again")  # said in every session
REPEATS = 0.03  # of all items


@cache
def library() -> str:
    """What agents read here: the standard library."""
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    return "\n".join(f.read_text(encoding="utf-8", errors="replace") for f in files)


def turns(number: int, long: int = LONG) -> Iterator[list[Message]]:
    """What each turn of a session adds, without end: two messages, after the first which opens it."""
    chance, text = Random(number), library()

    def say() -> str:
        if chance.random() < REPEATS:
            return chance.choice(SAME)
        size = int(SHORT * (long / SHORT) ** chance.random())
        start = chance.randrange(len(text) - size)
        return text[start : start + size]

    yield [{"role": "user", "content": f"Task {number}: {say()}"}]
    for n in range(1, sys.maxsize):
        if chance.random() < 0.3:
            yield [{"role": "assistant", "content": say()}, {"role": "user", "content": say()}]
        else:
            given = orjson.dumps({"path": f"src/{number}/{n}.py", "offset": chance.randrange(2_000)}).decode()
            call = {"id": f"call_{number}_{n}", "type": "function", "function": {"name": "read", "arguments": given}}
            yield [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": call["id"], "content": say()},
            ]


def turns_of(items: int) -> int:
    """How many turns a session of so many items has."""
    return items // 2 + 1


def name_of(number: int) -> str | None:
    """Every other session has a name; the others are known by their history alone."""
    return f"session {number}" if number % 2 else None


class Session:
    """One session on its way into the log."""

    def __init__(self, secret: bytes, number: int, scope: str = SCOPE) -> None:
        self.digests = Digests(secret, scope)
        frame, _ = decode({"model": "gpt-4o", "messages": [{"role": "system", "content": SYSTEM}]}, "openai_chat")
        self.number = number
        self.branch = self.digests.link(str(number), ("bench",))[:16]
        self.last = self.digests.link(frame.format, ("begin",))
        self.view = View(frame, (), self.digests)
        self.said = self.seq = self.size = 0
        self.chain = self.sent = ""

    def batch(self, some: Sequence[list[Message]]) -> Batch:
        """These turns as one transaction: what was said, folds where the view is full, and a call each."""
        events: list[Event] = []
        heads: list[str] = []
        opened, first = self.seq == 0, self.seq
        frame = self.digests.frame(self.view.frame)
        for turn in some:
            edits = self._take(turn, events)
            heads += {self.chain, self.sent}
            self.seq = first + len(events)
            events.append(self._call(frame, edits))
        self.seq = first + len(events)
        session = name_of(self.number) if opened else None
        versions = ((frame, self.view.frame),) if opened else ()
        return Batch(self.branch, first, tuple(events), opened, None, session, tuple(heads), versions)

    def _take(self, turn: list[Message], events: list[Event]) -> int:
        nodes = self.digests.chain(decode({"messages": turn}, "openai_chat")[1], self.last)
        events.append(Said(tuple(nodes)))
        self.last, self.said = nodes[-1].id, self.said + len(nodes)
        self.size += sum(len(n.item.text) for n in nodes)
        self.chain = self.digests.run(self.chain, (n.content for n in nodes))
        self.sent = self.digests.run(self.sent, (n.content for n in nodes))
        self.view = with_(self.view, nodes=(*self.view.nodes, *nodes))
        if self.size < FULL:
            return 0
        self._fold()
        events += self.view.edits
        count = len(self.view.edits)
        self.view = with_(self.view, edits=NO_EDITS, behind={})
        return count

    def _fold(self) -> None:
        nodes = self.view.nodes
        cuts = [c for c in self.view.cuts() if HEAD <= c <= len(nodes) - TAIL]
        if len(cuts) < 2:
            return  # a few long items
        gone: Sequence[Node] = nodes[cuts[0] : cuts[-1]]
        text = "\n".join(" ".join(n.item.text.split())[:80] for n in gone)[: FULL // 20]
        stand_in = Item("summary", "user", f"Earlier, in short ({len(gone)} items):\n{text}")
        self.view = self.view.replace(cuts[0], cuts[-1], stand_in, by="Summarize()")
        self.size = sum(len(n.item.text) for n in self.view.nodes)
        self.sent = self.digests.run("", (n.content for n in self.view.nodes))

    def _call(self, frame: str, edits: int) -> Call:
        tokens = self.size // 4
        return Call(
            branch=self.branch,
            seq=self.seq,
            frame=frame,
            model=self.view.frame.model,
            format=self.view.frame.format,
            digest=self.digests.link(frame, (self.sent,)),
            said=self.said,
            predicted=tokens,
            limit=191_808,
            exact=True,
            cached=0 if edits else tokens,
        )


async def fill(path: Path, sessions: int, items: int) -> float:
    """A store with so many sessions of so many items each; seconds it took, 0 if it was there."""
    if path.exists():
        return 0.0
    making = path.with_suffix(".part")
    store = SQLite(making)
    took = await put(store, sessions, items)
    await store.close()
    making.rename(path)
    return took


async def put(store: Store, sessions: int, items: int, scope: str = SCOPE, long: int = LONG) -> float:
    """So many sessions of so many items each into a store; seconds it took."""
    begun, done, took = time.perf_counter(), 0, 0.0
    for number in range(1, sessions + 1):
        session, coming = Session(store.secret, number, scope), islice(turns(number, long), turns_of(items))
        while some := list(islice(coming, BATCH)):
            await store.write(scope, session.batch(some))
        done += session.said
        took = time.perf_counter() - begun
        print(f"\r{done:,} items, {took:.0f} s ", end="", file=sys.stderr)
    print(file=sys.stderr)
    return took
