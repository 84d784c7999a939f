"""A branch loaded from a checkpoint is the branch that its events make, whatever happened on it."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from random import Random
from typing import TypeVar

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amounts import cases
from clew import open_store
from clew.core.bridge import run
from clew.core.items import PINS, Digests, Edit, Item, Node
from clew.store import Batch, Call, ClientEdit, Fork, Pin, Said, Trace, Usage, apply
from clew.store.database import Database
from clew.store.loading import ASKED, FOREVER, keep_checkpoint, make_checkpoint, replay
from clew.store.places import is_url
from clew.store.records import Began, Event, Revert, Switch
from clew.store.sql import SQLStore

T = TypeVar("T")

HERE = "here"
FORMATS = ("openai_chat", "anthropic", "openai_responses")


class Talk:
    """Branches on which anything may happen in any order."""

    def __init__(self, seed: int, store: SQLStore) -> None:
        self.chance, self.store = Random(seed), store
        self.digests = Digests(store.secret, HERE)
        self.prefix = self.digests.link(str(seed), ("branch",))[:12]
        self.branches: dict[str, Trace] = {}
        self.said = self.opened = 0

    def nodes(self, most: int) -> tuple[Node, ...]:
        made = []
        for _ in range(self.chance.randint(1, most)):
            self.said += 1
            item = Item("text", "user", f"{self.prefix} {self.said % 7}")  # some say the same
            content = self.digests.content(item)
            made.append(Node(self.digests.link(content, (self.prefix, str(self.said))), content, item))
        return tuple(made)

    def known(self, trace: Trace, most: int = 3) -> tuple[str, ...]:
        """Some ids of a branch: of what was said, and of stand-ins."""
        ids = [p.id for p in trace.said] + [n.id for e in trace.edits for n in e.stand_ins]
        return tuple(self.chance.sample(ids, min(len(ids), self.chance.randint(1, most))))

    def event(self, trace: Trace) -> Event:
        """Anything that can happen next."""
        chance, known = self.chance, self.known(trace)
        match chance.choice(
            ("said", "said", "client", "switch", "began", "edit", "edit", "pin", "revert", "call", "usage")
        ):
            case "client" | "switch" as what:
                start, stop = sorted(chance.randint(0, len(trace.said)) for _ in range(2))
                new = self.nodes(4)
                alias = dict(zip((n.id for n in new), known, strict=False)) if chance.random() < 0.5 else {}
                to = Switch(chance.choice(FORMATS), known[:1], known[1:])
                return ClientEdit(start, stop, new, alias, to if what == "switch" else None)
            case "began":
                self.said += 1
                return Began(f"{self.prefix}s{self.said}", "compaction", "auto")
            case "edit" if known:
                new = self.nodes(2)
                evidence = chance.choice(
                    ({}, {"call": "call_1"}, {PINS: [known[0]] * len(new)}, {"draft": "words", "n": 1})
                )
                moved = tuple(n for e in trace.edits[-1:] for n in e.new if n.id in known)
                return Edit("test", known, new + moved, evidence, chance.randint(0, 9))
            case "pin" if known:
                return Pin(known, chance.random() < 0.4)
            case "revert" if trace.edits:
                gone = tuple(n.id for n in chance.choice(trace.edits).stand_ins)
                sessions = tuple(f.session for f in trace.folds[-1:]) if chance.random() < 0.6 else ()
                return Revert(gone, known[:2], sessions)
            case "call":
                size, frame = len(trace.said), self.digests.link("frame", (str(chance.randint(0, 2)),))
                return Call(trace.branch, trace.seq, frame, "m", chance.choice(FORMATS), frame, size, 9, 99, True)
            case "usage" if trace.calls:
                return Usage(chance.choice(trace.calls[-2:])[0], {"input": chance.randint(0, 99)})
        return Said(self.nodes(5))

    async def go_on(self, branch: str) -> None:
        """A turn of some events."""
        trace, events, first = self.branches[branch], [], self.branches[branch].seq
        for _ in range(self.chance.randint(1, 4)):
            events.append(self.event(trace))
            apply(trace, events[-1])
        await self.store.write(HERE, Batch(branch, first, tuple(events)))

    async def open(self, parent: str | None) -> str:
        self.opened += 1
        branch = f"{self.prefix}{self.opened}"
        trace, fork, opening = Trace(branch), None, Said(self.nodes(3))
        if parent is not None:
            fork = Fork(parent, self.chance.randrange(self.branches[parent].seq))
            trace = await self.store.load(HERE, parent, fork.seq)
            trace.branch = branch
        batch = Batch(branch, trace.seq, (opening,), opened=True, fork=fork)
        await self.store.write(HERE, batch)
        apply(trace, opening)
        self.branches[branch] = trace
        return branch

    async def hold(self, left: Callable[[int], bool] = lambda _: True) -> None:
        """Loaded from checkpoints, every branch is at every event what it is without."""
        for branch, trace in self.branches.items():
            for until in (None, *filter(left, range(-1, trace.seq + 1))):
                loaded = await self.store.load(HERE, branch, until)
                told = await within(self.store, partial(_replayed, branch=branch, until=until))
                assert loaded == told, (branch, until)
                assert list(loaded.made) == list(told.made)


def _replayed(db: Database, branch: str, until: int | None) -> Trace:
    return replay(db, HERE, branch, None, FOREVER if until is None else until)


async def within(store: SQLStore, act: Callable[[Database], T]) -> T:
    """Do something to the store's own connection, in one transaction."""

    def done(db: Database) -> T:
        with db.transaction():
            return act(db)

    return await store._write(done)


async def problems(store: SQLStore) -> list[str]:
    return [p.what for p in await store.check(deep=True) if "frame" not in p.what]  # there are none here


@pytest.mark.few(1)
@settings(max_examples=cases(20, dear=True), suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**32),
    acts=st.lists(st.sampled_from("go go go go check check fork purge".split()), max_size=25),
)
def test_loading_from_a_checkpoint_is_replaying_all(place: str, seed: int, acts: list[str]) -> None:
    async def play() -> None:
        store = open_store(place)
        talk = Talk(seed, store)
        if any(b.id.startswith(talk.prefix) for b in await store.branches(HERE)):
            await store.close()
            return  # the same once more
        await talk.open(None)
        for act in acts:
            branch = talk.chance.choice([*talk.branches])
            match act:
                case "fork":
                    await talk.open(branch)
                case "check":
                    await within(store, partial(make_checkpoint, scope=HERE, branch=branch))
                case "purge" if len(talk.branches) > 1:
                    await talk.hold(lambda until: until % 5 == 0)
                    await store.purge(HERE, [branch], "test")
                    del talk.branches[branch]
                case _:
                    await talk.go_on(branch)
        few = is_url(place)  # each question is a trip to the server
        await talk.hold((lambda until: until % 4 == 0) if few else (lambda _: True))
        assert await problems(store) == []
        await store.close()

    run(play())


async def long(store: SQLStore, events: int, branch: str = "b") -> Talk:
    """A branch with so many events."""
    talk = Talk(1, store)
    trace, batch = Trace(branch), []
    while trace.seq < events:
        event = talk.event(trace) if trace.seq % 10 == 9 else Said(talk.nodes(2))
        batch.append(event)
        apply(trace, event)
        if len(batch) == 50:
            first = trace.seq - len(batch)
            await store.write(HERE, Batch(branch, first, tuple(batch), opened=first == 0))
            batch = []
    talk.branches[branch] = trace
    return talk


def ask(place: str, statement: str, *given: object) -> list[tuple[object, ...]]:
    """Ask or change the store behind its back."""
    with closing(psycopg.connect(place) if is_url(place) else sqlite3.connect(place)) as db:
        if is_url(place):
            db.execute("set search_path to clew")
            statement = statement.replace("?", "%s")
        done = db.execute(statement, given)
        found = done.fetchall() if done.description else []
        db.commit()
        return found


@pytest.mark.few(1)
async def test_a_long_branch_gets_one_as_it_grows(store: SQLStore, place: str) -> None:
    talk = await long(store, ASKED - 50)
    assert ask(place, "select count(*) from checkpoint") == [(0,)]
    trace = talk.branches["b"]
    for size in (100, ASKED - 50, 100):
        said = tuple(Said(talk.nodes(1)) for _ in range(size))
        await store.write(HERE, Batch("b", trace.seq, said))
        apply(trace, *said)
    assert ask(place, "select branch, seq from checkpoint") == [("b", 2 * ASKED)]
    await talk.hold(lambda until: until % 500 == 0)
    await within(store, lambda db: keep_checkpoint(db, HERE, "b", 2 * ASKED - 1, 2 * ASKED + 1))
    assert ask(place, "select branch, seq from checkpoint") == [("b", 2 * ASKED)], "too soon"
    fork = Batch("child", trace.seq, (Said(talk.nodes(1)),), opened=True, fork=Fork("b", trace.seq - 1))
    await store.write(HERE, fork)
    assert len((await store.load(HERE, "child")).said) == len(trace.said) + 1, "from its parent's"


@pytest.mark.few(1)
@pytest.mark.parametrize("change", ["set seq = seq - 3", "set version = 77", "set data = ?"])
async def test_one_that_is_wrong_is_not_believed_and_mended(store: SQLStore, place: str, change: str) -> None:
    talk = await long(store, ASKED + 50)
    [(data,)] = ask(place, "select data from checkpoint")
    damaged = bytearray(data)  # type: ignore[call-overload]
    damaged[len(damaged) // 2] ^= 1
    ask(place, f"update checkpoint {change}", *([bytes(damaged)] if "?" in change else []))
    await talk.hold(lambda until: until % 250 == 0)
    assert await problems(store) == ([] if "version" in change else ["checkpoints that do not match their events"])
    await store.repair()
    assert await problems(store) == []
    assert ask(place, "select branch, version from checkpoint") == [("b", 1)]
    await talk.hold(lambda until: until % 250 == 0)


async def test_one_holds_no_words_and_goes_with_its_branch(store: SQLStore, place: str) -> None:
    talk = await long(store, ASKED + 50)
    [(data,)] = ask(place, "select data from checkpoint")
    assert talk.prefix.encode() not in bytes(data)  # type: ignore[call-overload]
    await store.purge(HERE, ["b"], "test")
    assert ask(place, "select count(*) from checkpoint") == [(0,)]
