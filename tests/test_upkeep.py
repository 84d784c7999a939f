"""Looking after the log: what was learned, what it takes on disk, whether it is whole, a copy of it and back."""

import json
import re
import shutil
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from clew import Budget, Engine, Request, SQLite
from clew.errors import ForeignFile, NewerFile, StoreError
from clew.store.sqlite.opening import APPLICATION, migrations
from clew.store.upkeep.backup import restore
from clew.testing import PICTURE, conversation
from made_once import copied
from processes import Begun
from shell import invoke

WRITER = """
import asyncio, sys, clew
from clew.testing import conversation
async def main(path):
    engine = clew.Engine(clew.SQLite(path), clew.Budget(window=3000))
    for n in range(10_000):
        await engine.prepare(clew.Request(conversation(n, 8), session=f"s{n}"))
        print(n, flush=True)
asyncio.run(main(sys.argv[1]))
"""


async def fill(store: SQLite) -> None:
    """Two conversations that had to be compacted."""
    for n in range(2):
        await Engine(store, Budget(window=3_000)).prepare(Request(conversation(n, 20), session=f"s{n}"))


async def filled(path: Path) -> SQLite:
    """A store with two conversations in it."""
    await copied(path, fill)
    return SQLite(path)


def change(path: Path, *statements: str) -> None:
    """Damage a store behind its back."""
    db = sqlite3.connect(path)
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


# --- learned ----------------------------------------------------------------------------------------------------------


async def test_what_was_learned_last_holds_in_its_scope_and_outlives_the_process(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "clew.db")
    await store.learn("one", "window", "gpt-x", {"tokens": 8_000})
    await store.learn("one", "window", "gpt-x", {"tokens": 16_000, "from": "an error"})
    await store.learn("one", "window", "gpt-y", {"tokens": 4_000})
    await store.learn("one", "ratio", "gpt-x", {"factor": 1.07})
    await store.close()
    again = SQLite(tmp_path / "clew.db")
    assert await again.learned("one", "window") == {
        "gpt-x": {"tokens": 16_000, "from": "an error"},
        "gpt-y": {"tokens": 4_000},
    }
    assert await again.learned("one", "ratio") == {"gpt-x": {"factor": 1.07}}
    assert await again.learned("two", "window") == {}
    await again.close()


async def test_a_file_of_the_first_version_gets_what_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    db = sqlite3.connect(path)
    db.executescript(migrations()[0])
    db.execute("insert into meta values ('secret', ?)", [b"s" * 32])
    db.execute(f"pragma application_id = {APPLICATION}")
    db.execute("pragma user_version = 1")
    db.commit()
    db.close()
    store = SQLite(path)
    await fill(store)
    assert store.secret == b"s" * 32
    assert await store.check(deep=True) == []
    assert await store.purges() == []
    await store.close()


# --- survey -----------------------------------------------------------------------------------------------------------


async def test_equal_media_and_texts_are_stored_once_and_counted(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "clew.db")
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
    for n in range(3):
        asked: list[dict[str, Any]] = [{"type": "text", "text": f"What is it, {n}?"}, picture]
        await Engine(store).prepare(Request({"messages": [{"role": "user", "content": asked}]}, session=str(n)))
    found = await store.survey()
    assert (found.media.places, found.media.bodies) == (3, 1)
    assert found.media.saved > 0
    assert (found.texts.places, found.texts.bodies, found.texts.saved) == (3, 3, 0)
    [scope] = found.scopes
    assert (scope.name, scope.branches, scope.sessions, scope.calls, scope.nodes) == ("default", 3, 3, 3, 6)
    assert scope.bodies == found.bodies == 4
    assert scope.bytes == found.stored
    assert found.file == (tmp_path / "clew.db").stat().st_size
    assert found.wal == (tmp_path / "clew.db-wal").stat().st_size
    assert found.said >= found.stored
    await store.close()


async def test_a_store_in_memory_is_looked_after_like_any_other(tmp_path: Path) -> None:
    store = SQLite(":memory:")
    await fill(store)
    assert (await store.survey()).bodies > 0
    assert await store.check(deep=True) == []
    assert await store.backup(tmp_path / "copy.db") > 0
    branches = [b.id for b in await store.branches("default")]
    assert (await store.purge("default", branches, "test")).wiped
    assert (await store.survey()).bodies == 0
    await store.close()
    copy = SQLite(tmp_path / "copy.db")
    assert [b.id for b in await copy.branches("default")] == branches
    await copy.close()


# --- checks -----------------------------------------------------------------------------------------------------------

BODY = "(select max(id) from body where packed = 2)"


@pytest.mark.parametrize(
    ("damage", "what", "mended"),
    [
        ("delete from branch where session = 's0'", "events of no branch", False),
        ("update branch set parent = 'nobody' where session = 's0'", "branches that fork from no branch", False),
        (f"delete from body where id = {BODY}", "nodes without a body", False),
        ("delete from frame", "calls whose frame is not there", False),
        ("update handle set seq = 99999", "recall ids of no event", False),
        ("update head set branch = 'nobody'", "histories of no branch", False),
        (f"update body set data = x'00' where id = {BODY}", "bodies that cannot be read", False),
        (
            "update body set data = x'7b2274657874223a226f74686572227d', packed = 0 where id = " + BODY,  # other text
            "bodies that do not match their digest",
            False,
        ),
        ("delete from node where content = (select max(content) from node)", "bodies that no node refers to", True),
        ("insert into body_text (rowid, text) values (99999, 'nobody')", "search entries of no body", True),
        ("insert into body_text (body_text) values ('delete-all')", "bodies missing from the search index", True),
        ("delete from body_text_data where id > 10", "damage in the search index", True),
        ("insert into purge values (1, 1, 0, '', '', 0, 0, 0, 0, 0, 0, 0)", "purges whose bytes may still be", True),
    ],
)
async def test_each_damage_is_found_and_what_cannot_lose_anything_is_mended(
    tmp_path: Path, damage: str, what: str, mended: bool
) -> None:
    path = tmp_path / "clew.db"
    store = await filled(path)
    assert await store.check(deep=True) == []
    change(path, damage)
    found = await store.check(deep=True)
    assert any(p.what.startswith(what) and p.count for p in found), found
    assert all(("--repair" in p.remedy) == mended for p in found if p.what.startswith(what))
    if mended:
        assert await store.repair()
        # A node that is missing is still missing; its body, which nobody could reach, is gone.
        assert [p for p in await store.check(deep=True) if "--repair" in p.remedy] == []
    await store.close()


async def test_a_damaged_page_is_found(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    await (await filled(path)).close()
    data = bytearray(path.read_bytes())
    for page in range(20, len(data) // 4096 - 1, 3):
        data[page * 4096 : page * 4096 + 200] = b"\xaa" * 200
    path.write_bytes(data)
    store = SQLite(path)
    found = await store.check()
    assert found[0].what.startswith("damage in the table ")
    assert found[0].remedy.startswith("restore a backup: `clew backup --restore FILE`")
    await store.close()


# --- backup and restore -----------------------------------------------------------------------------------------------


async def test_a_backup_made_while_another_process_writes_is_whole_and_private(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    with Begun("-c", WRITER, str(path)) as writer:
        for _ in range(8):
            writer.stdout.readline()
        store = SQLite(path)
        reports: list[tuple[int, int]] = []
        for n in range(3):
            size = await store.backup(tmp_path / f"copy{n}.db", progress=lambda *at: reports.append(at))
            assert size == (tmp_path / f"copy{n}.db").stat().st_size
        assert writer.is_running(), "it wrote all the time"
        last = len(await store.branches("default"))
        while int(writer.stdout.readline()) < last:
            pass  # and goes on: nobody was locked out
        writer.kill()
    assert reports[-1][0] == reports[-1][1] > 0
    assert stat.S_IMODE((tmp_path / "copy2.db").stat().st_mode) == 0o600
    assert sorted(p.name for p in tmp_path.glob("*copy*")) == ["copy0.db", "copy1.db", "copy2.db"]
    copy = SQLite(tmp_path / "copy2.db")
    assert copy.secret == store.secret
    assert await copy.check(deep=True) == []
    branches = await copy.branches("default")
    assert len(branches) >= 8
    view = await Engine(copy).resume("default", (await copy.calls("default", branches[-1].id))[-1])
    assert (await copy.originals("default", view.nodes[0].id))[0].item
    await copy.close()
    await store.close()


async def test_a_backup_overwrites_nothing_unasked(tmp_path: Path) -> None:
    store = await filled(tmp_path / "clew.db")
    taken = tmp_path / "taken"
    taken.write_text("precious")
    with pytest.raises(StoreError, match="already exists; choose another name, or overwrite it with --force"):
        await store.backup(taken)
    assert taken.read_text() == "precious"
    assert await store.backup(taken, force=True) == taken.stat().st_size
    with pytest.raises(StoreError, match="is the store itself"):
        await store.backup(tmp_path / "clew.db", force=True)
    other = await filled(tmp_path / "other.db")
    with pytest.raises(StoreError, match="is a database in use"):
        await store.backup(tmp_path / "other.db", force=True)
    with pytest.raises(StoreError, match="cannot be written"):
        await store.backup(tmp_path / "no" / "folder" / "x.db")
    await other.close()
    await store.close()


async def test_a_restore_brings_back_the_backup_and_keeps_what_was_there(tmp_path: Path) -> None:
    path, copy = tmp_path / "clew.db", tmp_path / "copy.db"
    store = await filled(path)
    old = await store.branches("default")
    await store.backup(copy)
    await Engine(store).prepare(Request(conversation(9, 3), session="later"))
    new = await store.branches("default")
    with pytest.raises(StoreError, match="another process has it open; stop that process first"):
        restore(copy, path)
    await store.close()
    aside = restore(copy, path)
    assert aside is not None
    assert re.fullmatch(r"clew\.db\.\d{4}-\d\d-\d\d-\d{6}", aside.name)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["clew.db", aside.name, "copy.db"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for file, expected in ((path, old), (aside, new)):
        store = SQLite(file)
        assert await store.branches("default") == expected
        assert await store.check(deep=True) == []
        await store.close()


async def test_a_restore_into_an_empty_place_and_over_what_a_crash_left(tmp_path: Path) -> None:
    store = await filled(tmp_path / "clew.db")
    branches = await store.branches("default")
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for file in tmp_path.glob("clew.db*"):
        shutil.copy(file, crashed)  # with all of it still in the write-ahead log
    await store.backup(tmp_path / "copy.db")
    await store.close()
    assert restore(tmp_path / "copy.db", tmp_path / "new" / "clew.db") is None
    aside = restore(tmp_path / "copy.db", crashed / "clew.db")
    assert aside is not None
    for file in (tmp_path / "new" / "clew.db", crashed / "clew.db", aside):
        store = SQLite(file)
        assert await store.branches("default") == branches
        await store.close()


async def test_what_is_no_good_backup_is_refused_and_nothing_is_touched(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    await (await filled(path)).close()
    before = path.read_bytes()
    (tmp_path / "foreign").write_bytes(b"hello, I am a text file\n" * 20)
    newer = bytearray(before)
    newer[60:64] = (999).to_bytes(4)
    (tmp_path / "newer").write_bytes(newer)
    (tmp_path / "damaged").write_bytes(before[: 4096 * 20] + b"\xaa" * 4096 * 10 + before[4096 * 30 :])
    (tmp_path / "empty").touch()
    for name, error in (("foreign", ForeignFile), ("newer", NewerFile), ("damaged", StoreError), ("empty", StoreError)):
        with pytest.raises(error):
            restore(tmp_path / name, path)
    with pytest.raises(StoreError, match="no backup found"):
        restore(tmp_path / "missing", path)
    with pytest.raises(StoreError, match="is the store itself"):
        restore(path, path)
    with pytest.raises(ForeignFile):
        restore(path, tmp_path / "foreign")
    assert path.read_bytes() == before
    names = ["clew.db", "damaged", "empty", "foreign", "newer"]
    assert sorted(p.name for p in tmp_path.iterdir()) == names


# --- the commands -----------------------------------------------------------------------------------------------------


def run(home: Path, *args: object, input: str | None = None) -> Result:
    env = {"CLEW_STORE": str(home / "clew.db"), "COLUMNS": "80", "FORCE_COLOR": None, "TTY_COMPATIBLE": None}
    return invoke([str(a) for a in args], input=input, env=env)


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    await (await filled(tmp_path / "clew.db")).close()
    return tmp_path


def test_the_doctor_shows_how_it_is(home: Path) -> None:
    done = run(home, "doctor", "--deep")
    assert done.exit_code == 0, done.output
    lines = [row.rstrip() for row in done.stdout.splitlines()]
    assert all(len(row) <= 80 for row in lines[1:])
    rows = [re.split(r" {2,}", row) for row in lines]
    assert [row[0] for row in rows[1:5]] == ["file", "bodies", "search index", "the log itself"]
    assert [row[0] for row in rows[5:7]] == ["saved on text", "saved on media"]
    assert re.fullmatch(r"[\d.]+ KB", rows[1][1])
    assert re.fullmatch(r"\d+ bodies, [\d.]+ times smaller than said", rows[2][2])
    assert rows[8] == ["scope", "branches", "sessions", "calls", "items", "bodies"]
    assert rows[9][:4] == ["default", "2", "2", "2"]
    assert lines[-1] == "✓ no problem found (file, rows, search index, every body)"


def test_the_doctor_tells_programs(home: Path) -> None:
    told = json.loads(run(home, "doctor", "--json").stdout)
    assert told["file"] == (home / "clew.db").stat().st_size
    assert told["problems"] == told["purges"] == []
    [scope] = told["scopes"]
    assert (scope["name"], scope["branches"], scope["calls"]) == ("default", 2, 2)


def test_the_doctor_names_the_remedy_and_can_be_the_remedy(home: Path) -> None:
    change(home / "clew.db", "delete from body_text_data where id > 10")
    done = run(home, "doctor")
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-2:] == ["✗ damage in the search index: 1", "  → `clew doctor --repair`"]
    assert run(home, "doctor", "--repair").exit_code == 0
    assert run(home, "doctor").exit_code == 0


def test_backup_and_restore_as_commands(home: Path) -> None:
    done = run(home, "backup", home / "copy.db")
    assert re.fullmatch(rf"{home}/copy.db: [\d.]+ KB, verified\n", done.stdout)
    assert run(home, "backup", home / "copy.db").exit_code == 1
    assert run(home, "purge", "--all", "--yes").exit_code == 0
    assert "is empty" in run(home, "show").stderr
    done = run(home, "backup", "--restore", home / "copy.db")
    assert re.fullmatch(
        rf"{home}/clew.db: restored from {home}/copy.db\nthe previous log is now {home}/clew.db.[-\d]+\n", done.stdout
    )
    assert run(home, "show").stdout


def test_copies_and_purges_tell_programs(home: Path) -> None:
    copy = home / "copy.db"
    told = json.loads(run(home, "backup", copy, "--json").stdout)
    assert told == {"file": str(copy), "bytes": copy.stat().st_size, "verified": True}
    tried = json.loads(run(home, "purge", "s0", "--dry-run", "--json").stdout)
    assert (tried["deleted"], tried["branches"]) == (False, 1)
    asked = run(home, "purge", "s0", "--json", input="n\n")
    assert "This cannot be undone" in asked.stderr
    assert json.loads(asked.stdout.splitlines()[-1]) == tried  # after what the runner typed
    done = json.loads(run(home, "purge", "s0", "--yes", "--json").stdout)
    assert (done["deleted"], done["wiped"], done["bytes"]) == (True, True, tried["bytes"])
    back = json.loads(run(home, "backup", "--restore", copy, "--json").stdout)
    assert (back["store"], back["source"]) == (str(home / "clew.db"), str(copy))
    assert Path(back["previous"]).exists()


def test_a_purge_says_what_goes_and_asks(home: Path) -> None:
    amounts = r"1 branch, \d+ items, \d+ bodies, 1 frame, [\d.]+ KB"
    assert re.fullmatch(rf"would delete: {amounts}\n", run(home, "purge", "s0", "--dry-run").stdout)
    asked = run(home, "purge", "s0", input="n\n")
    assert re.match(rf"to delete: {amounts}\nThis cannot be undone. Continue\?", asked.stdout)
    assert len(json.loads(run(home, "sessions", "--json").stdout)) == 4
    done = run(home, "purge", "s0", "--reason", "asked by the user", input="y\n")
    assert re.search(rf"deleted: {amounts}\n$", done.stdout)
    assert {s["name"] for s in json.loads(run(home, "sessions", "--json").stdout)} == {"s1"}
    doctor = run(home, "doctor").stdout
    assert re.search(rf"\d{{4}}-\d\d-\d\d purged {amounts[:20]}", doctor)


def test_a_purge_by_date_goes_by_what_happened_last(home: Path) -> None:
    change(home / "clew.db", "update branch set at = 0", "update event set at = 0 where branch in "
           "(select id from branch where session = 's1')")  # fmt: skip
    assert "1 branch," in run(home, "purge", "--before", "2020-01-01", "--dry-run").stdout
    assert "2 branches," in run(home, "purge", "--before", "2099-01-01", "--dry-run").stdout
    none = run(home, "purge", "--before", "1969-01-01", "--dry-run")
    assert (none.exit_code, none.stderr) == (0, "clew: nothing in scope 'default' matches; try another --scope\n")


def test_one_item_is_purged_by_its_id(home: Path) -> None:
    db = sqlite3.connect(home / "clew.db")
    [id] = db.execute("select lower(hex(substr(new, 1, 16))) from event where kind = 'said' order by seq").fetchone()
    db.close()
    assert run(home, "recall", id[:10]).exit_code == 0
    gone = run(home, "purge", "--id", id[:10], "--yes").stdout  # itself, and what stands in for it
    assert re.match(r"to delete: (\d+) items?, \d+ bod(y|ies), [\d.]+ (bytes|KB)\ndeleted: \1 item", gone)
    done = run(home, "recall", id[:10])
    assert re.match(rf"clew: {id[:10]} was purged \d{{4}}-\d\d-\d\d: on request", done.stderr)


@pytest.mark.parametrize("args", [[], ["s0", "--all"], ["--id", "abc", "--before", "2020-01-01"]])
def test_a_purge_must_be_told_one_thing(home: Path, args: list[str]) -> None:
    done = run(home, "purge", *args)
    assert (done.exit_code, done.stderr) == (
        2,
        "clew: Invalid value: give names, or one of --before, --all and --id (see clew purge --help)\n",
    )


@pytest.mark.parametrize("command", ["doctor", "backup", "purge"])
def test_help_teaches_by_example(home: Path, command: str) -> None:
    assert f"Example: clew {command} " in run(home, command, "--help").stdout
