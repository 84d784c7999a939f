"""How values lie on disk: short, and readable however old they are."""

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew import Budget, Engine, Request, open_store
from clew.core import rawjson
from clew.core.items import Digests, Item
from clew.errors import BadRequest, StoreError
from clew.store.compressing import compress, decompress
from clew.store.frames import inflated_frame
from clew.store.notes import pack_note, unpack_note
from clew.store.packing import PLAIN, ZLIB, ZSTD, inflated, is_intact, opening, pack_item, unpack_item
from clew.store.places import is_url
from clew.store.sql import SQLStore
from clew.testing import conversation
from old_stores import LATER, LATER_ON_A_SERVER

WORDS = st.text(st.characters(exclude_categories=()), max_size=300)


@given(WORDS)
def test_what_is_packed_is_unpacked_the_same(text: str) -> None:
    item = Item("call", "assistant", text, "read", "call_1", wire={"input": text[:40]})
    packed, size, data = pack_item(item)
    assert unpack_item(None, "call", "assistant", packed, data) == item
    assert len(data) <= size
    assert packed in (PLAIN, ZSTD)


@pytest.mark.parametrize(
    ("item", "as_said"),
    [
        (Item("text", "user", "as it was said"), True),
        (Item("text", "user", "something else"), False),
        (Item("text", "user", "the key is [secret: token 0a1b2c]"), True),  # of which the digest is another
        (Item("result", "tool", "ok", call_id="secret_token_0a1b2c"), True),
    ],
)
def test_what_is_masked_cannot_be_told_from_what_was_said(item: Item, as_said: bool) -> None:
    digests = Digests()
    packed, _, data = pack_item(item)
    content = digests.content(Item("text", "user", "as it was said"))
    assert is_intact(digests, content, item, packed, data) is as_said


@given(st.binary(max_size=2_000), st.integers(0, 10_000), st.integers(0, 7))
def test_a_flipped_bit_is_noticed(data: bytes, at: int, bit: int) -> None:
    stored = bytearray(compress(data))
    stored[at % len(stored)] ^= 1 << bit
    with suppress(BadRequest):
        assert decompress(bytes(stored)) == data  # a bit that says nothing


HEX = st.binary(min_size=16, max_size=16).map(bytes.hex)
CALLS = st.fixed_dictionaries(
    {
        "frame": HEX | st.just("odd"),
        "model": WORDS,
        "format": st.sampled_from(["openai_chat", "bedrock", "new"]),
        "digest": HEX | st.just("") | HEX.map(str.upper),
        "predicted": st.integers(0, 10**9),
        "limit": st.integers(0, 10**9),
        "exact": st.booleans(),
        "cached": st.integers(0, 10**9),
        "shadow": st.none() | st.dictionaries(st.sampled_from("ab"), st.integers(0, 9)),
    }
)
COUNTS = st.dictionaries(st.sampled_from(["input", "output", "cache_read", "cache_write", "other"]), st.integers(0, 9))
USAGES = st.fixed_dictionaries({"usage": COUNTS, "cost": st.none() | st.floats(0, 9)})
EDITS = st.fixed_dictionaries({"by": WORDS, "evidence": st.dictionaries(WORDS, WORDS), "spent": st.integers(0, 9)})


@given(CALLS.map(lambda n: ("call", n)) | USAGES.map(lambda n: ("usage", n)) | EDITS.map(lambda n: ("edit", n)))
def test_notes_are_read_as_they_were_written(given: tuple[str, dict[str, Any]]) -> None:
    kind, note = given
    stored = pack_note(kind, note)
    assert stored
    assert unpack_note(stored) == note
    assert len(stored) <= len(rawjson.dumps(note)) + 20
    assert unpack_note(rawjson.dumps(note)) == unpack_note(rawjson.dumps(note).decode()) == note


@contextmanager
def behind(place: str) -> Iterator[Any]:
    """A connection of one's own."""
    with closing(psycopg.connect(place) if is_url(place) else sqlite3.connect(place)) as db:
        if is_url(place):
            db.execute("set search_path to clew")
        yield db
        db.commit()


def age(place: str) -> None:
    """Let a store be as older versions wrote it."""
    with behind(place) as db:
        mark, text = ("%s", bytes) if is_url(place) else ("?", lambda data: data.decode())
        for id, kind, role, packed, data in db.execute("select id, kind, role, packed, data from body").fetchall():
            whole = inflated(packed, data)
            old = (ZLIB, zlib.compress(whole, 6)) if len(whole) >= 200 else (PLAIN, whole)
            item = unpack_item(None, kind, role, packed, data)
            words = ("summary" if kind == "s" else item.kind, item.role)
            sets = f"packed = {mark}, data = {mark}, kind = {mark}, role = {mark}"
            db.execute(f"update body set {sets} where id = {mark}", (*old, *words, id))
        for digest, data in db.execute("select digest, data from frame").fetchall():
            given = (zlib.compress(inflated_frame(data), 6), digest)
            db.execute(f"update frame set data = {mark} where digest = {mark}", given)
        for branch, seq, note in db.execute("select branch, seq, note from event where note is not null").fetchall():
            as_json = text(rawjson.dumps(unpack_note(note)))
            db.execute(f"update event set note = {mark} where branch = {mark} and seq = {mark}", (as_json, branch, seq))
        for id, opens in db.execute("select id, opens from node where opens is not null").fetchall():
            db.execute(f"update node set opens = {mark} where id = {mark}", (opening(opens), id))


def lengths(place: str) -> dict[str, int]:
    """Bytes of what can be packed."""
    columns = {"body": "data) + length(kind", "frame": "data", "event": "note", "node": "opens"}
    with behind(place) as db:
        return {t: db.execute(f"select sum(length({column})) from {t}").fetchone()[0] for t, column in columns.items()}


async def told(store: SQLStore) -> list[object]:
    """All that a store says of what was said."""
    found: list[object] = []
    for branch in await store.branches("default"):
        trace, calls = await store.load("default", branch.id), await store.calls("default", branch.id)
        ids = [p.id for p in trace.said] + [n.id for e in trace.edits for n in e.new]
        frames = [await store.frame("default", call.frame) for call in calls]
        found += [trace, calls, await store.nodes("default", ids), frames, await store.events("default", branch.id)]
    return found


async def talked(store: SQLStore) -> None:
    for number in range(3):
        engine = Engine(store, Budget(window=3_000))
        for count in (4, 8):
            view = await engine.prepare(Request(conversation(number, count), session=f"s{number}"))
            await engine.observe(view, {"prompt_tokens": 900, "completion_tokens": 9})


@pytest.mark.few(1)
async def test_an_old_store_says_the_same(store: SQLStore, place: str) -> None:
    await talked(store)
    before, short = await told(store), lengths(place)
    age(place)
    long = lengths(place)
    assert all(long[table] > short[table] for table in short)
    assert await told(store) == before
    assert await store.check(deep=True) == []


async def test_frames_of_old_and_new_calls_stay_in_a_purge(store: SQLStore, place: str) -> None:
    await talked(store)
    age(place)
    body = {**conversation(7, 4), "temperature": 0.5}
    await Engine(store).prepare(Request(body, session="new"))
    first, *others = await store.branches("default")
    await store.purge("default", [b.id for b in others if b.session == "s0"], "test")
    assert await store.check(deep=True) == []
    assert first.session == "new"
    for branch in await store.branches("default"):
        for call in await store.calls("default", branch.id):
            assert (await store.frame("default", call.frame)).format == "openai_chat"


async def test_what_is_long_in_a_frame_is_kept_once(store: SQLStore, place: str) -> None:
    tools = [{"type": "function", "function": {"name": f"tool_{n}", "description": "zebra " * 30}} for n in range(20)]
    engine = Engine(store, Budget(window=100_000))

    def body(turn: int, count: int) -> dict[str, Any]:
        return {"metadata": {"request": str(turn)}, "tools": tools, **conversation(7, count), "user": f"u{turn}"}

    views = [await engine.prepare(Request(body(n, 2 + n), session=f"s{n // 2}")) for n in range(4)]
    found = [await store.frame("default", c.frame) for v in views for c in await store.calls(v.scope, v.branch)]
    assert {len(f.tools) for f in found} == {20}
    assert [list(f.body) for f in found] == [list(views[0].frame.body)] * len(found)
    assert all(view.frame in found for view in views)
    with behind(place) as db:
        rows = [data for (data,) in db.execute("select data from frame order by length(data)").fetchall()]
        assert [row[0] for row in rows] == [3, 3, 3, 3, 4]
    survey = await store.survey()
    assert survey.frames == 4
    assert await store.check(deep=True) == []
    await store.purge("default", [views[0].branch], "test")
    assert await store.check(deep=True) == []
    assert (await store.frame("default", (await store.calls("default", views[2].branch))[0].frame)).tools
    await store.purge("default", [views[2].branch], "test")
    assert (await store.survey()).frame_bytes == 0
    await engine.prepare(Request(body(9, 2), session="again"))
    with behind(place) as db:
        db.execute("delete from frame where length(data) = (select max(length(data)) from frame)")
    [problem] = await store.check()
    assert problem.what == "frames whose long parts are not there"


async def test_what_a_newer_clew_packed_is_no_guess(store: SQLStore, place: str) -> None:
    await talked(store)
    ids = [p.id for p in (await store.load("default", (await store.branches("default"))[0].id)).said]
    with behind(place) as db:
        db.execute("update body set packed = 9")
    with pytest.raises(StoreError, match="cannot be read"):
        await store.nodes("default", ids)


async def test_a_store_from_before_notes_were_bytes(place: str) -> None:
    if not is_url(place):
        pytest.skip("SQLite takes both in one column")
    store = open_store(place)
    await talked(store)
    before = await told(store)
    await store.close()
    age(place)
    with behind(place) as db:
        db.execute("alter table event alter column note type text using convert_from(note, 'UTF8')")
        for act in (*LATER, *LATER_ON_A_SERVER):
            db.execute(act)
        db.execute("update meta set value = '3' where key = 'version'")
    store = open_store(place)
    assert await told(store) == before
    assert await store.check(deep=True) == []
    await store.close()


def test_digests_are_of_the_item_and_not_of_how_it_is_packed() -> None:
    item = Item("text", "user", "zebra " * 100)
    packed, _, data = pack_item(item)
    again = unpack_item(None, "text", "user", ZLIB, zlib.compress(inflated(packed, data)))
    assert Digests(b"", "").content(again) == Digests(b"", "").content(item)
