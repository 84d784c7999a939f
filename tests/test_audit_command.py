"""`clew audit` as a user runs it: real files of each agent, a table, JSON, and a page that gives nothing away."""

import gzip
import json
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import Result

from auditing import Calls, agent, session, user
from clew.audit import AuditReport, read_files, session_files, usual_folders
from clew.audit.reading import FoundFile
from clew.config import Places
from clew.sessions.transcripts import Transcript, write
from clew.sessions.transcripts.opencode_store import DATABASE
from shell import invoke

HOMES = {
    "claude-code": ".claude/projects/-repo/one.jsonl",
    "codex": ".codex/sessions/2026/03/04/rollout-one.jsonl",
    "pi": ".pi/agent/sessions/--repo--/one.jsonl",
}
TEXT = "".join(f"{n:>6}\tline {n} of the file\n" for n in range(1, 41))
SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0" * 2


def clew(*args: object, home: Path, columns: int = 80) -> Result:
    names = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "XDG_DATA_HOME", "FORCE_COLOR", "TTY_COMPATIBLE")
    env: Mapping[str, str | None] = {"HOME": str(home), "COLUMNS": f"{columns}", **dict.fromkeys(names)}
    return invoke(["audit", *map(str, args)], env=env)


def example(name: str = "one") -> Transcript:
    """A session in which a file is lost and read again."""
    calls = Calls()
    history = [
        *user(f"Look at src/a.py and src/b.py. Never push to main without asking me first, session {name}."),
        *agent("We decided to keep the queue in Postgres instead of Redis."),
        *calls.read("/repo/src/a.py", TEXT),
        *calls.run("make build"),
    ]
    later = [*user("Go on."), *calls.read("/repo/src/a.py", TEXT), *agent("Done.")]
    return session(history, later, summaries=[f"src/b.py is next, in session {name}."], name=name)


def put(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def database(path: Path, transcript: Transcript) -> None:
    """The session as opencode itself keeps it."""
    export = json.loads(write(transcript, "opencode"))
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        times = "time_created INT, time_updated INT"
        db.execute(f"CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, title TEXT, {times})")
        db.execute("CREATE TABLE message (id TEXT, session_id TEXT, data TEXT)")
        db.execute("CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT)")
        id = export["info"]["id"]
        db.execute("INSERT INTO session VALUES (?, NULL, '/repo', 'a talk', 1772600000000, 1772600000001)", (id,))
        for message in export["messages"]:
            info = message["info"]
            db.execute("INSERT INTO message VALUES (?, ?, ?)", (info["id"], id, _packed(info)))
            for part in message["parts"]:
                db.execute("INSERT INTO part VALUES (?, ?, ?, ?)", (part["id"], info["id"], id, _packed(part)))
        db.commit()


def _packed(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A machine with all four agents, each with one session."""
    for format, name in HOMES.items():
        put(tmp_path, name, write(example(format), format))
    database(tmp_path / ".local/share/opencode" / DATABASE, example("opencode"))
    return tmp_path


# --- the table ------------------------------------------------------------------------------------------------------


def test_it_looks_where_the_agents_keep_their_sessions_and_ends_with_one_sentence(home: Path) -> None:
    done = clew(home=home)
    assert done.exit_code == 0, done.output
    rows = done.stdout.splitlines()
    assert [row.strip() for row in rows if row and row[0].isalpha()][1:5] == ["claude-code", "codex", "opencode", "pi"]
    assert all(len(row) <= 80 for row in rows)
    told = " ".join(" ".join(rows[-3:]).split())
    # What the user typed to Codex stays as it was: src/b.py is not to be told, and src/a.py is still in view.
    assert (
        "4 of 7 file paths and 0 of 4 commands survived 4 compactions; files were read again 4 times, about $" in told
    )


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
def test_no_line_is_wider_than_the_screen(home: Path, columns: int) -> None:
    assert all(len(row) <= columns for row in clew(home=home, columns=columns).stdout.splitlines())


def test_nothing_is_written_where_the_sessions_are(home: Path) -> None:
    def state() -> dict[str, tuple[int, bytes]]:
        return {str(p): (p.stat().st_mtime_ns, p.read_bytes()) for p in home.rglob("*") if p.is_file()}

    before = state()
    assert clew("--json", home=home).exit_code == 0
    assert state() == before


def test_without_sessions_it_says_where_it_looked(tmp_path: Path) -> None:
    done = clew(home=tmp_path)
    assert done.exit_code == 1
    for place in ("~/.claude/projects", "~/.codex/sessions", "~/.pi/agent/sessions", "~/.local/share/opencode"):
        assert place in done.stderr


def test_sessions_that_were_never_compacted_have_lost_nothing(tmp_path: Path) -> None:
    put(tmp_path, HOMES["pi"], write(session(user("Hi."), summaries=[]), "pi"))
    done = clew(home=tmp_path, columns=200)
    assert (done.exit_code, done.stdout.startswith("1 session in ~/.claude/projects, ")) == (0, True)


def test_variables_of_the_agents_move_their_folders(tmp_path: Path) -> None:
    places = Places({"HOME": "/home/me", "CODEX_HOME": "/data/codex", "CLAUDE_CONFIG_DIR": "~/c"}, tmp_path, "linux")
    found = usual_folders(places)
    assert found["codex"] == [Path("/data/codex/sessions"), Path("/data/codex/archived_sessions")]
    assert found["claude-code"] == [Path("/home/me/c/projects")]
    assert found["pi"] == [Path("/home/me/.pi/agent/sessions")]


# --- files ----------------------------------------------------------------------------------------------------------


def test_what_cannot_be_read_is_listed_and_skipped(home: Path, tmp_path: Path) -> None:
    put(home, ".claude/projects/-repo/broken.jsonl", b'{"uuid": "1", "parentUuid": null}\nno json isCompactSummary\n{}')
    put(home, ".claude/projects/-repo/notes.json", b'{"some": "thing"}')
    put(home, ".claude/projects/-repo/damaged.jsonl.gz", gzip.compress(b"{}" * 99)[:-9])
    put(home, ".claude/projects/-repo/empty.jsonl", b"")
    put(home, "other/opencode.db", b"SQLite format 3\0 and no more")
    done = clew(home / ".claude", home / "other", home / "nowhere.jsonl", "--json", home=home)
    assert done.exit_code == 0, done.output
    skipped = {Path(each["file"]).name: each["why"] for each in json.loads(done.stdout)["skipped"]}
    assert set(skipped) == {"broken.jsonl", "damaged.jsonl.gz", "opencode.db", "nowhere.jsonl"}
    assert "skipped" in clew(home / ".claude", home=home).stderr


def test_a_file_that_is_asked_for_and_is_no_session_is_said_to_be_none(home: Path) -> None:
    notes = put(home, "notes.json", b'{"some": "thing"}')
    assert "no session of an agent that clew knows" in clew(notes, home=home).stderr


def test_packed_files_and_folders_are_read_each_once(tmp_path: Path) -> None:
    file = put(tmp_path, "a/one.jsonl.gz", gzip.compress(write(example(), "claude-code")))
    found = json.loads(clew(file, tmp_path, file.parent, "--json", home=tmp_path).stdout)
    assert (found["files"], found["sessions"], len(found["compactions"])) == (1, 1, 1)


def test_old_files_are_left_out_on_request(home: Path) -> None:
    os.utime(home / HOMES["pi"], (1, 1))
    found = json.loads(clew("--since", "1", "--json", home=home).stdout)
    assert "pi" not in {each["agent"] for each in found["compactions"]}
    assert found["files"] == 3


def test_several_processes_find_what_one_finds(tmp_path: Path) -> None:
    calls = Calls()
    for n in range(4):
        history = [*user(f"Look at src/file{n}.py."), *calls.run("make all", "a line of output\n" * 2_000)]
        put(tmp_path, f"{n}.jsonl", write(session(history, user("On."), summaries=[f"file{n}.py"], name=f"{n}"), "pi"))
    put(tmp_path, "broken.jsonl", b'{"id": 1, "parentId": 2, "type": "message"}\n"compaction"\n' * 2)
    files, _ = session_files([tmp_path])
    heard: list[int] = []
    alone, together = (AuditReport.of([], read_files(files, n, progress=heard.append, alone=0)) for n in (1, 2))
    assert alone.as_json() == together.as_json()
    assert len(alone.compactions) == 4
    assert sum(heard) == 2 * sum(file.bytes for file in files)


class Deadly:
    """A path that no process lives through."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (1,)

    def __str__(self) -> str:
        return "deadly.jsonl"


def test_a_process_that_dies_takes_only_its_own_file_along(tmp_path: Path) -> None:
    for n in range(3):
        put(tmp_path, f"{n}.jsonl", write(example(f"{n}"), "pi"))
    files, _ = session_files([tmp_path])
    deadly = FoundFile(cast(Path, Deadly()), 1, asked_for=False)
    found = list(read_files([files[0], deadly, *files[1:]], 2, alone=0))
    assert sorted(len(one.compactions) for one in found) == [0, 1, 1, 1]
    assert [one.file for one in found if one.fault] == ["deadly.jsonl"]


# --- JSON -----------------------------------------------------------------------------------------------------------


def test_json_has_a_shape_that_stays(home: Path) -> None:
    found = json.loads(clew("--json", home=home).stdout)
    assert list(found) == [
        "version",
        "looked_in",
        "files",
        "bytes",
        "sessions",
        "skipped",
        "repeated",
        "totals",
        "compactions",
    ]
    row = next(each for each in found["compactions"] if each["agent"] == "opencode")
    facts, again = row.pop("facts"), row.pop("looked_up_again")
    assert row == {
        "agent": "opencode",
        "session": row["session"],
        "number": 1,
        "model": "claude-opus-4-5",
        "at": row["at"],
        "trigger": "auto",
        "tokens_before": row["tokens_before"],
        "tokens_after": row["tokens_after"],
        "readable": True,
    }
    assert facts["paths"] == {"before": 2, "kept": 1, "needed_again": 1}
    assert (facts["decisions"]["before"], facts["rules"]["before"]) == (1, 1)
    assert (again["files"], again["tokens"] > 0, again["dollars"] > 0) == (1, True, True)


def test_content_comes_on_request_and_without_secrets(tmp_path: Path) -> None:
    calls = Calls()
    history = [
        *user(f"The token is {SECRET}, use it in src/a.py."),
        *calls.run(f"curl -H 'Authorization: Bearer {SECRET}' https://x.org/api"),
        *calls.run("deploy --password 'correct horse 4711 battery' --to prod"),
    ]
    file = put(tmp_path, "one.jsonl", write(session(history, user("On."), summaries=["-"]), "claude-code"))
    plain, told = (json.loads(clew(file, "--json", *more, home=tmp_path).stdout) for more in ([], ["--content"]))
    assert "lost" not in plain["compactions"][0]
    assert told["compactions"][0]["lost"]["paths"] == ["src/a.py"]
    text = json.dumps(told)
    assert "src/a.py" in text
    assert SECRET not in text
    assert "battery" not in text
