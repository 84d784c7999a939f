"""Logs that are not as clew writes them, from a file or in the store: one clear error, or all goes on."""

import asyncio
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from amounts import cases
from clew import Engine, Request, SQLite
from clew.core.items import LOG, PINS, STANDS, Edit, Node
from clew.core.view import fold
from clew.errors import ClewError, StoreError
from clew.sessions.import_log import take_in
from clew.store.notes import unpack_note
from clew.store.records import ABSENT
from clew.store.shapes import EVIDENCE
from misfitting import Line, Log, live, made, spoil, take

KINDS = ("work", "notes", "anthropic", "openai_responses", "gemini", "bedrock")


@cache
def log_of(kind: str) -> tuple[Log, bytes]:
    """A log of a kind, as an export and as the file of a store; it is made on a loop of its own."""
    with TemporaryDirectory() as folder, ThreadPoolExecutor(1) as beside:
        path = Path(folder, "clew.db")
        return beside.submit(lambda: asyncio.run(made(kind, str(path)))).result(), path.read_bytes()


def copied(lines: list[Line]) -> list[Line]:
    return [dict(line) for line in json.loads(json.dumps(lines))]


def edits(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line.get("kind") == "edit"]


async def taken_or_refused(log: Log, lines: list[Line], what: object) -> bool:
    """Whether a file is taken in, with which all can be done then; else there is one clear error, and nothing."""
    store = SQLite(":memory:")
    try:
        try:
            await take(store, lines)
        except ClewError:
            assert await store.branches("default") == [], what
            return False
        written = await live(store, "run", log)
    finally:
        await store.close()
    other = SQLite(":memory:")
    await take_in(other, "default", written)
    await other.close()
    return True


# --- from a file ------------------------------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(cases(8)))
async def test_what_edits_note_may_be_anything(seed: int) -> None:
    random = Random(seed)
    log, _ = log_of(("work", "notes")[seed % 2])
    lines = copied(log.lines)
    spots = [spoil(edit, random, ("note", "evidence")) for edit in edits(lines)]
    assert await taken_or_refused(log, lines, spots) or ("note", "evidence") in spots


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(cases(8)))
async def test_so_may_every_line_of_a_file(seed: int) -> None:
    random = Random(seed)
    log, _ = log_of(KINDS[seed % len(KINDS)])
    lines = copied(log.lines)
    sorts: dict[str, list[Line]] = {}
    for line in lines:
        sorts.setdefault(line["kind"] if "event" in line else next(iter(line)), []).append(line)
    line = random.choice(sorts[random.choice(sorted(sorts))])
    inside = [key for key in ("note", "body", "wire", "tools") if isinstance(line.get(key), dict | list) and line[key]]
    spot = spoil(line, random, (random.choice(inside),) if inside and random.random() < 0.8 else ())
    await taken_or_refused(log, lines, (line, spot))


@pytest.mark.parametrize("seed", range(cases(5)))
async def test_so_may_the_order_in_which_things_stand(seed: int) -> None:
    random = Random(seed)
    log, _ = log_of(KINDS[seed % len(KINDS)])
    lines = copied(log.lines)
    known = [line["node"] for line in lines if "node" in line]
    line = random.choice([line for line in lines if line.get("old") or line.get("new")])
    ids = line[random.choice([key for key in ("old", "new") if line.get(key)])]
    at = random.randrange(len(ids))
    match seed % 5:
        case 0:
            ids[at] = random.choice(known)
        case 1:
            ids.insert(at, random.choice(known))
        case 2:
            ids.insert(at, ids[-1])
        case 3:
            del ids[at]
        case 4:
            random.shuffle(ids)
    await taken_or_refused(log, lines, line)


def noting(log: Log, key: str, value: object) -> list[Line]:
    """A file in which every edit that notes something under a key notes this."""
    lines = copied(log.lines)
    for edit in edits(lines):
        if key in edit["note"]["evidence"]:
            edit["note"]["evidence"][key] = value
    return lines


@pytest.mark.parametrize("key", [LOG, STANDS, PINS])
async def test_what_does_not_fit_is_told_anew(key: str) -> None:
    log, _ = log_of("work")
    assert any(key in edit["note"]["evidence"] for edit in edits(log.lines)), "it is there"
    store, notes = SQLite(":memory:"), list[str]()
    lines = [json.dumps(line).encode() for line in noting(log, key, [{}])]
    [branch, *_] = await take_in(store, "default", lines, None, None, notes)
    assert "notes that this clew does not know" in notes[0]
    engine = Engine(store, log.budget)
    view = await engine.view("default", branch)
    assert all(key not in edit.evidence for edit in view.edits)
    assert view.edits, "they hold without it"
    after = await engine.prepare(Request(log.next, session="run"))
    said = {node.item.text for n in after.nodes for node in await engine.recall("default", n.id, branch)}
    assert {m["content"] for m in log.next["messages"] if m["content"]} <= said, "nothing is lost"
    await store.close()


async def test_what_quotes_nobody_knows_whom_does_not_hold() -> None:
    log, _ = log_of("work")
    store, whole = SQLite(":memory:"), SQLite(":memory:")
    await take(store, noting(log, "beside", [{}]))
    await take(whole, log.lines)
    quoting = {new for edit in edits(log.lines) if "beside" in edit["note"]["evidence"] for new in edit["new"]}
    shown: list[set[str]] = []
    for one in (whole, store):
        branch = await one.session("default", "run")
        assert branch
        engine, ids = Engine(one, log.budget), set[str]()
        for call in await one.calls("default", branch):
            ids |= {node.id for node in (await engine.resume("default", call)).nodes}
        shown.append(quoting & ids)
        await one.close()
    assert shown[0] == quoting, "each stood there"
    assert not shown[1], "the words it quotes may be old"


async def test_a_file_that_nobody_could_follow_is_refused() -> None:
    log, _ = log_of("work")
    lines = copied(log.lines)
    said = [line for line in lines if line.get("kind") == "said"]
    said[-1]["new"].append(said[0]["new"][0])
    assert not await taken_or_refused(log, lines, "said twice")
    for key, value in (("old", []), ("new", []), ("new", "twice"), ("old", "unknown")):
        lines = copied(log.lines)
        edit = edits(lines)[0]
        edit[key] = {"twice": edit["new"] * 2, "unknown": ["f" * 32]}.get(str(value), value)
        assert not await taken_or_refused(log, lines, (key, value))


@pytest.mark.parametrize(
    "alias", [{"a": "b"}, {"b": "a"}, {"a": "c", "b": "c"}, {"x": "z", "y": "z"}, {"x": "c"}], ids=str
)
def test_a_history_has_an_end_whatever_is_said_to_be_rewritten(alias: dict[str, str]) -> None:
    a, b, c, x, y = (Node(id, id, ABSENT) for id in "abcxy")
    edit = Edit("test", ("b",), (x, y))
    found = fold([a, b, c], [edit], alias)
    assert found in ((a, b, c), (a, x, y, c))


# --- in the store -----------------------------------------------------------------------------------------------------


def spoil_store(path: Path, data: bytes, kind: str, random: Random) -> list[object]:
    """A store in which what events of a kind note is otherwise; where."""
    path.write_bytes(data)
    spots = list[object]()
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("select branch, seq, note from event where kind = ? and note is not null", (kind,)).fetchall()
        for branch, seq, stored in rows if kind == "edit" else [random.choice(rows)]:
            note = unpack_note(stored)
            spots.append(spoil(note, random, ("evidence",) if kind == "edit" else ()))
            changed = json.dumps(note).encode()
            db.execute("update event set note = ? where branch = ? and seq = ?", (changed, branch, seq))
        db.commit()
    return spots


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(cases(12)))
async def test_so_may_a_store(tmp_path: Path, seed: int) -> None:
    kind = ("edit", "edit", "call", "usage", "edit", "session")[seed % 6]
    log, data = log_of(("work", "notes")[seed // 6 % 2])
    spots = spoil_store(tmp_path / "clew.db", data, kind, Random(seed))
    store = SQLite(tmp_path / "clew.db")
    try:
        await live(store, "run", log)
    except StoreError:
        assert kind != "edit" or ("evidence",) in spots, "an edit without evidence is none"
        assert any(p.what == "events that cannot be read" for p in await store.check(deep=True)), spots
    finally:
        await store.close()


# --- the table --------------------------------------------------------------------------------------------------------


async def test_what_clew_notes_is_known_and_fits() -> None:
    noted: dict[str, list[Any]] = {}
    for log, _ in map(log_of, KINDS):
        for edit in edits(log.lines):
            for key, value in edit["note"]["evidence"].items():
                noted.setdefault(key, []).append(value)
    assert noted.keys() <= EVIDENCE.keys()
    assert noted.keys() >= {LOG, STANDS, PINS, "beside", "tally", "handle", "cost"}
    assert all(EVIDENCE[key](value) for key, values in noted.items() for value in values)
