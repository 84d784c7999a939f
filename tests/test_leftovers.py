"""Copies that a killed backup or restore leaves: they are named, and removed when asked or by whoever comes next."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import Result

from clew import Engine, Request, SQLite
from clew.errors import StoreError
from clew.store import restore
from processes import Begun
from shell import invoke

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there is no kill -9 on Windows")

WORD = b"zanzibar"
COPYING = """
import asyncio, sys, time, clew
from clew.store import SQLite, restore
def stay(*_):
    print("copied", flush=True)
    time.sleep(1_000)
act, source, target = sys.argv[1:]
if act == "backup":
    asyncio.run(SQLite(source).backup(target, progress=stay))
else:
    restore(clew.store.upkeep.backup.Path(source), clew.store.upkeep.backup.Path(target), progress=stay)
"""


@contextmanager
def copying(act: str, source: Path, target: Path) -> Iterator[None]:
    """While a process copies a store, which is killed in the end."""
    with Begun("-c", COPYING, act, str(source), str(target)) as process:
        assert process.stdout.readline() == "copied\n"
        try:
            yield
        finally:
            process.kill()


@pytest.fixture
async def store(tmp_path: Path) -> SQLite:
    store = SQLite(tmp_path / "clew.db", patience=1)
    words = {"messages": [{"role": "user", "content": WORD.decode()}]}
    await Engine(store).prepare(Request(words, session="s"))
    return store


async def command(*args: object) -> Result:
    return await asyncio.to_thread(invoke, [str(a) for a in args])


def holding(folder: Path) -> set[str]:
    """The files that hold the word."""
    return {path.name for path in folder.iterdir() if path.is_file() and WORD in path.read_bytes()}


async def test_a_killed_backup_is_named_and_removed_when_asked(store: SQLite, tmp_path: Path) -> None:
    with copying("backup", tmp_path / "clew.db", tmp_path / "copy.db"):
        assert await store.check() == []
        with pytest.raises(StoreError, match="another process is writing to it"):
            await store.backup(tmp_path / "copy.db")
        await store.backup(tmp_path / "other.db")
    left = ".copy.db.clew-part"
    assert left in holding(tmp_path)
    [problem] = await store.check()
    assert problem.what == f"partial copies left by an interrupted backup or restore: {left}"
    assert problem.remedy == "`clew doctor --repair`"
    await store.close()
    told = await command("doctor", "--repair", "--store", tmp_path / "clew.db")
    assert told.exit_code == 0, told.output
    assert sorted(p.name for p in tmp_path.iterdir()) == ["clew.db", "other.db"]


async def test_a_backup_killed_in_another_folder_is_named_and_removed_with_the_store(
    store: SQLite, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    there.mkdir()
    with copying("backup", tmp_path / "clew.db", there / "copy.db"):
        assert await store.check() == []
        await store.repair()
        assert holding(there)
    [problem] = await store.check()
    left = there / ".copy.db.clew-part"
    assert problem.what == f"partial copies left by an interrupted backup or restore: {left}"
    assert await store.repair()
    assert await store.check() == []
    assert list(there.iterdir()) == []
    await store.backup(there / "copy.db")
    await store.close()
    assert [p.name for p in there.iterdir()] == ["copy.db"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["clew.db", "there"]


async def test_what_only_looks_like_a_copy_elsewhere_is_not_deleted(store: SQLite, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "letter.txt").write_text("mine")
    (tmp_path / ".copy.db.clew-part").symlink_to(there / "letter.txt")
    assert await store.repair()
    await store.close()
    assert (there / "letter.txt").read_text() == "mine"


async def test_a_new_backup_removes_what_a_killed_one_left_there(store: SQLite, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    for name in ("copy.db", "other.db"):
        with copying("backup", tmp_path / "clew.db", there / name):
            pass
    await store.backup(there / "copy.db")
    await store.close()
    assert [p.name for p in there.iterdir()] == ["copy.db"]


async def test_a_killed_restore_changed_nothing_and_the_next_one_removes_it(store: SQLite, tmp_path: Path) -> None:
    await store.backup(tmp_path / "copy.db")
    await store.close()
    before = (tmp_path / "clew.db").read_bytes()
    with copying("restore", tmp_path / "copy.db", tmp_path / "clew.db"):
        pass
    assert (tmp_path / "clew.db").read_bytes() == before
    assert ".clew.db.clew-part" in holding(tmp_path)
    aside = restore(tmp_path / "copy.db", tmp_path / "clew.db")
    assert aside is not None
    assert sorted(p.name for p in tmp_path.iterdir()) == ["clew.db", aside.name, "copy.db"]


async def test_a_restore_killed_before_the_last_step_left_the_store_where_it_was(store: SQLite, tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    second = tmp_path / "clew.db.2026-11-16-170000"
    second.hardlink_to(path)  # as far as it had come
    other = tmp_path / "other.db.2026-11-16-170000"
    other.write_bytes(b"what a restore moved aside before")
    [problem] = await store.check()
    assert problem.what.endswith(f": {second.name}")
    assert await store.repair()
    assert await store.check() == []
    await store.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name, other.name]


async def test_purged_words_do_not_survive_in_what_was_left(store: SQLite, tmp_path: Path) -> None:
    with copying("backup", tmp_path / "clew.db", tmp_path / "copy.db"):
        pass
    [branch] = await store.branches("default")
    await store.purge("default", [branch.id], "test", dry_run=True)
    assert ".copy.db.clew-part" in holding(tmp_path)
    assert store.lingering == ""
    await store.purge("default", [branch.id], "test")
    assert holding(tmp_path) == set()
    await store.close()


async def test_a_purge_says_which_stores_a_restore_moved_aside(store: SQLite, tmp_path: Path) -> None:
    await store.backup(tmp_path / "copy.db")
    await store.close()
    aside = restore(tmp_path / "copy.db", tmp_path / "clew.db")
    assert aside is not None
    told = await command("purge", "--all", "--yes", "--store", tmp_path / "clew.db")
    assert f"what a restore moved aside may hold them: {aside.name}; delete it" in told.stdout
    assert holding(tmp_path) == {"copy.db", aside.name}
