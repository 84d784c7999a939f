"""The command line, run as a user runs it: real files, a real store, whole outputs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_group

from clew import __version__
from clew.cli import app
from clew.screens.demo import QUESTIONS
from clew.testing import conversation
from clew.wire import check
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
    assert lines[0] == "A coding session, call by call, in a window of 24,000 tokens"
    calls = [row.split(":")[0] for row in lines[2:12]]
    assert calls == [f"call {n:>4} of 121" for n in (13, 25, 37, 49, 61, 73, 85, 97, 109, 121)]
    table = dict(re.split(r"\s{2,}", row, maxsplit=1) for row in lines[13:18])
    assert list(table) == ["said", "the last call", "all calls", "originals", "requests"]
    assert table["said"] == "87,884 tokens in 241 messages"  # before the last call, as clew stats counts
    assert " instead of 5,419,940 (" in table["all calls"]
    assert re.fullmatch(r"(\d+) of \1 behind summaries come back byte for byte", table["originals"])
    assert table["requests"] == "121, 0 of them break a rule of the provider"

    picture = lines[lines.index("") + 1 :]
    picture = picture[next(n for n, row in enumerate(picture) if row.startswith("What was said")) + 1 :]
    rows = [row.split() for row in picture[: picture.index("")]]
    sums = [int(number.replace(",", "")) for number in rows.pop()]
    assert [int(row[0]) for row in rows] == [*range(1, len(rows) + 1)]
    assert sum(int(row[-1].replace(",", "")) for row in rows) == pytest.approx(sums[1], rel=0.02)
    assert sums[1] < sums[0] / 5
    assert [row for row in lines if row.startswith("? ")] == [f"? {question}" for question in QUESTIONS]
    assert "permanent sessions branch" in " ".join(done.stdout.split())

    commands = re.findall(r"^  clew (.*?)  #", done.stdout, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["show", "recall", "open"]
    assert all(clew(*command.split()).exit_code == 0 for command in commands[:2])


def test_a_demo_in_a_large_window_changes_nothing_and_says_so(clew: Shell) -> None:
    done = clew("demo", "--fast", "--window", 200_000)
    assert "Everything fits: try a smaller --window\n" in done.stdout
    assert "0 of 0 behind summaries come back" in done.stdout
    again = clew("demo", "--fast", "--window", 200_000)
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
    assert "? Where does the ledger listen?\n  recalled assistant: The ledger listens on port 7007." in done.stdout
    assert "port 7007" in (clew.home / "demo.html").read_text()
    assert file.read_text() == lines
    assert not clew.store.exists()
    assert f"clew demo {file}  #" in clew("demo", "--fast", "--window", 200_000).stdout


# --- count ----------------------------------------------------------------------------------------------------------


def test_a_text_is_counted_in_the_vocabulary_of_the_model(clew: Shell) -> None:
    done = clew("count", clew.file("note.txt", "hello world, hello world"), "--model", "gpt-4o")
    assert done.stdout == "5 tokens of text · chars/4 would say 6\no200k_base, exact for gpt-4o\n"


def test_without_a_model_a_count_is_approximate(clew: Shell) -> None:
    done = clew("count", "-", input="hello world")
    assert done.stdout == (
        "2 tokens of text · chars/4 would say 2\no200k_base, approximate: name the model with --model\n"
    )


@pytest.mark.parametrize("shape", ["body", "list", "lines"])
def test_a_conversation_is_counted_by_kind(clew: Shell, shape: str) -> None:
    messages = [{"role": "system", "content": "Be brief."}, *talk()[:3], {"role": "assistant", "content": "Done."}]
    done = clew("count", clew.file("talk.json", shaped(messages, shape)), "--model", "gpt-4o")
    rows = [row.split() for row in done.stdout.splitlines()]
    assert rows == [
        ["items", "tokens", "chars/4"],
        ["frame", "10", "2"],
        ["user", "1", "8", "3"],
        ["calls", "1", "19", "4"],
        ["results", "1", rows[4][2], f"{len(ODD) // 4:,}"],
        ["assistant", "1", "6", "1"],
        ["in", "all", "4", rows[6][3], f"{(9 + 14 + 19 + len(ODD) + 5) // 4:,}"],
        ["o200k_base,", "exact", "for", "gpt-4o"],
    ]
    assert int(rows[6][3].replace(",", "")) == 10 + 8 + 19 + int(rows[4][2].replace(",", "")) + 6


def shaped(messages: list[dict[str, Any]], shape: str) -> str:
    match shape:
        case "body":
            return json.dumps({"model": "gpt-4o", "messages": messages, "temperature": 0})
        case "list":
            return json.dumps(messages, indent=2)
        case _:
            return "".join(json.dumps(m) + "\n" for m in messages)


# --- compress -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["body", "list", "lines"])
@pytest.mark.parametrize("extra", [(), ("--no-store",)])
def test_what_is_compressed_keeps_its_shape_and_fits(clew: Shell, shape: str, extra: tuple[str, ...]) -> None:
    source = clew.file("talk.json", shaped(talk(), shape))
    done = clew("compress", source, "--target", 2_000, "--model", "gpt-4o", *extra)
    assert done.exit_code == 0, done.output
    if shape == "body":
        body = json.loads(done.stdout)
        assert body.keys() == {"model", "messages", "temperature"}
    elif shape == "list":
        body = {"messages": json.loads(done.stdout)}
    else:
        body = {"messages": [json.loads(row) for row in done.stdout.splitlines()]}
    assert body["messages"][-1] == talk()[-1]
    assert not check(body, "openai_chat")
    told = re.match(r"([\d,]+) → ([\d,]+) tokens, \d+% saved; edits: \d+ \w+", done.stderr)
    assert told
    assert int(told[2].replace(",", "")) <= 2_000 < int(told[1].replace(",", ""))
    assert ("clew recall" in done.stderr) == (not extra)
    assert bool(re.search(r"recall [0-9a-f]{10}", done.stdout)) == (not extra)
    assert clew.store.exists() == (not extra)
    assert source.read_text() == shaped(talk(), shape)


@pytest.mark.parametrize("target", [400, 1_000, 4_000, 6_000])
def test_without_a_store_no_id_is_named_that_nobody_can_resolve(clew: Shell, target: int) -> None:
    calls = [
        *talk()[:2],
        {"role": "tool", "tool_call_id": "c1", "content": "a line of output\n" * 900},
        {"role": "user", "content": "They said: recall 0123456789."},
    ]
    source = clew.file("talk.json", json.dumps([*talk(), *calls]))
    done = clew("compress", source, "--target", target, "--model", "gpt-4o", "--no-store")
    assert done.exit_code == 0, done.output
    assert set(re.findall(r"recall (\w+)", done.stdout)) <= {"0123456789"}


def test_what_fits_is_written_as_it_was(clew: Shell) -> None:
    done = clew("compress", "-", input=json.dumps(talk()))
    assert json.loads(done.stdout) == talk()
    assert re.match(r"[\d,]+ tokens fit in 119,808: nothing was changed\n", done.stderr)


def test_an_anthropic_body_comes_back_as_one(clew: Shell) -> None:
    given = conversation(7, 30, "anthropic")
    done = clew("compress", "-", "--window", 8_000, input=json.dumps(given))
    body = json.loads(done.stdout)
    assert {k: v for k, v in body.items() if k != "messages"} == {k: v for k, v in given.items() if k != "messages"}
    assert len(done.stdout) < len(json.dumps(given))
    assert not check(body, "anthropic")


def test_the_input_is_overwritten_only_when_named_as_output(clew: Shell) -> None:
    source = clew.file("talk.json", json.dumps(talk()))
    done = clew("compress", source, "--target", 2_000, "-o", source)
    assert (done.exit_code, done.stdout) == (0, "")
    assert len(json.loads(source.read_text())) < len(talk())
    assert sorted(p.name for p in clew.home.iterdir() if not p.name.startswith("clew.db")) == ["talk.json"]


def test_another_target_starts_anew(clew: Shell) -> None:
    source = clew.file("talk.json", json.dumps(talk()))
    small = clew("compress", source, "--target", 1_200).stdout
    assert len(clew("compress", source, "--target", 3_000).stdout) > len(small)


# --- show -----------------------------------------------------------------------------------------------------------


def test_what_is_stored_is_listed_and_shown(clew: Shell) -> None:
    source = clew.file("talk.json", shaped(talk(), "body"))
    clew("compress", source, "--target", 2_000)
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
    clew("compress", "-", input=json.dumps([{"role": "user", "content": "a\x1b[2Jb"}]))
    assert clew("show", "stdin").stdout.splitlines()[-1] == "  user           13   a�[2Jb"


def test_a_prefix_that_fits_two_sessions_is_refused(clew: Shell) -> None:
    for _ in range(2):
        clew("compress", "-", input=json.dumps(talk()))
    done = clew("show", "stdin")
    assert done.exit_code == 1
    assert re.fullmatch(
        r"clew: stdin matches 2 sessions; give more of it: stdin-\w{4}, stdin-\w{4}\n",
        done.stderr,
    )


# --- recall ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def recalled(clew: Shell) -> str:
    """The id of the long result, as its stand-in names it."""
    short = [*talk()[:3], {"role": "user", "content": "Go on."}]
    done = clew("compress", "-", "--target", 900, input=json.dumps(short))
    found = ID.search(done.stdout)
    assert found, done.output
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
    missing = clew("search", "zebra", "--in", listed)
    assert (missing.exit_code, missing.stderr) == (0, f"clew: no match for 'zebra' in {listed}\n")


def test_what_became_of_facts_is_shown(clew: Shell, recalled: str) -> None:
    listed = clew("show").stdout.splitlines()[1].split()[0]
    first, *others = clew("coverage", listed, "--most", 3).stdout.splitlines()
    assert re.fullmatch(r"\d+ facts: \d+ in view, \d+ recallable, 0 flagged", first)
    assert len(others) <= 3
    fates = json.loads(clew("coverage", listed, "--json").stdout)
    assert len(fates) == int(first.split()[0])
    assert all(clew("recall", f["id"]).exit_code == 0 for f in fates[:3])
    assert "no conversation or session matches 'nobody'" in clew("coverage", "nobody").stderr


def test_a_span_comes_back_item_by_item(clew: Shell) -> None:
    given = talk()
    done = clew("compress", "-", "--target", 700, input=json.dumps(given))
    ids = ID.findall(done.stdout)
    back = clew("recall", ids[0])
    assert "\n── call bash, 15 characters\n" in back.stderr
    assert ODD.encode() in back.stdout_bytes
    assert given[3]["content"] in back.stdout


# --- what goes wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "content", "message"),
    [
        (["compress", "gone"], None, "gone: No such file or directory; give the path of a file, or - for input"),
        (["count", "."], None, ".: Is a directory; give the path of a file, or - for input"),
        (["count", "-"], b"a\xff", "-: not UTF-8 at byte 1; convert it with iconv -t UTF-8"),
        (
            ["count", "-"],
            b"\x1f\x8b\x08",
            "-: is compressed; unpack it with gunzip -c and give - as the file",
        ),
        (["compress", "-"], b"", "-: is empty; expected JSON, or one message per line"),
        (
            ["compress", "-"],
            b"hello",
            "-: not JSON: Expecting value at line 1 column 1; expected JSON, or one message per line",
        ),
        (
            ["compress", "-"],
            b'{"role": "user", "content": "a"}\n{"role"',
            "-: line 2: not JSON: Expecting ':' delimiter at line 1 column 8; expected JSON, or one message per line",
        ),
        (
            ["compress", "-"],
            b'{"role": "user", "content": "a"}\n{"id": 1, "messages": []}',
            "-: line 2 is not a message; give one conversation, one message per line",
        ),
        (
            ["compress", "-"],
            b'{"a": 1}',
            "-: not a conversation; expected an object with `messages`, a list of messages, or one message per line",
        ),
        (
            ["compress", "-", "--format", "morse"],
            b'[{"role": "user"}]',
            "unknown format 'morse': use one of openai_chat, anthropic, openai_responses, bedrock, gemini",
        ),
        (
            ["compress", "-", "-o", "no/such/folder/x"],
            b'[{"role": "user", "content": "a"}]',
            "no/such/folder/x: cannot be written (No such file or directory); choose another place",
        ),
    ],
)
def test_an_error_is_one_line_with_the_remedy(clew: Shell, args: list[str], content: bytes, message: str) -> None:
    done = clew(*args, input=content)
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", f"clew: {message}\n")


def test_looking_makes_no_store(clew: Shell) -> None:
    missing = f"clew: {clew.store}: no store found; clew demo creates one, or use --store\n"
    for args in (["show", "x"], ["recall", "3fa94c21b0"], ["sessions", "--store", str(clew.store)]):
        done = clew(*args)
        assert (done.exit_code, done.stdout, done.stderr) == (1, "", missing)
    for command in ("show", "sessions", "stats"):
        done = clew(command)
        assert (done.exit_code, done.stdout) == (0, "")
        assert done.stderr.startswith("clew: no conversations yet: clew demo makes one")
        assert json.loads(clew(command, "--json").stdout) == []
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
        "clew: scope 'other' is empty: try clew demo, or another --scope\n"
    )
    assert clew("show", "nobody").stderr == (
        "clew: no conversation or session matches 'nobody': clew sessions lists them; or try another scope\n"
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


@pytest.mark.parametrize("args", [["compres"], ["count"], ["demo", "--window", "many"], ["show", "--loud"]])
def test_wrong_usage_is_one_line_and_exit_code_2(clew: Shell, args: list[str]) -> None:
    done = clew(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert re.fullmatch(r"clew: .+ \(see clew( count| demo| show)? --help\)\n", done.stderr)


def test_window_and_target_exclude_each_other(clew: Shell) -> None:
    done = clew("compress", "-", "--window", 9, "--target", 9, input="[]")
    assert (done.exit_code, done.stderr) == (
        2,
        "clew: Invalid value: give --window or --target, not both (see clew compress --help)\n",
    )


# --- the configuration ----------------------------------------------------------------------------------------------


def test_scope_and_window_are_as_configured(clew: Shell) -> None:
    clew.configure('scope = "work"\n[budget]\nwindow = 4_000\n')
    done = clew("compress", "-", input=json.dumps(talk()))
    assert "tokens, " in done.stderr
    assert len(done.stdout) < len(json.dumps(talk()))
    assert clew("show").stdout.splitlines()[1].startswith("stdin-")
    assert clew("show").stdout == clew("show", "--scope", "work").stdout
    assert "scope 'default' is empty" in clew("show", "--scope", "default").stderr


def test_a_wrong_setting_stops_a_command_before_it_does_anything(clew: Shell) -> None:
    clew.configure("scope = 1\nlog = 2\n")
    done = clew("compress", "-", input=json.dumps(talk()))
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 2)
    assert not clew.store.exists()


# --- help, version, the process -------------------------------------------------------------------------------------


def test_the_version(clew: Shell) -> None:
    assert clew("--version").stdout == f"clew {__version__}\n"


@pytest.mark.parametrize("command", sorted(get_group(app).commands))
def test_help_teaches_by_example(clew: Shell, command: str) -> None:
    assert f"Example: clew {command} " in clew(command, "--help").stdout
    assert get_group(app).commands[command].hidden or command in clew("-h").stdout


def test_without_a_command_it_says_what_to_do_first(clew: Shell) -> None:
    told = clew().stdout
    named = re.findall(r"^  clew (\w+)", told, re.MULTILINE)
    assert named[0] == "demo"
    assert set(named) <= set(get_group(app).commands)


@pytest.mark.skipif(os.name == "nt", reason="there a closed pipe is another error")
def test_a_closed_pipe_is_no_news(clew: Shell) -> None:
    source = clew.file("talk.txt", json.dumps(talk() * 20))
    run = f"{sys.executable} -m clew.cli compress {source} --window 1000000 | head -c 1"
    env = {**os.environ, "CLEW_STORE": str(clew.store)}
    done = subprocess.run(run, shell=True, capture_output=True, text=True, env=env)
    assert done.stdout == "["
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
