"""Branches in memory: the index finds what comparing with all of them would; bytes bound them."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clew import Budget, Engine, Request, SQLite
from clew.core.items import Digests, Frame
from clew.core.view import View
from clew.engine.branch import Branch
from clew.engine.branches import Branches
from clew.engine.settings import Settings
from clew.recognition.last_body import Body, Known
from clew.store.trace import Trace

DIGESTS = Digests(b"s" * 32, "here")
SCOPE = "here"

words = st.sampled_from(["hello", "go on", "x" * 300, "<reminder>" + "r" * 5_000, 'a "quoted" word', "ä" * 40, ""])
messages = st.lists(words, min_size=1, max_size=6)
systems = st.sampled_from(["", "be brief", "it is 9:59", "it is 10:00"])


def body(said: list[str], system: str) -> dict[str, Any]:
    roles = ("user", "assistant")
    told = [{"role": roles[i % 2], "content": text} for i, text in enumerate(said)]
    return {"model": "m", "messages": ([{"role": "system", "content": system}] if system else []) + told}


def written(given: dict[str, Any], as_bytes: bool, spaced: bool) -> dict[str, Any] | bytes:
    return json.dumps(given, separators=None if spaced else (",", ":")).encode() if as_bytes else given


def branch(name: str, sent: dict[str, Any] | bytes) -> Branch:
    known = Known("openai_chat")
    incoming = known.read(Body(sent))
    assert incoming
    items = incoming.flat()
    known.take(incoming, [DIGESTS.content(i) for i in items], DIGESTS, len(items), unfolded=False)
    return Branch(Trace(name), known, View(incoming.frame, (), DIGESTS))


@given(
    known=st.lists(st.tuples(messages, systems, st.booleans(), st.booleans()), max_size=14),
    at=st.integers(0, 13),
    cut=st.integers(0, 6),
    more=messages,
    system=systems,
    as_bytes=st.booleans(),
    spaced=st.booleans(),
)
def test_the_index_finds_what_comparing_with_all_would(
    known: list[tuple[list[str], str, bool, bool]],
    at: int,
    cut: int,
    more: list[str],
    system: str,
    as_bytes: bool,
    spaced: bool,
) -> None:
    all_of_them = [branch(f"b{n}", written(body(k[0], k[1]), *k[2:])) for n, k in enumerate(known)]
    branches = Branches(1 << 30)
    for one in all_of_them:
        branches.keep(SCOPE, one)
    begun = known[at % len(known)][0][:cut] if known else []
    sent = written(body([*begun, *more], system), as_bytes, spaced)
    found = [branches.best(SCOPE, None, Body(sent)), branches.closest(SCOPE, None, Body(sent))]
    most = max((b.body.close_likeness(Body(sent)) for b in all_of_them), default=0)
    # Bytes may tell too much: a short history may stand anywhere in a body. Whoever reads it there finds out.
    assert not most or most in [one.body.close_likeness(Body(sent)) for one in found if one]


@given(st.lists(st.tuples(st.integers(0, 5), messages), max_size=30), st.integers(0, 60_000))
def test_the_bytes_in_memory_are_bounded_and_none_is_found_that_went(
    turns: list[tuple[int, list[str]]], most: int
) -> None:
    branches = Branches(most)
    last: dict[str, Branch] = {}
    for number, said in turns:
        one = branch(f"b{number}", json.dumps(body(said, "")).encode())
        last[one.trace.branch] = one
        branches.keep(SCOPE, one)
        here = [b for b in last.values() if branches.get(SCOPE, b.trace.branch) is b]
        assert sum(b.bytes for b in here) <= most or here == [one]
        assert not most or one in here
        for other in last.values():
            found = branches.best(SCOPE, None, Body(other.body.raw))
            assert found is None or found in here
    for one in last.values():
        branches.forget(SCOPE, one)
        assert one.stale
    assert branches.best(SCOPE, None, Body(json.dumps(body(["hello"], "")).encode())) is None


async def test_a_conversation_that_went_from_memory_goes_on() -> None:
    engine = Engine(SQLite(":memory:"), Budget(window=100_000), Settings(memory=1))
    said: dict[int, list[str]] = {n: [f"question {n}"] for n in range(4)}
    first = {n: await engine.prepare(Request(json.dumps(body(said[n], "")).encode())) for n in said}
    for n, texts in said.items():
        again = await engine.prepare(Request(json.dumps(body([*texts, "an answer", "and then?"], "")).encode()))
        assert again.branch == first[n].branch
    assert isinstance(first[0].frame, Frame)
