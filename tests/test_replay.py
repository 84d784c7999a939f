"""A branch in memory is what a replay of its log gives, whatever happened to it."""

from contextlib import suppress
from dataclasses import replace as with_
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import cases
from clew import Budget, Engine, Request, SQLite
from clew.core.items import Digests, Edit, Item, Node, Scope
from clew.core.view import View
from clew.errors import NotFound, OverBudget
from clew.store.records import Batch, Began, Call, Pin, Revert, Said, Usage
from clew.store.trace import Trace, apply, bare
from clew.wire.convert import convert
from test_sessions import message

ACTS = ("say", "say", "change", "remove", "compact", "undo", "undo", "pin", "unpin", "report", "switch", "resume")
WINDOWS = (2_500, 20_000)  # in the one all must be folded, in the other all may be unfolded again
STEPS = st.tuples(st.sampled_from(ACTS), st.integers(0, 999))


class Witness(SQLite):
    """A store that also keeps what each branch came to, as it was told."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.told: dict[str, Trace] = {}

    async def write(self, scope: Scope, batch: Batch) -> None:
        await super().write(scope, batch)
        if batch.opened:
            past = await self.load(scope, batch.fork.parent, batch.fork.seq) if batch.fork else Trace(batch.branch)
            self.told[batch.branch] = with_(past, branch=batch.branch, session=batch.session)
        for event in batch.events:
            apply(self.told[batch.branch], event)
            if isinstance(event, Edit):
                assert self.told[batch.branch].held.isdisjoint(event.old), "what is held is in view"


class Client:
    """A client that does what it is told, on an engine that remembers."""

    def __init__(self, store: Witness) -> None:
        self.store = store
        self.engine = Engine(store, Budget(WINDOWS[0], reserve=400))
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all pages."}]
        self.format, self.turns = "openai_chat", 0

    async def send(self) -> View:
        body = convert({"model": "gpt-4o", "messages": self.messages}, self.format)
        return await self.engine.prepare(Request(body, self.format, session="run"))

    async def act(self, what: str, n: int) -> View:
        """Do one thing, and send what there is then."""
        view = await self.send()
        match what:
            case "say":
                for _ in range(1 + n % 3):
                    self.messages += message(self.turns)
                    self.turns += 1
            case "change":
                self.messages[0] = {"role": "user", "content": f"Read all pages, {n}."}
            case "remove":
                del self.messages[1:5]
            case "compact":
                await self.engine.compact(view)
            case "undo":
                with suppress(NotFound, OverBudget):
                    await self.engine.undo(view.scope, view.branch)
            case "pin" | "unpin":
                with suppress(OverBudget):
                    await self.engine.pin(view, view.nodes[n % len(view.nodes)].id, off=what == "unpin")
            case "report":
                await self.engine.observe(view, {"prompt_tokens": n, "completion_tokens": 1})
            case "switch":
                self.format = ("openai_chat", "anthropic", "gemini")[n % 3]
            case "resume":
                self.engine = Engine(self.store, Budget(WINDOWS[n % 2], reserve=400))
        return await self.send()


@settings(max_examples=cases(15, dear=True))
@given(steps=st.lists(STEPS, max_size=14))
async def test_a_branch_in_memory_is_what_a_replay_of_its_log_gives(steps: list[tuple[str, int]]) -> None:
    store = Witness()
    client = Client(store)
    early: dict[str, Trace] = {}  # of each branch, as somebody else knew it first
    for what, n in [("say", 2), *steps]:
        view = await client.act(what, n)
        live = client.engine._turns.branches.get(view.scope, view.branch)
        replayed = await store.load(view.scope, view.branch)
        assert live is not None
        assert live.trace == replayed == store.told[view.branch]
        early.setdefault(view.branch, replayed)
    for branch, trace in early.items():
        await store.catch_up("default", trace)
        assert trace == await store.load("default", branch)
    await store.close()


def chained(*texts: str) -> list[Node]:
    return Digests().chain(Item("text", "user", text) for text in texts)


def test_what_an_undo_brought_back_is_held_until_it_is_folded_again() -> None:
    nodes, trace = chained("a", "b", "c"), Trace("branch")
    ids = tuple(n.id for n in nodes)
    first, second = chained("a and b", "b again")
    folds = Edit("test", ids[:2], (first,)), Edit("test", ids[1:2], (second,))
    apply(trace, Said(tuple(nodes)), Began("child", "compaction", "auto"), folds[0])
    apply(trace, Revert((first.id,), held=ids[:2], sessions=("child",)))
    assert (trace.held, trace.edits, trace.undone) == ({*ids[:2]}, [], [bare(folds[0])])
    apply(trace, folds[1])
    assert (trace.held, trace.edits) == ({ids[0]}, [bare(folds[1])])


@pytest.mark.parametrize("off", [False, True])
def test_a_pin_holds_until_it_is_taken_away(off: bool) -> None:
    trace = Trace("branch")
    apply(trace, Pin(("a", "b")), Pin(("b",), off))
    assert trace.pinned == ({"a"} if off else {"a", "b"})
    assert trace.seq == 2


def a_call(seq: int, said: int) -> Call:
    return Call("a branch", seq, "frame", "gpt-4o", "openai_chat", "digest", said, 900, 5_000, False)


def test_only_what_the_last_call_came_to_says_how_large_a_branch_is() -> None:
    trace = Trace("a branch")
    apply(trace, a_call(0, 1), a_call(1, 3), Usage(0, {"input": 700}))
    assert trace.reported == 0, "the answer to an earlier call came late"
    apply(trace, Usage(1, {"input": 900}))
    assert trace.reported == 900


def test_what_happens_to_a_copy_does_not_happen_to_the_branch() -> None:
    nodes = Digests().chain([Item("text", "user", text) for text in ("one", "two", "three")])
    made = Digests().chain([Item("summary", "user", text) for text in ("a summary", "another")])
    trace = Trace("a branch")
    first = Edit("test", (nodes[0].id,), (made[0],), {"call": "c1"})
    apply(trace, Said(tuple(nodes)), Began("a session", "compaction", "auto"), first)
    before, tried = repr(trace), trace.copy()
    apply(tried, Edit("test", (nodes[1].id,), (made[1],), {"call": "c1"}), Pin((nodes[2].id,)), a_call(5, 3))
    apply(tried, Revert((made[0].id,), (nodes[0].id,), ("a session",)))
    assert repr(trace) == before
    assert repr(tried) != before
