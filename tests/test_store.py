"""The log on disk: private, durable, shared by processes, and careful with files that are not its own."""

import sqlite3
import stat
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest

from clew import Budget, Engine, Request, SQLite, wire
from clew.core.items import Edit, Node
from clew.errors import ForeignFile, NewerFile, StoreError
from clew.store.queries import statements
from clew.store.records import ABSENT, Call, ClientEdit, Switch, Usage
from clew.store.sqlite.opening import APPLICATION, migrations
from clew.store.trace import Trace, apply
from clew.testing import conversation
from processes import Begun

WRITER = """
import asyncio, sys, clew
from clew.testing import conversation
async def main(path):
    engine = clew.Engine(clew.SQLite(path), clew.Budget(window=3000))
    for n in range(10_000):
        view = await engine.prepare(clew.Request(conversation(n % 50, 8), session=f"s{n}"))
        print(view.branch, view.seq, len(view.nodes), flush=True)
asyncio.run(main(sys.argv[1]))
"""


async def test_the_file_and_its_companions_are_private(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "clew.db"
    store = SQLite(path)
    assert store.secret
    found = {p.name: stat.S_IMODE(p.stat().st_mode) for p in path.parent.iterdir()}
    assert found["clew.db"] == 0o600
    assert set(found.values()) == {0o600}
    await store.close()


def test_two_processes_write_to_one_file(tmp_path: Path) -> None:
    command = "-c", WRITER, str(tmp_path / "clew.db")
    with Begun(*command) as one, Begun(*command) as two:
        lines = [w.stdout.readline() for _ in range(10) for w in (one, two)]
        one.kill()
        two.kill()
    assert len(lines) == 20
    assert all(len(line.split()) == 3 for line in lines)


async def test_an_append_writes_only_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    store = SQLite(path)
    engine = Engine(store, Budget(window=500_000))
    body = conversation(1, 60, wordy=80)
    view = await engine.prepare(Request(body))

    def counts() -> dict[str, int]:
        db = sqlite3.connect(path)
        tables = ("body", "node", "event", "frame", "branch")
        found = {t: db.execute(f"select count(*) from {t}").fetchone()[0] for t in tables}
        db.close()
        return found

    before = counts()
    body["messages"] += [{"role": "assistant", "content": "quite new"}, {"role": "user", "content": "also new"}]
    again = await engine.prepare(Request(body))
    after = counts()
    assert again.branch == view.branch
    assert {t: after[t] - before[t] for t in before} == {"body": 2, "node": 2, "event": 2, "frame": 0, "branch": 0}
    same = await Engine(store, Budget(window=500_000)).prepare(Request({**body, "model": "gpt-4o"}, session="other"))
    assert counts()["body"] == after["body"], "bodies are stored once, whoever says them"
    assert same.branch != view.branch
    await store.close()


async def test_bodies_are_compressed(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    store = SQLite(path)
    text = "the same line again and again\n" * 20_000
    view = await Engine(store, Budget(window=500_000)).prepare(
        Request({"messages": [{"role": "user", "content": text}]})
    )
    await store.close()
    assert path.stat().st_size < len(text)
    again = SQLite(path)
    assert (await again.originals("default", view.nodes[0].id))[0].item.text == text
    await again.close()


@pytest.mark.parametrize(
    "content", [b"hello, I am a text file\n" * 20, b"SQLite format 3\0 but not really" + b"x" * 100]
)
def test_a_foreign_file_is_refused_untouched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(ForeignFile, match="is not a clew store; choose another place"):
        SQLite(path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_another_programs_database_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    db = sqlite3.connect(path)
    db.execute("create table cats (name text)")
    db.commit()
    db.close()
    before = path.read_bytes()
    with pytest.raises(ForeignFile):
        SQLite(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_newer_file_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    db = sqlite3.connect(path)
    db.execute(f"pragma application_id = {APPLICATION}")
    db.execute("pragma user_version = 999")
    db.execute("create table future (x)")
    db.commit()
    db.close()
    before = path.read_bytes()
    with pytest.raises(NewerFile, match=f"version 999, this one knows {len(migrations())}.*upgrade clew"):
        SQLite(path)
    assert path.read_bytes() == before


async def test_a_process_that_runs_writes_nothing_once_a_newer_clew_was_at_its_file(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "log.db")
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "one"}]}
    await Engine(store).prepare(Request(body, session="first"))
    with closing(sqlite3.connect(store.path)) as db:
        db.execute("pragma user_version = 999")
    with pytest.raises(NewerFile, match="version 999"):
        await Engine(store).prepare(Request(body, session="second"))
    assert [b.session for b in await store.branches("default")] == ["first"]
    await store.close()


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="cannot be created"):
        SQLite(tmp_path / "file" / "clew.db")


async def test_a_damaged_file_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    await SQLite(path).close()
    data = bytearray(path.read_bytes())
    data[100:] = b"\xaa" * (len(data) - 100)
    path.write_bytes(data)
    with pytest.raises(StoreError, match=str(path)):
        SQLite(path)


async def test_an_empty_file_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    path.touch(0o644)
    store = SQLite(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    view = await Engine(store).prepare(Request(conversation(1, 1)))
    assert len(view.nodes) == len(wire.decode(conversation(1, 1))[1])
    await store.close()


def test_migrations_are_numbered_without_gaps() -> None:
    folder = files("clew.store").joinpath("sqlite/migrations")
    names = sorted(f.name for f in folder.iterdir() if f.name.endswith(".sql"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


async def test_where_something_was_said_is_looked_up_not_searched_for(tmp_path: Path) -> None:
    """Without statistics SQLite would read every node of the scope for each hit."""
    store = SQLite(tmp_path / "clew.db")
    await store.close()
    with closing(sqlite3.connect(tmp_path / "clew.db")) as db:
        db.create_function("from_hex", 1, bytes.fromhex, deterministic=True)
        plan = db.execute(f"explain query plan {statements('sqlite')['places_of']}", {"contents": "[]", "scope": "x"})
        assert any("node_content" in str(row) for row in plan)


def made(id: str) -> Edit:
    return Edit("Cut()", ("an old one",), (Node(id, id, ABSENT),))


def test_what_a_provider_counted_says_nothing_once_something_is_folded() -> None:
    trace = Trace("a branch")
    apply(trace, Call("a branch", 0, "", "gpt-4o", "openai_chat", "", 3, 90, 100, exact=True), Usage(0, {"input": 95}))
    assert trace.reported == 95
    apply(trace, made("a stand-in"))
    assert trace.reported == 0


def test_a_stand_in_keeps_the_format_it_was_made_in_through_every_switch() -> None:
    trace = Trace("a branch", format="openai_chat")
    apply(trace, made("a stand-in"))
    for format in ("anthropic", "gemini"):
        apply(trace, ClientEdit(0, 0, (), {}, Switch(format)))
    assert (trace.format, trace.made_in) == ("gemini", {"a stand-in": "openai_chat"})
