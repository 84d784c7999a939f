"""The command line, run as a user runs it: real files, a real store, whole outputs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clew import __version__
from clew.cli.groups import GROUPS, HIDDEN, MODULES, MOVED
from clew.screens.demo import QUESTIONS
from shell import Shell

ODD = (
    "first line\r\n\ttabbed  \nÜber 東京 🙂\x00\x1b[31mred\n"
    + "x" * 400
    + "\n"
    + "error: no such table\n" * 300
    + "end"
)
ID = re.compile(r"recall ([0-9a-f]{10})")


@pytest.fixture
def clew(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def talk() -> list[dict[str, Any]]:
    """A short conversation with one long result, long ago."""
    function = {"name": "bash", "arguments": '{"cmd": "make"}'}
    later = [
        {"role": r, "content": f"{r} says {n}: " + "and so on " * 30} for n in range(20) for r in ("user", "assistant")
    ]
    return [
        {"role": "user", "content": "Fix the build."},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": ODD},
        *later,
        {"role": "user", "content": "What failed first?"},
    ]


# --- demo -----------------------------------------------------------------------------------------------------------


def test_the_demo_shows_before_and_after_and_ends_with_commands_that_work(clew: Shell) -> None:
    done = clew("demo", "--fast")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "A coding session, call by call, in a window of 24,000 tokens (a request: 18,000)"
    calls = [row.split(":")[0] for row in lines[2:12]]
    assert calls == [f"call {n:>4} of 121" for n in (13, 25, 37, 49, 61, 73, 85, 97, 109, 121)]
    table = dict(re.split(r"\s{2,}", row, maxsplit=1) for row in lines[13:18])
    assert list(table) == ["conversation", "the last call", "all calls", "originals", "requests"]
    assert table["conversation"] == "87,884 tokens in 241 messages"  # before the last call, as clew stats counts
    assert " instead of 5,419,940 (" in table["all calls"]
    assert re.fullmatch(r"(\d+) of \1 behind summaries come back byte for byte", table["originals"])
    assert table["requests"] == "121, 0 of them break a rule of the provider"

    picture = lines[lines.index("") + 1 :]
    picture = picture[next(n for n, row in enumerate(picture) if row.startswith("The requests")) + 1 :]
    rows = picture[: picture.index("")]
    pairs = [re.search(r" ([\d,]+) +([\d,]+)(?:  [^\d]+)?$", row) for row in rows]
    *amounts, (before, after) = [[int(n.replace(",", "")) for n in pair.groups()] for pair in pairs if pair]
    assert [row.split()[0] for row in rows] == [*map(str, range(1, len(rows))), "tokens"]
    assert sum(row[1] for row in amounts) == pytest.approx(after, rel=0.02)
    assert after < before / 5
    assert not [row for row in lines if row != row.rstrip()]
    assert [row for row in lines if row.startswith("? ")] == [f"? {question}" for question in QUESTIONS]
    assert "permanent sessions branch" in " ".join(done.stdout.split())

    commands = re.findall(r"^  clew (.*?)  #", done.stdout, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["show", "recall", "open"]
    assert all(clew(*command.split()).exit_code == 0 for command in commands[:2])

    again = clew("demo", "--fast", "--window", 200_000)
    assert "Everything fits: try a smaller --window\n" in again.stdout
    assert "0 of 0 behind summaries come back" in again.stdout
    assert "clew show demo  #" in done.stdout
    assert "clew show demo-2  #" in again.stdout
    assert clew("show", "demo").exit_code == 0  # the first, whoever else is called demo-2


def test_a_session_of_ones_own_is_replayed_and_nothing_of_it_is_kept(clew: Shell) -> None:
    rows = [{"type": "user", "uuid": "u", "message": {"role": "user", "content": "Which ports are there?"}}]
    for n in range(60):
        said = (
            [{"type": "text", "text": "The ledger listens on port 7007."}]
            if n == 7
            else [{"type": "text", "text": f"Checked host {n}. " + "It answers as usual. " * 150}]
        )
        rows += [
            {"type": "assistant", "uuid": f"a{n}", "message": {"role": "assistant", "content": said}},
            {"type": "user", "uuid": f"u{n}", "message": {"role": "user", "content": "Go on."}},
        ]
    lines = "".join(json.dumps({"sessionId": "s", "cwd": "/p", "version": "2.1.0"} | row) + "\n" for row in rows)
    folder = clew.home / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    file = folder / "s.jsonl"
    file.write_text(lines)
    done = clew("demo", file, "--fast", "--ask", "Where does the ledger listen?", "--html", clew.home / "demo.html")
    assert done.exit_code == 0, done.output
    assert "? Where does the ledger listen?\n  recalled, assistant: The ledger listens on port 7007." in done.stdout
    assert "port 7007" in (clew.home / "demo.html").read_text()
    assert file.read_text() == lines
    assert not clew.store.exists()
    assert f"clew demo {file}  #" in clew("demo", "--fast", "--window", 200_000).stdout


# --- show -----------------------------------------------------------------------------------------------------------


def test_what_is_stored_is_listed_and_shown(clew: Shell) -> None:
    clew.talked(talk(), 2_000, "talk-1")
    heads, row, *_ = clew("show").stdout.splitlines()
    assert heads.split() == ["session", "when", "calls", "items", "sent", "cost"]
    session, _, _, calls, items, _ = row.split()
    assert (calls, items) == ("1", "44")
    shown = clew("show", session)
    newest = json.loads(clew("sessions", "--json").stdout)[-1]
    assert (newest["name"], newest["cause"], newest["number"]) == (session, "compaction", 2)
    assert shown.stdout == clew("show", newest["id"]).stdout == clew("show", newest["id"][:6]).stdout
    assert shown.stdout == clew("show", "talk").stdout == clew("show", f"{session}.2").stdout
    above, below = shown.stdout.split("\n\n")
    assert re.fullmatch(r"[\d,]+ sent of 2,003 · [\d,]+ said · \d+% saved", above.splitlines()[-1])
    lines = below.splitlines()
    assert lines[0] == "  user            8   Fix the build."
    assert re.fullmatch(r"▸ \w+ +\d+   [0-9a-f]{10} stands for \d+ items?, [\d,]+ tokens   by code", lines[1])
    assert lines[-1] == "  user            8   What failed first?"


def test_a_shown_line_moves_no_cursor(clew: Shell) -> None:
    clew.talked([{"role": "user", "content": "a\x1b[2Jb"}], 9_000)
    assert clew("show", "talk").stdout.splitlines()[-1] == "  user           13   a�[2Jb"


def test_a_prefix_that_fits_two_sessions_is_refused(clew: Shell) -> None:
    for name in ("talk-1", "talk-2"):
        clew.talked(talk(), 9_000, name)
    done = clew("show", "talk")
    assert done.exit_code == 1
    assert re.fullmatch(r"clew: talk matches 2 sessions; give more of it: talk-\d, talk-\d\n", done.stderr)


# --- recall ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def recalled(clew: Shell) -> str:
    """The id of the long result, as its stand-in names it."""
    short = [*talk()[:3], {"role": "user", "content": "Go on."}]
    found = ID.search(clew.talked(short, 900))
    assert found
    return found[1]


def test_an_original_comes_back_byte_for_byte(clew: Shell, recalled: str) -> None:
    done = clew("recall", recalled)
    assert done.stdout_bytes == ODD.encode()
    assert done.stderr == f"{recalled}: result, {len(ODD):,} characters in 305 lines\n"


def test_some_lines_of_an_original(clew: Shell, recalled: str) -> None:
    assert clew("recall", recalled, "--lines", "1-2").stdout_bytes == b"first line\r\n\ttabbed  \n"
    assert clew("recall", recalled, "--lines", "305").stdout_bytes == b"end\n"
    assert clew("recall", recalled, "--lines", "300-", "--grep", "^e").stdout == (
        "".join(f"{n}:error: no such table\n" for n in range(300, 305)) + "305:end\n"
    )


def test_a_search_shows_ids_and_lines(clew: Shell, recalled: str) -> None:
    listed = clew("show").stdout.splitlines()[1].split()[0]
    done = clew("search", "which table is missing?", "--in", listed)
    assert done.stdout.splitlines()[0].startswith(f"{recalled}  {listed}  result of ")
    assert "error: no such table" in done.stdout
    for hit in re.split(r"^(?=\S)", done.stdout, flags=re.MULTILINE):
        numbers = re.findall(r"^ +(\d+)  ", hit, re.MULTILINE)
        assert len(set(numbers)) == len(numbers)
    missing = clew("search", "zebra", "--in", listed)
    assert (missing.exit_code, missing.stderr) == (0, f"clew: no match for 'zebra' in {listed}\n")


def test_what_became_of_facts_is_shown(clew: Shell, recalled: str) -> None:
    listed = clew("show").stdout.splitlines()[1].split()[0]
    first, *others = clew("show", "--facts", listed).stdout.splitlines()
    assert re.fullmatch(r"\d+ facts: \d+ in view, \d+ recallable, 0 flagged", first)
    assert len(others) <= 20
    fates = json.loads(clew("show", "--facts", listed, "--json").stdout)
    assert len(fates) == int(first.split()[0])
    assert all(clew("recall", f["id"]).exit_code == 0 for f in fates[:3])
    assert "no conversation or session matches 'nobody'" in clew("show", "--facts", "nobody").stderr


def test_a_span_comes_back_item_by_item(clew: Shell) -> None:
    given = talk()
    back = clew("recall", ID.findall(clew.talked(given, 700))[0])
    assert "\n── call bash, 15 characters\n" in back.stderr
    assert ODD.encode() in back.stdout_bytes
    assert given[3]["content"] in back.stdout


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_looking_makes_no_store(clew: Shell) -> None:
    for named in ([], ["--store", str(clew.store)]):
        missing = (
            f"clew: {clew.store}: no store found; `{' '.join(['clew', 'demo', *named])}` creates one, or use --store\n"
        )
        for args in (["show", "x"], ["recall", "3fa94c21b0"]):
            done = clew(*args, *named)
            assert (done.exit_code, done.stdout, done.stderr) == (1, "", missing)
    for command in ("show", "sessions", "sessions --totals"):
        done = clew(*command.split())
        assert (done.exit_code, done.stdout) == (0, "")
        assert "no conversations yet in " in done.stderr
        assert "--store agent.db" in done.stderr
        assert json.loads(clew(*command.split(), "--json").stdout) == []
    assert not clew.store.exists()


def test_a_foreign_file_is_left_alone(clew: Shell) -> None:
    foreign = clew.file("photo.db", "not a database" * 20)
    done = clew("show", "--store", foreign)
    assert done.stderr == f"clew: {foreign}: exists and is not a clew store; choose another place\n"
    assert foreign.read_text() == "not a database" * 20


def test_what_is_not_there_says_where_to_look(clew: Shell, recalled: str) -> None:
    assert clew("recall", recalled, "--scope", "other").stderr == (
        f"clew: no item has the id {recalled} (scope 'other'); try another --scope or --store\n"
    )
    assert clew("show", "--scope", "other").stderr == (
        "clew: scope 'other' is empty: try `clew demo --scope other`, or another --scope\n"
    )
    assert clew("show", "nobody").stderr == (
        "clew: no conversation or session matches 'nobody': `clew sessions` lists them; or try another scope\n"
    )
    for extra, message in [
        (("--lines", "9000-"), "there are only 305 lines, none of them in 9000-"),
        (("--lines", "b-a"), "lines b-a: expected 10-20, 10- or 10; the first line is 1"),
        (("--grep", "nowhere"), "no line of 305 matches nowhere"),
        (("--grep", "nobody("), "no line of 305 matches nobody("),
    ]:
        done = clew("recall", recalled, *extra)
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr.splitlines()[1].startswith(f"clew: {message}")


@pytest.mark.parametrize("args", [["compres"], ["resume"], ["demo", "--window", "many"], ["show", "--loud"]])
def test_wrong_usage_is_one_line_and_exit_code_2(clew: Shell, args: list[str]) -> None:
    done = clew(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert re.fullmatch(r"clew: .+ \(see clew( resume| demo| show)? --help\)\n", done.stderr)


@pytest.mark.parametrize("command", MOVED)
def test_a_command_that_there_was_says_what_to_use(clew: Shell, command: str) -> None:
    done = clew(command, "talk.json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"clew: `clew {command}` is now `{MOVED[command]}`\n"
    old, *arguments = MOVED[command].split()
    assert old != "clew" or arguments[0] in MODULES


# --- the configuration ----------------------------------------------------------------------------------------------


def test_the_scope_is_as_configured(clew: Shell) -> None:
    clew.configure('scope = "work"\n')
    assert clew("import", clew.file("talk.json", json.dumps(talk())), "--as", "talk").exit_code == 0
    assert "talk" in clew("show").stdout.splitlines()[1]
    assert clew("show").stdout == clew("show", "--scope", "work").stdout
    assert "scope 'default' is empty" in clew("show", "--scope", "default").stderr


def test_a_wrong_setting_stops_a_command_before_it_does_anything(clew: Shell) -> None:
    clew.configure("scope = 1\nlog = 2\n")
    done = clew("import", clew.file("talk.json", json.dumps(talk())))
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 2)
    assert not clew.store.exists()


# --- help, version, the process -------------------------------------------------------------------------------------


def test_the_version(clew: Shell) -> None:
    assert clew("--version").stdout == f"clew {__version__}\n"


@pytest.mark.parametrize("command", sorted(MODULES))
def test_help_teaches_by_example(clew: Shell, command: str) -> None:
    assert f"Example: clew {command} " in clew(command, "--help").stdout


def test_help_names_all_commands_but_the_hidden(clew: Shell) -> None:
    told = clew("-h").stdout
    listed = [name for group in GROUPS.values() for name in group]
    assert re.findall(r"^  (\w+)  ", told, re.MULTILINE) == listed
    assert not {*listed} & {*HIDDEN}
    assert told.count("\n") < 40, "on one screen"
    assert max(map(len, told.splitlines())) <= 80


def test_without_a_command_it_says_what_to_do_first(clew: Shell) -> None:
    assert re.findall(r"^  (\w+)  ", clew().stdout, re.MULTILINE) == [*GROUPS["Start here"]]


@pytest.mark.skipif(os.name == "nt", reason="there a closed pipe is another error")
def test_a_closed_pipe_is_no_news(clew: Shell) -> None:
    clew.talked(talk() * 20, 1_000_000)
    run = f"{sys.executable} -m clew.cli resume talk | head -c 1"
    env = {**os.environ, "CLEW_STORE": str(clew.store)}
    done = subprocess.run(run, shell=True, capture_output=True, text=True, env=env)
    assert done.stdout == "{"
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
