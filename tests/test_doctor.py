"""`clew doctor` on a damaged file: it names the damage, the table and the remedy, and sends nobody to itself."""

import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from clew.store.sqlite.damage import damage_at
from test_upkeep import filled, run

PAGE = 4_096
Damage = Callable[[bytes], bytes]


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    await (await filled(tmp_path / "clew.db")).close()
    shutil.copy(tmp_path / "clew.db", tmp_path / "whole.db")
    return tmp_path


def overwritten(page: int) -> Damage:
    noise = random.Random(1).randbytes(PAGE)
    return lambda raw: raw[: (page - 1) * PAGE] + noise + raw[page * PAGE :]


def root(home: Path, name: str) -> int:
    """The page on which a table or an index begins."""
    with closing(sqlite3.connect(home / "whole.db")) as db:
        [[page]] = db.execute("select rootpage from sqlite_master where name = ?", (name,)).fetchall()
    return int(page)


def damaged(home: Path, damage: Damage) -> bytes:
    path = home / "clew.db"
    raw = damage(path.read_bytes())
    path.write_bytes(raw)
    return raw


def examined(home: Path, *options: str) -> list[tuple[str, str]]:
    """What the doctor finds, each with its remedy."""
    done = run(home, "doctor", "--json", *options)
    assert done.exit_code == 1, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    problems = json.loads(done.stdout)["problems"]
    assert problems
    shown = " ".join(run(home, "doctor", *options).output.split())
    for problem in problems:
        assert problem["remedy"]
        assert problem["what"] in shown
    assert "`clew doctor` shows" not in shown
    assert "`clew doctor`" not in shown
    return [(problem["what"], problem["remedy"]) for problem in problems]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda raw: b"Dear diary, " * 500, "not a database: the file begins with b'Dear diary, Dear'"),
        (lambda raw: b"\0" * len(raw), "the file begins with zeros"),
        (lambda raw: raw[:68] + b"\0\0\0\7" + raw[72:], "a database of another program: its application id is 0x7,"),
        (lambda raw: raw[: 10 * PAGE + 9], "the file was cut off: it has 10 of "),
        (lambda raw: raw[:100], "the file was cut off: it has 0 of "),
        (
            lambda raw: raw[:100] + b"\xaa" * (PAGE - 100) + raw[PAGE:],
            "the list of tables, which begins on page 1, cann",
        ),
        (
            lambda raw: raw.replace(b"CREATE TABLE event", b"CREATE TABEL event"),
            "the list of tables, which begins on p",
        ),
    ],
    ids=["text", "zeros", "another program's", "cut off", "only a head", "page 1", "schema"],
)
def test_a_file_that_cannot_be_opened_is_told_by_what_is_wrong_with_it(home: Path, damage: Damage, what: str) -> None:
    raw = damaged(home, damage)
    [(found, remedy)] = examined(home)
    assert found.startswith(what)
    assert "clew backup --restore" in remedy
    assert (home / "clew.db").read_bytes() == raw, "looking changes nothing"
    assert examined(home, "--repair") == [(found, remedy)]
    if "move it away" in remedy:
        (home / "clew.db").rename(home / "away.db")
    assert run(home, "backup", "--restore", home / "whole.db").exit_code == 0
    assert run(home, "doctor").exit_code == 0


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("begins", "table"),
    [
        ("meta", "table meta"),
        ("event", "table event"),
        ("node", "table node"),
        ("node_content", "table node"),
        ("body", "table body"),
        ("branch_at", "table branch"),
        ("session", "table session"),
        ("purge", "table purge"),
        ("learned", "table learned"),
        ("body_text_data", "search index"),
    ],
)
def test_damage_is_told_with_its_table(home: Path, begins: str, table: str) -> None:
    damaged(home, overwritten(root(home, begins)))
    (found, remedy), *_ = examined(home)
    assert found.startswith(f"damage in the {table}")
    assert "restore a backup: `clew backup --restore FILE`" in remedy
    for what, told in examined(home, "--repair"):
        assert "damage in" in what or "cannot be repaired" in what or "clew doctor" not in told
    assert run(home, "backup", "--restore", home / "whole.db").exit_code == 0
    assert run(home, "doctor").exit_code == 0


def test_a_page_is_named_where_the_database_names_it(home: Path) -> None:
    page = root(home, "node")
    flipped = lambda raw: raw[: (page - 1) * PAGE + 8] + b"\xff\xff" * 8 + raw[(page - 1) * PAGE + 24 :]  # noqa: E731
    damaged(home, flipped)
    assert any(f"page {page}" in what or "malformed" in what for what, _ in examined(home))


def test_what_can_still_be_read_can_be_saved_as_the_remedy_says(home: Path) -> None:
    damaged(home, overwritten(root(home, "purge")))
    assert "clew export NAME -o FILE" in examined(home)[0][1]
    assert run(home, "export", "s0", "-o", home / "s0.jsonl").exit_code == 0
    assert (home / "s0.jsonl").read_bytes().count(b"\n") > 10


def test_a_write_ahead_log_that_is_lost_is_named(home: Path) -> None:
    damaged(home, lambda raw: raw[: 10 * PAGE])
    (home / "clew.db-mark").write_text("x 1")
    assert [what for what, _ in examined(home)][1].startswith("the write-ahead log is missing")
    assert "put clew.db-wal back" in examined(home)[1][1]


def test_the_other_commands_send_to_the_doctor_who_has_an_answer(home: Path) -> None:
    damaged(home, lambda raw: b"\0" * len(raw))
    assert "`clew doctor` shows the damage" in run(home, "sessions").stderr
    examined(home)


def test_a_file_that_is_whole_has_no_damage(home: Path) -> None:
    done = run(home, "doctor", "--deep")
    assert done.exit_code == 0
    assert "damage" not in done.output
    assert damage_at(home / "clew.db") == []


@pytest.mark.parametrize("deep", [(), ("--deep",)])
def test_what_a_newer_clew_wrote_is_no_damage(home: Path, deep: tuple[str, ...]) -> None:
    with closing(sqlite3.connect(home / "clew.db")) as db:
        db.execute("update event set kind = 'verse' where seq = (select max(seq) from event)")
        db.commit()
    [(what, remedy)] = examined(home, *deep)
    assert what == "events that a newer clew wrote and this one cannot read (verse)"
    assert remedy == "upgrade clew"
