"""What every store must do, whatever it lies in: `check_store` holds one against the promises of its protocol."""

from collections.abc import Awaitable

from clew.core.items import Digests, Edit, Frame, Item, Node
from clew.errors import ClewError, Conflict, NotFound
from clew.store.protocol import Store
from clew.store.records import ABSENT, Batch, Began, Call, ClientEdit, Event, Fork, Pin, Revert, Said, Usage
from clew.store.rows import row_of
from clew.store.trace import Trace, apply

HERE, OTHER_SCOPE = "here", "elsewhere"  # scopes
FRAME = Frame("openai_chat", "gpt-4o", body={"model": "gpt-4o"})


async def check_store(store: Store) -> None:
    """Write to an empty store, ask it everything, and hold the answers against the promises of `Store`."""
    talk = Talk(store)
    await talk.open()
    await _check_order(talk)
    await _check_replay(talk)
    await _check_reading(talk)
    await _check_finding(talk)
    await _check_forks(talk)
    await _check_names(talk)
    await _check_turns(talk)
    await _check_scopes(talk)


class Talk:
    """A conversation on a branch, as it was told to the store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.digests = Digests(store.secret, HERE)
        texts = ("a needle in the hay", "hay and more hay", "a third word", "and the last")
        self.nodes = tuple(self.digests.chain(Item("text", "user", text) for text in texts))
        self.ids = tuple(node.id for node in self.nodes)
        self.stand_in = self.made("two were here", self.ids[:2])
        self.whole = self.made("all were here", (self.stand_in.id, self.ids[2]))
        self.frame = self.digests.frame(FRAME)
        self.chain = self.digests.run("", (node.content for node in self.nodes[:3]))
        self.events: list[Event] = []

    def made(self, text: str, old: tuple[str, ...]) -> Node:
        """A stand-in for these."""
        item = Item("summary", "user", text)
        content = self.digests.content(item)
        return Node(self.digests.link(content, old), content, item)

    def call(self) -> Call:
        return Call("b", len(self.events), self.frame, "gpt-4o", "openai_chat", "digest", 3, 10, 100, True)

    async def open(self) -> None:
        """Begin the branch, with nothing that could be recognised but what was said."""
        self.events = [Said(self.nodes[:3])]
        self.events.append(self.call())
        batch = Batch("b", 0, tuple(self.events), opened=True, heads=(self.chain,), frames=((self.frame, FRAME),))
        await self.store.write(HERE, batch)

    async def go_on(self, *events: Event) -> None:
        await self.store.write(HERE, Batch("b", len(self.events), events))
        self.events += events

    def told(self, until: int | None = None) -> Trace:
        """What the events come to."""
        trace = Trace("b")
        apply(trace, *self.events[: None if until is None else until + 1])
        return trace


async def refused(act: Awaitable[object], error: type[ClewError], why: str) -> None:
    """It raises this error."""
    try:
        await act
    except error:
        return
    raise AssertionError(f"{why}: no {error.__name__}")


def _facts(trace: Trace) -> dict[str, object]:
    """What a trace has, without the bodies of stand-ins."""
    fields = {name: getattr(trace, name) for name in Trace.__dataclass_fields__ if name not in ("made", "undone")}
    edits = [(e.by, e.old, [(n.id, n.content) for n in e.new], dict(e.evidence), e.spent) for e in trace.edits]
    return fields | {"edits": edits}


async def _check_order(talk: Talk) -> None:
    """A batch goes where its branch ends, or nowhere."""
    store, more = talk.store, (Said(talk.nodes[3:]),)
    end = len(talk.events)
    for seq, why in ((end - 1, "an event is written over"), (end + 1, "a gap is left"), (0, "written twice")):
        await refused(store.write(HERE, Batch("b", seq, more)), Conflict, why)
    await refused(store.write(HERE, Batch("b", 0, more, opened=True)), Conflict, "a branch is opened twice")
    await refused(store.write(HERE, Batch("nobody", 0, more)), Conflict, "a branch was never opened")
    orphan = Batch("child", 1, more, opened=True, fork=Fork("nobody", 0))
    await refused(store.write(HERE, orphan), Conflict, "a fork of no branch")
    assert [b.id for b in await store.branches(HERE)] == ["b"], "what was refused is there"
    assert len(await store.events(HERE, "b")) == end, "what was refused is there"
    await refused(store.nodes(HERE, talk.ids), Conflict, "a node of what was refused is there")


async def _check_replay(talk: Talk) -> None:
    """What is loaded is what was written, and what is caught up with is what is loaded."""
    store, ids = talk.store, talk.ids
    early = await store.load(HERE, "b")
    await talk.go_on(
        Usage(1, {"input": 12}, 0.5), Said(talk.nodes[3:]), Pin((ids[3],)), Began("s", "compaction", "auto")
    )
    await talk.go_on(Edit("test", ids[:2], (talk.stand_in,), {"why": ["full"]}, 3))
    await talk.go_on(Edit("test", (talk.stand_in.id, ids[2]), (talk.whole,)), ClientEdit(3, 4, talk.nodes[3:]))
    kinds = {"usage", "said", "pin", "session", "edit", "client"}
    assert await store.catch_up(HERE, early) == kinds, "the kinds of what others wrote"
    assert await store.catch_up(HERE, early) == set(), "nothing is new twice"
    for until in (None, 0, len(talk.events) - 3):
        assert _facts(await store.load(HERE, "b", until)) == _facts(talk.told(until)), f"loaded until {until}"
    loaded = await store.load(HERE, "b")
    assert _facts(early) == _facts(loaded), "caught up with"
    assert all(n.item in (ABSENT, talk.stand_in.item, talk.whole.item) for e in loaded.edits for n in e.new)
    rows = [row_of(event) for event in talk.events]
    found = await store.events(HERE, "b")
    assert [h.seq for h in found] == list(range(len(rows))), "events in their order"
    assert [(h.row.kind, list(h.row.old), list(h.row.new)) for h in found] == [
        (row.kind, list(row.old), list(row.new)) for row in rows
    ], "events as they were written"
    await refused(store.load(HERE, "nobody"), NotFound, "a branch that is not there is loaded")
    await refused(store.catch_up(HERE, Trace("nobody")), NotFound, "a branch that is not there is caught up with")


async def _check_reading(talk: Talk) -> None:
    """Bodies, frames, and what is behind a stand-in."""
    store, ids = talk.store, talk.ids
    wanted = [*talk.nodes, talk.stand_in]
    assert await store.nodes(HERE, [n.id for n in wanted]) == {n.id: n for n in wanted}, "nodes as they were written"
    await refused(store.nodes(HERE, [ids[0], "0" * 32]), Conflict, "a node that is not there")
    assert await store.frame(HERE, talk.frame) == FRAME, "a frame as it was written"
    await refused(store.frame(HERE, "0" * 32), NotFound, "a frame that is not there")
    for id in (talk.whole.id, talk.digests.handle((talk.stand_in.id, ids[2]))):
        assert await store.originals(HERE, id) == list(talk.nodes[:3]), "what is behind a stand-in of a stand-in"
    assert await store.originals(HERE, ids[0]) == [talk.nodes[0]], "what was said is behind itself"
    await refused(store.originals(HERE, "0" * 32), Conflict, "what was never said is behind an id")
    [call] = await store.calls(HERE, "b")
    assert (call.seq, call.frame, call.said, call.usage) == (1, talk.frame, 3, {"input": 12}), "a call with its report"


async def _check_finding(talk: Talk) -> None:
    """By what was said: chains, contents, words, the beginnings of ids."""
    store, contents = talk.store, [n.content for n in talk.nodes]
    [found] = await store.find(HERE, ["0" * 32, talk.chain])
    assert (found.branch, found.seq, found.known) == ("b", 1, 2), "a history by its chain"
    assert await store.find(HERE, ["0" * 32]) == [], "a history nobody had"
    assert (await store.alike(HERE, contents))[:1] == ["b"], "a history by most of its contents"
    assert await store.alike(HERE, ["0" * 32]) == [], "a history like none"
    assert await store.search(HERE, "needle", None, 9) == contents[:1], "a word"
    assert await store.search(HERE, "need", contents, 9) == contents[:1], "the beginning of a word"
    assert await store.search(HERE, "needle", contents[1:], 9) == [], "a word that others have"
    assert set(await store.search(HERE, "hay needle", contents, 9)) == set(contents[:2]), "either of two words"
    assert len(await store.search(HERE, "hay", contents, 1)) == 1, "no more than were asked for"
    assert await store.search(HERE, '"; -- (', None, 9) == [], "a text is no query"
    assert await store.places(HERE, contents[:1]) == [(talk.ids[0], "b")], "where something was said"
    assert await store.resolve(HERE, talk.ids[0][:10]) == [talk.ids[0]], "a node by the beginning of its id"
    handle = talk.digests.handle(talk.ids[:2])
    assert await store.resolve(HERE, handle[:10]) == [handle], "a span by the beginning of its handle"
    assert await store.purged(HERE, talk.ids[0][:10]) is None, "nothing was purged"


async def _check_forks(talk: Talk) -> None:
    """A fork has the events of its parent up to where it left, and what is undone in it is not undone there."""
    store, seq = talk.store, len(talk.events)
    undo = Revert((talk.stand_in.id, talk.whole.id), held=talk.ids[:3], sessions=("s",))
    batch = Batch("c", seq, (undo,), opened=True, fork=Fork("b", seq - 1), session="named")
    await store.write(HERE, batch)
    held = await store.holders(HERE, talk.ids[:1])
    assert sorted(held) == [(talk.ids[0], "b"), (talk.ids[0], "c")], "what was said, on a fork, too"
    past = talk.told()
    apply(past, undo)
    loaded = await store.load(HERE, "c")
    assert loaded.session == "named", "a branch knows its name"
    past.branch, past.session = "c", "named"
    assert _facts(loaded) == _facts(past), "a fork replayed"
    assert _facts(await store.load(HERE, "b")) == _facts(talk.told()), "its parent, as it was"
    assert len(await store.events(HERE, "c")) == 1, "its own events"
    assert [c.seq for c in await store.calls(HERE, "c")] == [1], "calls of its past"
    assert await store.ancestry(HERE, "c") == [], "it has its parent's events"


async def _check_names(talk: Talk) -> None:
    """Sessions, labels, and what is kept by name."""
    store = talk.store
    assert await store.session(HERE, "named") == "c", "a branch by its name"
    assert await store.session(HERE, "nobody") is None, "a name nobody has"
    assert {s.id for s in await store.sessions(HERE, "b")} == {"b", "s"}, "the sessions of a branch"
    stood = await store.state(HERE), await store.state(HERE, "b")
    assert stood == (await store.state(HERE), await store.state(HERE, "b")), "nothing happened"
    await store.label(HERE, "c", tags=("x", "y"))
    await store.label(HERE, "c", archived=True)
    [labelled] = await store.sessions(HERE, "c")
    assert labelled.tags == ("x", "y"), "tags stay where only the other label is given"
    assert labelled.archived, "out of the way"
    for value in ({"n": 1}, {"n": 2}):
        await store.learn(HERE, "kind", "name", value)
    assert await store.learned(HERE, "kind") == {"name": {"n": 2}}, "the newest value"
    learned = (("kind", "name", {"n": 3}), ("kind", "more", {"n": 4}))
    seq = len(await store.events(HERE, "b"))
    await store.write(HERE, Batch("b", seq, (Pin(talk.ids[:1]),), learned=learned))
    talk.events.append(Pin(talk.ids[:1]))
    assert await store.state(HERE, "b") != stood[1], "a pin changes no sum, but what is seen"
    late = Batch("b", seq, (Pin(talk.ids[:1]),), learned=(("kind", "late", {}),))
    await refused(store.write(HERE, late), Conflict, "written twice")
    assert await store.learned(HERE, "kind") == {"name": {"n": 3}, "more": {"n": 4}}, "what a batch taught"
    assert await store.learned(HERE, "other") == {}, "values of one kind"


async def _check_turns(talk: Talk) -> None:
    """A turn can be had, and had again."""
    async with talk.store.alone(HERE, "b"):
        pass
    async with talk.store.alone(HERE, "b"):
        pass


async def _check_scopes(talk: Talk) -> None:
    """Nothing of one scope is in another."""
    store, contents = talk.store, [n.content for n in talk.nodes]
    assert await store.branches(OTHER_SCOPE) == [], "branches of another scope"
    assert await store.sessions(OTHER_SCOPE) == [], "sessions of another scope"
    assert await store.find(OTHER_SCOPE, [talk.chain]) == [], "histories of another scope"
    assert await store.alike(OTHER_SCOPE, contents) == [], "contents of another scope"
    assert await store.session(OTHER_SCOPE, "named") is None, "a name in another scope"
    assert await store.search(OTHER_SCOPE, "needle", None, 9) == [], "words of another scope"
    assert await store.places(OTHER_SCOPE, contents) == [], "places in another scope"
    assert await store.holders(OTHER_SCOPE, talk.ids) == [], "branches of another scope by what they say"
    assert await store.resolve(OTHER_SCOPE, talk.ids[0][:10]) == [], "ids of another scope"
    assert await store.events(OTHER_SCOPE, "b") == [], "events of another scope"
    assert await store.learned(OTHER_SCOPE, "kind") == {}, "what another scope learned"
    await refused(store.load(OTHER_SCOPE, "b"), NotFound, "a branch of another scope")
    await refused(store.frame(OTHER_SCOPE, talk.frame), NotFound, "a frame of another scope")
    await refused(store.nodes(OTHER_SCOPE, talk.ids), Conflict, "nodes of another scope")
    await refused(
        store.write(OTHER_SCOPE, Batch("b", len(talk.events), (Pin(talk.ids),))), Conflict, "a foreign branch"
    )
