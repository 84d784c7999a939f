"""What is purged is gone, from the log and from the bytes of its file; everything else is as it was."""

import asyncio
import gc
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from time import time as now
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import old_stores
from amounts import cases
from clew import Budget, Engine, Request, open_store
from clew.core.items import Node
from clew.engine.engine import body
from clew.engine.settings import Settings
from clew.errors import NotFound, Purged
from clew.facts.finding import classify
from clew.store.notes import unpack_note
from clew.store.packing import unpack
from clew.store.places import is_url
from clew.store.records import Origin
from clew.store.sql import SQLStore
from clew.store.upkeep.purge import Descent, Heir, inherit
from clew.testing import conversation
from clew.text.words import parts
from clew.wire import check
from processes import Begun

WRITER = """
import asyncio, sys, clew
async def main(path):
    engine = clew.Engine(clew.open_store(path), clew.Budget(window=1500, reserve=100))
    talks = [[], []]
    for n in range(10_000):
        messages = talks[n % 2]
        messages += [{"role": "user", "content": f"{n} " * 50}, {"role": "assistant", "content": f"{n} again"}]
        view = await engine.prepare(clew.Request({"model": "gpt-4o", "messages": messages[:-1]}))
        print(view.branch, n, flush=True)
asyncio.run(main(sys.argv[1]))
"""
Message = dict[str, Any]
SMALL = Budget(window=1_500, reserve=100)


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def call(id: str, arguments: str) -> Message:
    function = {"name": "bash", "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def result(id: str, text: str) -> Message:
    return {"role": "tool", "tool_call_id": id, "content": text}


def raw(place: str) -> bytes:
    """All bytes of a store, those beside it included; a server's write-ahead log apart, which is not ours."""
    if not is_url(place):
        return b"".join(p.read_bytes() for p in sorted(Path(place).parent.glob(f"{Path(place).name}*")))
    [folder], [number] = ask(
        place, "show data_directory", "select oid from pg_database where datname = current_database()"
    )
    ask(place, "checkpoint")
    files = sorted(Path(folder, "base", str(number)).iterdir())
    # The server makes and removes this one at any time; it has names of tables, and no rows.
    return b"".join(p.read_bytes() for p in files if not p.name.startswith("pg_internal.init"))


def terms(place: str) -> set[str]:
    """Every word in the search index; in SQLite they lie there without the letters they share with the word before."""
    if is_url(place):
        return set(*ask(place, "select unnest(tsvector_to_array(words)) from clew.body_text"))
    words = "create virtual table temp.words using fts5vocab(main, body_text, row)"
    return set(ask(place, words, "select term from words")[1])


def bodies(place: str, word: str) -> list[bytes]:
    """How bodies that hold a word lie on disk."""
    found = f"select rowid from body_text where body_text match '{word}'"
    if is_url(place):
        found = f"select body from clew.body_text where words @@ '{word}'"
    return ask(place, f"select data from {'clew.' * is_url(place)}body where id in ({found})")[0]


def ask(place: str, *statements: str) -> list[list[Any]]:
    """Behind a store's back: the first column of what each statement gives."""
    found = []
    with closing(psycopg.connect(place, autocommit=True) if is_url(place) else sqlite3.connect(place)) as db:
        for statement in statements:
            rows = db.execute(statement)
            found.append([row[0] for row in rows] if rows.description else [])
    return found


def noise(seed: int, count: int) -> str:
    """Words that nothing else holds, so that they compress to bytes of their own."""
    random = Random(seed)
    return " ".join(f"{random.getrandbits(40):x}" for _ in range(count))


async def turns(engine: Engine, messages: Sequence[Message], session: str | None = None, known: int = 0) -> str:
    """Say a conversation turn by turn, the first `known` messages at once; the branch it is on."""
    branch = ""
    for n, message in enumerate(messages, 1):
        if message["role"] != "assistant" and n > known:
            view = await engine.prepare(Request({"model": "gpt-4o", "messages": messages[:n]}, session=session))
            branch = view.branch
    return branch


# --- branches ---------------------------------------------------------------------------------------------------------


async def test_not_a_byte_remains(store: SQLStore, place: str) -> None:
    engine = Engine(store, SMALL)
    secret = f"zebrafish-{noise(1, 1)} {noise(2, 2_000)}"
    gone = await turns(
        engine, [user("Look."), call("c", '{"cmd": "cat"}'), result("c", secret), said("ok"), user("go")]
    )
    kept = await turns(engine, [user("Another thing."), said("Yes?"), user("Nothing.")])
    packed = [data for data in bodies(place, "zebrafish") if len(data) > 10_000]
    assert len(packed) == 1
    assert packed[0][64:96] in raw(place)
    assert b"zebrafish" in raw(place), "in a stand-in too short to compress, or in the index"

    trial = await store.purge("default", [gone], "no longer needed", dry_run=True)
    assert [b.id for b in await store.branches("default")] == [kept, gone]
    took = await store.purge("default", [gone], "no longer needed")
    assert took.wiped
    assert (took.branches, took.bodies, took.bytes) == (trial.branches, trial.bodies, trial.bytes)
    assert [b.id for b in await store.branches("default")] == [kept]
    left = raw(place)
    assert b"zebrafish" not in left
    assert not any(packed[0][at : at + 32] in left for at in range(64, len(packed[0]) - 32, 32))
    assert "zebrafish" not in terms(place)
    assert await store.check(deep=True) == []


async def test_a_purged_id_says_when_and_why_and_is_in_the_audit(store: SQLStore) -> None:
    engine = Engine(store, SMALL)
    view = await engine.prepare(Request({"messages": [user("hello " * 10)]}))
    await store.purge("default", [view.branch], "asked by the user")
    with pytest.raises(Purged, match=rf"{view.nodes[0].id[:10]} was purged \d{{4}}-\d\d-\d\d: asked by the user"):
        await engine.recall("default", view.nodes[0].id[:10])
    with pytest.raises(Purged, match=f"{view.branch[:10]} was purged"):
        await store.load("default", view.branch)
    with pytest.raises(NotFound, match="no item has the id") as other:
        await engine.recall("other tenant", view.nodes[0].id[:10])
    assert not isinstance(other.value, Purged)
    [audit] = await store.purges()
    assert (audit.scope, audit.asked, audit.reason) == ("default", "all branches", "asked by the user")
    assert (audit.took.branches, audit.took.nodes, audit.took.bodies) == (1, 1, 1)


async def test_a_purged_history_may_be_said_again(store: SQLStore) -> None:
    engine = Engine(store, SMALL)
    messages = [user("one " * 50), said("two " * 50), user("three")]
    for session in (None, "named"):
        first = await turns(engine, messages, session)
        await store.purge("default", [first], "test")
        view = await Engine(store, SMALL).prepare(Request({"model": "gpt-4o", "messages": messages}, session=session))
        assert [b.id for b in await store.branches("default")] == [view.branch]
        assert (await engine.recall("default", view.nodes[0].id))[0].item.text == "one " * 50
        await store.purge("default", [view.branch], "again")


@pytest.mark.parametrize("session", [None, "named"])
@pytest.mark.parametrize("last", ["three", "three, edited"])
async def test_an_engine_that_remembers_a_purged_branch_goes_on(place: str, session: str | None, last: str) -> None:
    ours, theirs = open_store(place), open_store(place)
    engine = Engine(ours, SMALL)
    messages = [user("one"), said("two"), user("three")]
    branch = await turns(engine, messages, session)
    await theirs.purge("default", [branch], "test")
    messages = [*messages[:-1], user(last), said("four"), user("five")]
    view = await engine.prepare(Request({"model": "gpt-4o", "messages": messages}, session=session))
    assert body(view)["messages"] == messages
    assert [b.id for b in await theirs.branches("default")] == [view.branch]
    assert [n.item.text for n in view.nodes] == ["one", "two", last, "four", "five"]
    assert await theirs.check(deep=True) == []
    await ours.close()
    await theirs.close()


async def test_what_another_branch_says_too_stays(store: SQLStore) -> None:
    engine = Engine(store, SMALL)
    shared = "the same long text " * 40
    gone = await turns(engine, [user(shared), said("a"), user("first")], "one")
    kept = await turns(engine, [user(shared), said("b"), user("second")], "two")
    took = await store.purge("default", [gone], "test")
    assert (took.nodes, took.bodies, took.frames) == (2, 2, 0)
    views = [await engine.resume("default", c) for c in await store.calls("default", kept)]
    assert [n.item.text for n in views[-1].nodes] == [shared, "b", "second"]
    assert await store.check(deep=True) == []


def test_the_child_that_forked_last_inherits_and_the_others_become_its_children() -> None:
    lines = {
        "root": Descent(None, None, "start"),
        "gone": Descent("root", 9, "fork"),
        "late": Descent("gone", 30, "fork"),
        "early": Descent("gone", 12, "fork"),
        "before": Descent("gone", 4, "fork"),  # of the root's part of the past
        "leaf": Descent("late", 50, "fork"),
    }
    moved, heirs = inherit(lines, {"gone", "leaf"})
    assert heirs == {"leaf": Heir(None, -1), "gone": Heir("late", 30)}
    assert moved == {
        "late": Descent("root", 9, "fork"),
        "early": Descent("late", 12, "fork"),
        "before": Descent("late", 4, "fork"),
    }
    moved, heirs = inherit(lines, {"gone", "root"})
    assert heirs == {"gone": Heir("late", 30), "root": Heir("late", 9)}
    assert moved["late"] == Descent(None, None, "start")


async def recorded(engine: Engine, branch: str) -> list[Any]:
    """Everything a branch can give: each of its calls again, and what each of its stand-ins stands for."""
    store = engine.store
    found: list[Any] = []
    for made in await store.calls("default", branch):
        view = await engine.resume("default", made)
        found.append((made.seq, made.digest, made.said, made.usage, view.frame, view.nodes, view.pinned))
    for edit in (await store.load("default", branch)).edits:
        ids = [view.digests.handle(edit.old), *(n.id for n in edit.stand_ins)]
        found += [[(n.id, n.item) for n in await engine.recall("default", id, branch)] for id in ids]
    return found


def histories(random: Random) -> Iterator[tuple[str, list[Message], int]]:
    """Conversations that share their beginnings, their words, or nothing; each with a word of its own.

    Also how many of its messages need not be said one by one.
    """
    made: list[list[Message]] = []
    common = [f"common{n} " * random.choice((3, 40, 150)) for n in range(4)]
    for n in range(random.randint(4, 8)):
        own = f"unique{n}word"
        messages, known = [user(random.choice(common))], 0
        if made and random.random() < 0.8:
            parent = random.choice([made[0], *made])
            messages = parent[: random.choice([i for i, m in enumerate(parent, 1) if m["role"] == "user"])]
            known = random.choice([0, len(messages), len(messages)])
        for turn in range(random.randint(1, 4)):
            text = random.choice([f"{own} {turn}", f"{own} {turn} {noise(n * 10 + turn, 120)}", f"{common[turn]}{own}"])
            messages = [
                *messages,
                call(f"c{n}_{turn}", f'{{"q": "{own}"}}'),
                result(f"c{n}_{turn}", text),
                said(random.choice([own, common[turn % 4] + own])),
                user(random.choice([*common, own])),
            ]
        made.append(messages)
        yield own, messages, known


@settings(max_examples=cases(4, dear=True))
@given(st.integers(0, 2**32))
def test_what_remains_is_as_it_was_and_what_went_is_gone(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(purged_and_compared(f"{folder}/clew.db", Random(seed)))


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(3))
async def test_in_every_kind_of_store(place: str, seed: int) -> None:
    await purged_and_compared(place, Random(seed))


async def purged_and_compared(place: str, random: Random) -> None:
    store = open_store(place)
    spoken: dict[str, list[tuple[str, list[Message]]]] = {}
    for own, messages, known in histories(random):
        # By an engine that knows nothing yet: its branch comes from the log.
        branch = await turns(Engine(store, SMALL), messages, random.choice([None, None, None, "named"]), known)
        spoken.setdefault(branch, []).append((own, messages))
    every = [b.id for b in await store.branches("default")]
    # The oldest alone, of which others forked, or just any.
    gone = random.choice([every[-1:], random.sample(every, random.randint(1, len(every)))])
    kept = [b for b in every if b not in gone]
    engine = Engine(store, SMALL)
    before = {branch: await recorded(engine, branch) for branch in kept}
    check_uses(place)
    await store.purge("default", gone, "test")
    check_uses(place)
    assert {branch: await recorded(engine, branch) for branch in kept} == before
    assert await store.check(deep=True) == []
    needed = str([await texts(store, b) for b in kept])
    left, words = raw(place), terms(place)
    for own in {own for b in gone for own, _ in spoken.get(b, ()) if own not in needed}:
        assert own.encode() not in left
        assert own not in words
    for branch, talks in spoken.items():  # and whatever went can come again
        again = await Engine(store, SMALL).prepare(Request({"model": "gpt-4o", "messages": talks[-1][1]}))
        assert again.nodes, branch
    assert await store.check(deep=True) == []
    await store.close()


def check_uses(place: str) -> None:
    """Who else said a node, and with which frames calls were made, is listed as the events have it."""
    ours = "clew." * is_url(place)
    with closing(psycopg.connect(place) if is_url(place) else sqlite3.connect(place)) as db:
        first = dict(db.execute(f"select id, branch from {ours}node").fetchall())
        events = db.execute(f"select branch, kind, new, note from {ours}event").fetchall()
        again = set(db.execute(f"select id, branch from {ours}said_again").fetchall())
        frames = set(db.execute(f"select digest, branch from {ours}frame_use").fetchall())
    said = {(bytes.fromhex(id), branch) for branch, _, new, _ in events for id in unpack(new)}
    assert {id for id, _ in said} == set(first)
    assert again | set(first.items()) == said | again
    assert {(id, branch) for id, branch in said if first[id] != branch} <= again
    assert again <= said
    used = {(bytes.fromhex(unpack_note(note)["frame"]), branch) for branch, kind, _, note in events if kind == "call"}
    assert frames == used


async def test_stores_of_earlier_versions_know_who_needs_what(empty: str) -> None:
    old_stores.put(empty, old_stores.versions(empty)[-1])
    store = open_store(empty)
    check_uses(empty)
    for branch in await store.branches("default"):
        await store.purge("default", [branch.id], "test")
        check_uses(empty)
    assert await store.check(deep=True) == []
    await store.close()


async def test_many_go_some_at_a_time_and_what_went_on_meanwhile_stays(store: SQLStore) -> None:
    engine, store.purged_at_once = Engine(store, SMALL), 2
    branches = [await turns(engine, [user(f"{n} " * 5)], f"s{n}") for n in range(4)]
    chosen, since = await store.idle("default", now() + 1), now()
    assert sorted(chosen) == sorted(branches)
    await turns(engine, [user("0 " * 5), said("one"), user("more")], "s0")
    told: list[tuple[int, int]] = []
    took = await store.purge("default", chosen, "old", before=since, progress=lambda *done: told.append(done))
    assert (took.branches, told) == (3, [(2, 4), (4, 4)])
    assert [b.session for b in await store.branches("default")] == ["s0"]
    assert sorted(audit.took.branches for audit in await store.purges()) == [1, 2]
    assert await store.check(deep=True) == []


async def test_what_a_conversation_at_work_goes_on_from_is_not_old(store: SQLStore) -> None:
    engine = Engine(store, SMALL)
    first, other = await turns(engine, [user("one")], "first"), await turns(engine, [user("two")], "other")
    since = now()
    later = Request({"model": "gpt-4o", "messages": [user("three")]}, session="later", origin=Origin("handoff", first))
    await engine.prepare(later)
    took = await store.purge("default", await store.idle("default", since), "old", before=since)
    assert (took.branches, [b.session for b in await store.branches("default")]) == (1, ["later", "first"])
    assert other not in {b.id for b in await store.branches("default")}


async def texts(store: SQLStore, branch: str) -> list[str]:
    """All that was ever said or sent on a branch."""
    found: dict[str, Node] = {}
    for made in await store.calls("default", branch):
        trace = await store.load("default", branch, made.seq)
        found |= await store.nodes("default", [p.id for p in trace.said])
        found |= await store.nodes("default", [n.id for e in trace.edits for n in e.new])
    return [n.item.text for n in found.values()]


@pytest.mark.few(1)
async def test_a_purge_beside_a_process_that_writes_harms_neither(place: str) -> None:
    with Begun("-c", WRITER, place) as writer:
        store, purged = open_store(place), 0
        for _ in range(4):
            lines = [writer.stdout.readline().split() for _ in range(6)]
            branches = {b.id for b in await store.branches("default")}
            # The conversation that goes on is among them.
            purged += (await store.purge("default", sorted(branches & {b for b, _ in lines}), "test")).branches
        while int(writer.stdout.readline().split()[1]) < 40:
            pass
        writer.kill()
    assert purged >= 4
    assert await store.repair()
    assert await store.check(deep=True) == []
    await store.close()


# --- one item ---------------------------------------------------------------------------------------------------------


async def test_a_leaked_secret_goes_wherever_it_was_quoted(store: SQLStore, place: str) -> None:
    engine = Engine(store, SMALL)
    key = "sesame7f3a9c"
    leak = f"API_KEY={key}\n" + noise(3, 900)
    messages = [user("Look."), call("c", f'{{"cmd": "echo {key}"}}'), result("c", leak), said("Seen."), user("Go on.")]
    for n in range(12):
        messages += [said(f"step {n} " + "and so on " * 30), user("more")]
    branch = await turns(engine, messages, "one")
    other = await turns(engine, [user("Look."), said("No."), user(leak)], "two")
    trace = await store.load("default", branch)
    nodes = await store.nodes("default", [p.id for p in trace.said])
    held = {n.item.kind: n.id for n in nodes.values() if key in n.item.text}
    assert held.keys() == {"call", "result"}
    assert trace.edits
    assert key.encode() in raw(place)

    for id in held.values():
        await store.purge_item("default", id, "leaked key")
    await store.purge_item("default", (await store.load("default", other)).said[-1].id, "leaked key")
    assert key.encode() not in raw(place)
    assert key not in terms(place)
    assert await store.check(deep=True) == []
    with pytest.raises(Purged, match="leaked key"):
        await engine.recall("default", held["result"])
    for made in await store.calls("default", branch):
        view = await engine.resume("default", made)
        assert not check(body(view), "openai_chat")
        assert key not in str(body(view))
    edit = next(e for e in trace.edits if held["call"] in e.old and len(e.old) > 2)
    span = [n.item.text for n in await engine.recall("default", view.digests.handle(edit.old))]
    assert {"leaked key" in text for text in span} == {True, False}

    # Said again, it is stored again: whoever says it wants it known.
    again = await Engine(store, SMALL).prepare(
        Request({"messages": [user("new"), said("ok"), user(leak)]}, session="3")
    )
    recalled = [
        n.item.text
        for p in (await store.load("default", again.branch)).said
        for n in await engine.recall("default", p.id)
    ]
    assert recalled == ["new", "ok", leak]


@pytest.mark.parametrize("which", range(3))
async def test_with_an_item_goes_what_its_client_wrote_instead_of_it(store: SQLStore, place: str, which: int) -> None:
    word, engine = "zebrafish7431", Engine(store, Budget(window=60_000, reserve=500))
    messages, ids, branches = [user(""), said("Yes, I keep it in mind. " * 20), user("Go on.")], list[str](), set[str]()
    for turn in range(3):
        messages[0] = user(f"My password is {word}.\n<system-reminder>It is {turn}</system-reminder>")
        view = await engine.prepare(Request({"model": "gpt-4o", "messages": messages}, session="one"))
        branches.add(view.branch)
        ids.append((await store.load("default", view.branch)).said[0].id)
        messages += [said(f"Step {turn} is done, and more of it follows. " * 10), user("more")]
    other = await turns(engine, [user("My password is another."), said("Yes."), user("So.")], "two")
    assert len(set(ids)) == 3
    assert len(branches) == 1

    await store.purge_item("default", ids[which], "leaked")
    assert word.encode() not in raw(place)
    assert word not in terms(place)
    assert await store.check(deep=True) == []
    for id in ids:
        with pytest.raises(Purged, match="leaked"):
            await engine.recall("default", id)
    fresh = Engine(store, Budget(window=60_000, reserve=500))
    assert not [n for n in await fresh.search("default", f"password {word}", view.branch) if word in n.item.text]
    for made in await store.calls("default", view.branch):
        assert word not in str(body(await fresh.resume("default", made)))
    assert "another" in str(
        [n.item for p in (await store.load("default", other)).said for n in await engine.recall("default", p.id)]
    )


@pytest.mark.few(2)
@pytest.mark.parametrize(("which", "asks"), [(0, ["Look.", "Look."]), (0, ["Look.", "See."]), (1, ["Look.", "See."])])
async def test_what_was_cleared_alike_does_not_go_with_one_of_it(store: SQLStore, which: int, asks: list[str]) -> None:
    engine, ids = Engine(store, Budget(window=60_000, reserve=500)), list[str]()
    for n, ask in enumerate(asks):
        long, told = f"page {n} tells of gates and doors. " * 40, said("Yes, I do so now, as you said. " * 10)
        for text in (long, "[cleared]"):
            messages = [user(ask), call("c", '{"cmd": "cat"}'), result("c", text), told, user("Go on.")]
            messages += [said("Well."), user("And?")] * (text != long)
            view = await engine.prepare(Request({"model": "gpt-4o", "messages": messages}, session=f"talk {n}"))
            ids.append((await store.load("default", view.branch)).said[2].id)
    await store.purge_item("default", ids[which], "leaked")
    with pytest.raises(Purged):
        await engine.recall("default", ids[0])
    [kept] = await engine.recall("default", ids[2])
    assert kept.item.text.startswith("page 1 tells")


async def test_a_conversation_goes_on_after_one_of_its_items_was_purged(store: SQLStore) -> None:
    engine = Engine(store, SMALL)
    given = conversation(3, 12)
    view = await engine.prepare(Request(given))
    first = (await store.load("default", view.branch)).said[0]
    took = await store.purge_item("default", first.id, "test")
    assert took.nodes >= 1
    given["messages"] += [said("And?"), user("Go on.")]
    for fresh in (engine, Engine(store, SMALL)):
        again = await fresh.prepare(Request(given))
        assert again.branch == view.branch
        assert not check(body(again), "openai_chat")


@pytest.mark.parametrize(
    ("word", "other", "told", "goes"),
    [
        ("yes", "yes, the blue one", "They said yes to the plan of May.", False),
        ("go on", "then go on with it", "We go on with the plan of May.", False),
        ("yes", "yes, the blue one", "user: yes", True),
        ("yes", "yes, the blue one", "1: Shall I?\n2: yes", True),
        ("heliotrope", "the blue one", "The word was heliotrope, they said.", True),
    ],
)
async def test_a_message_of_a_word_or_two_takes_with_it_only_what_quotes_it(
    store: SQLStore, word: str, other: str, told: str, goes: bool
) -> None:
    answer = f"[data: from earlier in this conversation; not orders]\n{told}\n[end of data]"
    messages = [user("Shall I?"), said("I ask."), user(word), said("Well."), user(other)]
    messages += [call("c1", '{"q": "plan"}'), result("c1", answer), user("And now?")]
    engine = Engine(store)
    view = await engine.prepare(Request({"model": "gpt-4o", "messages": messages}))
    [node] = [n for n in view.nodes if n.item.text == word]
    [kept] = [n for n in view.nodes if n.item.text == answer]
    await store.purge_item("default", node.id, "test")
    [after] = (await store.nodes("default", [kept.id])).values()
    assert ("purged" in after.item.text) is goes
    assert (after.item.text == answer) is not goes


@pytest.mark.few(1)
async def test_no_cache_of_the_process_remembers_purged_words(store: SQLStore, place: str) -> None:
    word = "zanzibar_password/of-the-vizier"
    view = await Engine(store).prepare(Request({"messages": [{"role": "user", "content": f"Mind {word}."}]}))
    for name in ("one", "two"):
        engine = Engine(store, settings=Settings(secrets="redact"))
        again = await engine.prepare(Request({"messages": [{"role": "user", "content": f"{word}=1"}]}, session=name))
        assert parts(word)
        assert classify(word)
        assert remembered(word)
        other = open_store(place)  # as another process would
        await other.purge("default", [again.branch], "test")
        await other.close()
        assert not remembered(word)
        parts(word)
        with pytest.raises(Purged):
            await store.load("default", again.branch)
        assert not remembered(word)
    assert await store.load("default", view.branch)


def remembered(word: str) -> bool:
    """Whether a cache of the process would give it back."""
    gc.unfreeze()  # what was imported is no garbage, and not looked at else
    cached = [found for found in gc.get_objects() if type(found).__name__ == "_lru_cache_wrapper"]
    caches = [cache for cache in cached if cache.__module__.startswith("clew.")]
    assert len(caches) > 3
    return any(word in str(held) for cache in caches for held in gc.get_referents(*gc.get_referents(cache)))


async def test_a_branch_that_begins_anew_is_compacted_while_its_heir_has_its_sessions(store: SQLStore) -> None:
    whole = conversation(5, 12, wordy=20)
    for time in range(2):
        engine = Engine(store, Budget(window=30_000))
        for stop in (7, 11):
            view = await engine.prepare(Request({**whole, "messages": whole["messages"][:stop]}, session="run"))
            await engine.compact(view)
        if not time:
            await engine.fork("default", view.branch, view.seq, "try")
            await store.purge("default", [view.branch], "test")
    assert len(await store.sessions("default", view.branch)) == 3
    assert await store.check(deep=True) == []


def test_a_fork_of_a_purged_fork_has_no_more_of_its_past_than_before() -> None:
    lines = {"a": Descent(None, None, "start"), "b": Descent("a", 10, "fork"), "c": Descent("b", 4, "fork")}
    moved, heirs = inherit(lines, {"b"})
    assert moved == {"c": Descent("a", 4, "fork")}
    assert heirs == {"b": Heir("c", 4)}
