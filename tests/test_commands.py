"""The commands for sessions, run as a user runs them: a real store, whole outputs."""

import asyncio
import gzip
import json
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clew import Budget, Engine, Request, Sessions, SQLite, body
from clew.cli.serve import everything_to, upstreams
from clew.config import load
from clew.core.view import View
from clew.engine.append import Addition
from clew.errors import TooLarge
from clew.gateway.upstreams import Upstreams
from clew.sessions.transcripts.source import data_of
from clew.store.records import Origin
from clew.tokens.target import Target
from clew.wire import decode
from clew.wire.formats import FORMATS
from shell import Shell, invoke
from test_sessions import Run, message

WINDOW = "[budget]\nwindow = 6_000\nreserve = 500\n"
DATE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")
EVIL = "evil\x1b[2J [red]name[/red]"


def said(text: str) -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}


async def fill(path: Path) -> list[View]:
    """A chain of compactions with all that may come of one; what was sent in each of its calls."""
    store = SQLite(path)
    engine = Engine(store, Budget(window=6_000, reserve=500))
    run = Run(engine)
    while (await run.turn()).seq == 1 or (await Sessions(engine).get("run")).number < 4:
        tokens = engine.limits._meters["gpt-4o", "openai_chat"].nodes(run.sent[-1].nodes).tokens + 3
        await engine.observe(run.sent[-1], {"input_tokens": tokens, "output_tokens": 50})
    sessions = Sessions(engine)
    await sessions.fork("run.2", "try")
    await engine.prepare(Addition(said("Another way: beware of zebras."), "try"))
    await engine.prepare(Addition(said("Look it up."), "helper", origin=Origin("subagent", run.sent[-1].branch)))
    await engine.prepare(Addition(said("hidden \x1b[31m colours"), EVIL))
    await engine.prepare(Request(said("What is \x1b[31mred?")))
    await store.close()
    return run.sent


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[View]]:
    path = tmp_path_factory.mktemp("made") / "clew.db"
    return path, asyncio.run(fill(path))


@pytest.fixture
def clew(tmp_path: Path, made: tuple[Path, list[View]]) -> Shell:
    shell = Shell(tmp_path)
    shutil.copy(made[0], shell.store)
    shell.configure(WINDOW)
    return shell


def listed(clew: Shell, *args: object) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(clew("sessions", "--json", *args).stdout)
    return rows


def lines(text: str) -> list[str]:
    """What was printed, with every date the same."""
    return [DATE.sub("DATE", line).rstrip() for line in text.splitlines()]


def no_control(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in text)


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_conversations_are_listed_with_their_chains_and_what_came_of_them(clew: Shell) -> None:
    done = clew("sessions")
    rows = [re.sub(r" +DATE.*", "", line) for line in lines(done.stdout)]
    unnamed = next(s["id"] for s in listed(clew) if s["name"] is None)
    assert rows == [
        "session                               when  calls  items    sent     cost",
        f"{unnamed[:10]} What is �[31…",
        "evil�[2J [red]name[/red]",
        "run",
        "   1 start",
        "   2 compaction",
        "    fork try",
        "       1 fork",
        "       2 compaction",
        "   3 compaction",
        "   4 compaction",
        "    subagent helper",
    ]
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_a_row_says_what_a_session_took(clew: Shell) -> None:
    second = next(s for s in listed(clew) if (s["name"], s["number"]) == ("run", 2))
    row = next(line for line in lines(clew("sessions").stdout) if line.startswith("   2 compaction"))
    numbers = f"{second['calls']:,} {second['items']:,} {second['sent']:,} ${second['cost']:.4f}"
    assert row.split() == ["2", "compaction", "DATE", *numbers.split()]
    assert second["cost"] > 0


def test_a_name_lists_the_whole_conversation_that_it_is_of(clew: Shell) -> None:
    assert {s["name"] for s in listed(clew, "try")} == {"run", "try", "helper"}
    assert clew("sessions", "try").stdout == clew("sessions", "run").stdout


def test_a_long_chain_is_flat_and_short_among_others(clew: Shell) -> None:
    async def lengthen() -> None:
        store = SQLite(clew.store)
        await Run(Engine(store, Budget(window=6_000, reserve=500)), "long").until(21)
        await store.close()

    asyncio.run(lengthen())
    whole = [line for line in clew("sessions", "long").stdout.splitlines() if "compaction" in line]
    assert [line[:16] for line in whole] == [f"{n:>4} compaction " for n in range(2, 23)]
    short = lines(clew("sessions").stdout)
    assert [line[:15].rstrip() for line in short[1:6]] == [
        "long",
        "   1 start",
        "   2 compaction",
        "   3 compaction",
        "  … 9 more",
    ]
    assert short[15].startswith("  22 compaction")


def test_only_some_are_listed_and_how_many_more_is_said(clew: Shell) -> None:
    done = lines(clew("sessions", "--limit", 1).stdout)
    assert (len(done), done[-1]) == (3, "and 2 conversations more: --limit shows them")


def test_tags_are_given_listed_and_taken_away(clew: Shell) -> None:
    both = clew("set", "run", "--tag", "nightly", "--tag", "slow").stdout
    assert both == clew("set", "run").stdout == "tags      nightly, slow\nmethod    auto\narchived  no\n"
    assert {s["name"] for s in listed(clew, "--tag", "slow")} == {"run", "try", "helper"}
    assert json.loads(clew("set", "run", "--untag", "slow", "--json").stdout)["tags"] == ["nightly"]
    none = clew("sessions", "--tag", "slow")
    assert (none.exit_code, none.stderr) == (0, "clew: no conversation has the tag 'slow'\n")
    assert "run #nightly" in clew("sessions").stdout


def test_what_is_put_away_is_not_listed_until_it_is_asked_for(clew: Shell) -> None:
    assert clew("set", "run", "--archive").stdout.endswith("archived  yes, with 2 conversations that began in it\n")
    assert {s["name"] for s in listed(clew)} == {None, EVIL}
    assert "run archived" in clew("sessions", "--archived").stdout
    assert listed(clew, "run")
    put = json.loads(clew("set", "run", "--unarchive", "--json").stdout)
    assert (put["archived"], len(put["branches"])) == (False, 3)
    assert "run" in {s["name"] for s in listed(clew)}


@pytest.mark.parametrize(
    "command", ["sessions", "show", "sessions --totals", "search colours", "show run --diff", "show run --calls"]
)
def test_no_screen_lets_a_control_character_through(clew: Shell, command: str) -> None:
    done = clew(*command.split())
    assert done.exit_code == 0, done.output
    assert no_control(done.output)


def test_no_name_in_an_error_moves_a_cursor(clew: Shell) -> None:
    assert no_control(clew("show", "\x1b[2J").stderr)
    assert no_control(clew("set", "evil", "--archive").output + clew("fork", "evil", "other").output)


# --- show -------------------------------------------------------------------------------------------------------------


def test_a_window_is_shown_as_a_table_a_bar_and_a_sum(clew: Shell) -> None:
    found = json.loads(clew("show", "run", "--json").stdout)
    parts = {p["kind"]: p for p in found["parts"]}
    assert list(parts) == ["summaries", "user text", "assistant text", "calls", "results"]
    title, heads, *rows = clew("show", "run").stdout.split("\n\n")[0].splitlines()
    assert title == f"run.4 · compaction · gpt-4o · as sent in call {found['call']}"
    assert heads.split() == ["tokens", "share", "items"]
    *rows, bar, told = rows
    assert [row.split()[1] for row in rows] == [kind.split()[0] for kind in parts]
    assert [int(row.split()[-3].replace(",", "")) for row in rows] == [p["tokens"] for p in parts.values()]
    assert re.fullmatch(r"M+U*A*C*R+·+/+", bar)
    assert len(bar) == 80
    assert bar.count("/") == round(80 * 500 / 6_000)
    assert bar.count("·") == pytest.approx(80 * (5_500 - found["sent"]) / 6_000, abs=1)
    assert told == f"{found['sent']:,} sent of 5,500 · {found['whole']:,} said · {found['saved']:.0%} saved"
    assert sum(n["tokens"] for n in found["nodes"]) == sum(p["tokens"] for p in found["parts"])


def test_an_earlier_session_is_shown_as_it_was_last_sent(clew: Shell, made: tuple[Path, list[View]]) -> None:
    found = json.loads(clew("show", "run.2", "--json").stdout)
    sent = made[1][found["call"] - 1]
    assert [n["id"] for n in found["nodes"]] == [n.id for n in sent.nodes]
    stand_in = next(n for n in found["nodes"] if "stands_for" in n)
    assert stand_in["stands_for"]["items"] == len(json.loads(clew("recall", stand_in["id"], "--json").stdout)["items"])


def test_a_fork_that_was_not_sent_yet_shows_what_would_be(clew: Shell) -> None:
    clew("fork", "run", "fresh")
    shown = clew("show", "fresh").stdout
    assert shown.startswith("fresh.1 · fork · gpt-4o · not sent yet\n")
    assert " would be sent of 5,500 · " in shown


def test_colours_are_in_the_bar_of_a_terminal(clew: Shell) -> None:
    run = [sys.executable, "-m", "clew.cli", "show", "run", "--store", str(clew.store)]
    env = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        run, capture_output=True, check=True, env={**env, "HOME": str(clew.home), "PYTHONPATH": ":".join(sys.path)}
    )
    bar = next(line for line in done.stdout.decode().splitlines() if "█" * 10 in line)
    assert len(re.sub(r"\x1b\[[\d;]*m", "", bar)) == 100
    assert len(set(re.findall(r"\x1b\[([\d;]+)m█", bar))) >= 3


# --- diff -------------------------------------------------------------------------------------------------------------


def test_a_preview_shows_what_would_be_and_changes_nothing(clew: Shell) -> None:
    before = clew("show", "run", "--json").stdout
    told = clew("show", "--preview", "run").stdout
    assert "if it were compacted now" in told
    assert "    [work log, request" in told
    found = json.loads(clew("show", "--preview", "run", "--json", "--focus", "page 3").stdout)
    assert found["tokens"]["after"] < found["tokens"]["before"]
    assert found["stand_ins"][-1]["text"]
    assert clew("show", "run", "--json").stdout == before


def test_a_diff_shows_what_left_what_stands_there_and_what_it_saves(clew: Shell) -> None:
    found = json.loads(clew("show", "--diff", "run", "--json").stdout)
    assert found["session"] == "run.4"
    done = lines(clew("show", "--diff", "run").stdout)
    before, after = found["tokens"]["before"], found["tokens"]["after"]
    assert done[:2] == [
        "run.4 · compaction (auto) · DATE",
        f"{before:,} → {after:,} tokens of 5,500 · {1 - after / before:.0%} less",
    ]
    fresh, cached = (found["dollars"][key] for key in ("fresh", "cached"))
    assert done[2] == (
        f"a call  ${fresh['before']:.4f} → ${fresh['after']:.4f} fresh, "
        f"${cached['before']:.4f} → ${cached['after']:.4f} cached"
    )
    assert done[3:6] == ["spent   0 tokens on making it", "", "left the view   tokens  items"]
    made = found["stand_ins"][0]
    number = len(found["stand_ins"])
    at = done.index(f"{number} stand-in{'s' if number > 1 else ''} in their place")
    sizes = f"{made['before']:,} → {made['after']:,}"
    assert done[at + 1].startswith(f"▸ {made['id']}  by code    {sizes:>16}   [work log")
    assert sum(x["tokens"] for x in found["left"]) - sum(x["after"] for x in found["stand_ins"]) == before - after
    facts = found["coverage"]
    assert f"{sum(facts.values()):,} facts behind stand-ins: {facts['in view']:,} in view, " in "\n".join(done)
    id = found["missing"][0]["id"]
    assert f"recall {id}" in done[at + 3 + number]
    assert found["missing"][0]["fact"] in clew("recall", id).stdout


def test_a_first_request_that_was_compacted_at_once_is_compared(clew: Shell) -> None:
    messages = [said(f"note {n}: " + "all is well, go on. " * 20)["messages"][0] for n in range(60)]
    clew.talked(messages, 2_000)
    found = json.loads(clew("show", "--diff", "talk", "--json").stdout)
    assert found["tokens"]["after"] <= found["tokens"]["limit"] == 2_003 < found["tokens"]["before"]


def test_every_item_that_left_can_be_listed(clew: Shell) -> None:
    left = json.loads(clew("show", "--diff", "run.2", "--json").stdout)["left"]
    done = clew("show", "--diff", "run.2", "--full").stdout.split("\n\n")[1].splitlines()
    assert done[0] == f"{len(left)} items left"
    assert [line.split()[0] for line in done[1:]] == [x["id"][:10] for x in left]


def test_a_fork_is_compared_with_the_newest_compaction_of_its_past(clew: Shell) -> None:
    clew("fork", "run.2", "fresh")
    assert clew("show", "--diff", "fresh").stdout == clew("show", "--diff", "run.2").stdout
    never = clew("show", "--diff", "helper")
    assert (never.exit_code, never.stderr) == (1, "clew: helper has no compaction to show\n")
    first = clew("show", "--diff", "run.1")
    assert first.exit_code == 1
    assert "began with start, not with a compaction" in first.stderr


# --- undo, resume, fork -----------------------------------------------------------------------------------------------


def test_an_undo_says_what_came_back_and_is_seen_in_the_list(clew: Shell) -> None:
    done = clew("undo", "run")
    assert re.fullmatch(r"1 compaction undone: [\d,]+ → [\d,]+ tokens of 5,500\n", done.stdout)
    assert "   4 compaction, undone" in clew("sessions").stdout
    [undone] = [s for s in listed(clew) if s["undone"]]
    assert (undone["name"], undone["number"]) == ("run", 4)
    more = json.loads(clew("undo", "try", "--json").stdout)
    assert more["sessions"] == [s["id"] for s in listed(clew) if (s["name"], s["number"]) == ("try", 2)]
    assert more["before"] < more["after"] < more["limit"] == 5_500


def test_an_undo_that_does_not_fit_is_refused_with_the_numbers(clew: Shell) -> None:
    done = clew("undo", "run", "--count", 3)
    assert (done.exit_code, done.stdout) == (1, "")
    assert re.match(
        r"clew: after this undo the view would have [\d,]+ tokens, and 5,500 fit \([\d,]+ too many; ", done.stderr
    )


def test_a_call_is_resumed_as_it_was_sent(clew: Shell, made: tuple[Path, list[View]]) -> None:
    sent = made[1][3]
    done = clew("resume", "run", "--call", 4)
    assert json.loads(done.stdout) == body(sent)
    assert re.fullmatch(r"run\.4 as sent in call 4: \d+ items, [\d,]+ tokens, openai_chat\n", done.stderr)
    out = clew.home / "request.json"
    again = clew("resume", "run", "--call", 4, "-o", out)
    assert (again.stdout, out.read_text()) == ("", done.stdout)
    wrong = clew("resume", "run", "--call", 100_000)
    assert (wrong.exit_code, wrong.stdout) == (1, "")
    assert wrong.stderr.startswith("clew: no call 100000 in run; there are 1 to ")


def test_the_newest_state_is_resumed_with_its_tail(clew: Shell, made: tuple[Path, list[View]]) -> None:
    done = clew("resume", "run")
    assert json.loads(done.stdout) == body(made[1][-1])
    assert done.stderr.startswith("run.4 now: ")
    assert clew("resume", "run.2").stderr.startswith("run.2 at its end: ")


def test_a_fork_goes_on_by_itself(clew: Shell, made: tuple[Path, list[View]]) -> None:
    sent = made[1][2]
    done = clew("fork", "run", "other", "--call", 3)
    assert (
        done.stdout == "other continues from run.4, call 3: requests with its history and session='other' add to it\n"
    )
    assert json.loads(clew("resume", "other").stdout) == body(sent)
    more = json.loads(clew("fork", "other", "more", "--json").stdout)
    assert (more["name"], more["cause"], more["number"]) == ("more", "fork", 1)
    assert clew("fork", "run", "other").stderr == (
        "clew: a conversation named other already exists; choose another name\n"
    )
    assert "that can be printed" in clew("fork", "run", "a\x1b[2J").stderr


# --- pins, search, recall ---------------------------------------------------------------------------------------------


def test_items_are_pinned_and_let_go(clew: Shell) -> None:
    assert clew("pin", "run").stdout == "nothing is pinned\n"
    rows = clew("show", "run", "--ids").stdout.splitlines()
    row = next(line for line in rows if "mind rule" in line and " user " in line)
    id = row.split()[0]
    pinned = clew("pin", "run", id)
    assert pinned.stdout == clew("pin", "run").stdout
    assert re.fullmatch(rf"{id}  user +Go on with page .*\n", pinned.stdout)
    [held] = json.loads(clew("pin", "run", "--json").stdout)
    assert (held["id"][:10], held["in_view"]) == (id, True)
    assert clew("pin", "run", id, "--off").stdout == "nothing is pinned\n"


def test_what_is_of_another_conversation_cannot_be_pinned(clew: Shell) -> None:
    other = json.loads(clew("show", "try", "--json").stdout)["nodes"][-1]["id"]
    assert clew("pin", "run", other).stderr == f"clew: no item has the id {other}\n"
    span = json.loads(clew("show", "--diff", "run", "--json").stdout)["stand_ins"][0]["id"]
    assert "quoting it would take" in clew("pin", "run", span).stderr, "all that it stands for"
    out = json.loads(clew("show", "--diff", "run", "--json").stdout)["left"][-1]["id"]
    assert "out of view; quoted from the next request on" in clew("pin", "run", out).stdout


def test_search_is_everywhere_in_a_lineage_or_in_a_session(clew: Shell) -> None:
    [hit] = json.loads(clew("search", "zebras", "--json").stdout)
    assert (hit["session"], hit["lines"]) == ("try", [[1, "Another way: beware of zebras."]])
    assert clew("search", "zebras").stdout == f"{hit['id'][:10]}  try  user\n       1  Another way: beware of zebras.\n"
    assert json.loads(clew("search", "zebras", "--in", "run", "--json").stdout) == []
    none = clew("search", "zebras", "--in", "run")
    assert (none.exit_code, none.stderr) == (0, "clew: no match for 'zebras' in run\n")
    assert "run-000" in clew("search", "run-000", "--in", "run").stdout
    assert "run-000" not in clew("search", "run-000", "--in", "run.4", "--only").output.replace("'run-000'", "")
    assert clew("search", "x", "--only").exit_code == 2


def test_an_original_is_recalled_for_a_program(clew: Shell) -> None:
    id = json.loads(clew("search", "zebras", "--json").stdout)[0]["id"]
    found = json.loads(clew("recall", id[:10], "--json").stdout)
    assert found == {
        "id": id[:10],
        "items": [
            {
                "id": id,
                "kind": "text",
                "role": "user",
                "name": "",
                "call_id": "",
                "text": "Another way: beware of zebras.",
            }
        ],
    }
    assert json.loads(clew("recall", id, "--grep", "zebra", "--json").stdout) == {
        "id": id,
        "text": "1:Another way: beware of zebras.\n",
    }


def test_calls_are_those_of_a_conversation_or_of_one_session(clew: Shell) -> None:
    every = json.loads(clew("show", "--calls", "run", "--json").stdout)
    parts = [json.loads(clew("show", "--calls", f"run.{n}", "--json").stdout) for n in range(1, 5)]
    assert [call for part in parts for call in part] == every
    assert [len(part) for part in parts] == [s["calls"] for s in listed(clew) if s["name"] == "run"]


# --- stats ------------------------------------------------------------------------------------------------------------


def test_totals_are_those_of_the_calls(clew: Shell, made: tuple[Path, list[View]]) -> None:
    one = json.loads(clew("sessions", "--totals", "run", "--json").stdout)
    rows = [s for s in listed(clew) if s["name"] == "run"]
    for key in ("calls", "sent", "input", "output", "cached"):
        assert one[key] == sum(s[key] for s in rows)
    assert (one["sessions"], one["compactions"], one["undone"]) == (4, 3, 0)
    assert one["everything"] > one["sent"] > one["said"] > 0
    assert one["saved"] == pytest.approx(1 - one["sent"] / one["everything"])
    assert one["cost_everything"] > one["cost_sent"] > 0
    every = json.loads(clew("sessions", "--totals", "--json").stdout)
    assert every["sessions"] == len(listed(clew))
    assert every["largest"][0]["session"] == "run"


def test_what_everything_would_take_is_what_was_said_before_each_call(clew: Shell) -> None:
    told = json.loads(clew("sessions", "--totals", "run", "--json").stdout)
    engine = Target.of(Budget(6_000, model="gpt-4o")).meter
    calls = json.loads(clew("show", "--calls", "run", "--json").stdout)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all pages."}]
    whole = 0
    for n in range(len(calls)):
        messages += message(n)
        frame, items = decode({"model": "gpt-4o", "messages": messages})
        whole += engine.frame(frame).plus(engine.items(items)).tokens
    assert told["everything"] == pytest.approx(whole, rel=0.02)


# --- doctor -----------------------------------------------------------------------------------------------------------


def damage(clew: Shell, *statements: str) -> None:
    db = sqlite3.connect(clew.store)
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("delete from session where cause = 'compaction'", "sessions that the log has and the list of them has not: 4"),
        ("delete from session where cause = 'start' and calls > 2", "branches without a session: 1"),
        ("delete from session where cause = 'fork'", "branches without a session: 1"),
        ("delete from session", "branches without a session: 5"),
    ],
)
def test_sessions_that_were_lost_are_listed_again(clew: Shell, statement: str, problem: str) -> None:
    clew("undo", "run")
    before = sorted(listed(clew), key=lambda s: s["id"])
    damage(clew, statement)
    doctor = clew("doctor")
    assert doctor.exit_code == 1
    assert problem in doctor.stdout
    assert clew("doctor", "--repair").exit_code == 0
    after = sorted(listed(clew), key=lambda s: s["id"])
    if statement == "delete from session":  # the log does not say whose sub-agent one was
        unknown = {"parent": None, "parent_seq": None}
        before = [s | unknown if s["cause"] == "subagent" else s for s in before]
    assert after == before


def test_rows_that_nothing_is_left_of_are_found_and_dropped(clew: Shell) -> None:
    damage(
        clew,
        "update session set parent = 'gone' where cause = 'subagent'",
        "insert into session (id, scope, branch, seq, cause, at) values ('x', 1, 'nowhere', 0, 'start', 0)",
    )
    told = clew("doctor").stdout
    assert "sessions of no branch: 1\n  → `clew doctor --repair`" in told
    assert "sessions that came of one that is not there: 1\n  → `clew doctor --repair`" in told
    assert clew("doctor", "--repair").exit_code == 0
    assert "helper" in {s["name"] for s in listed(clew)}


def test_a_compaction_that_the_log_does_not_have_needs_a_backup(clew: Shell) -> None:
    damage(
        clew, "delete from event where kind = 'session' and seq = (select max(seq) from event where kind = 'session')"
    )
    told = clew("doctor").stdout
    assert "compactions in the list of sessions that the log does not have: 1\n  → restore a backup" in told


# --- completion and help ----------------------------------------------------------------------------------------------


@pytest.fixture
def complete(clew: Shell) -> Callable[[str], list[str]]:
    def ask(words: str) -> list[str]:
        env = {"_ROOT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
        done = invoke([], env={**env, "HOME": str(clew.home), "CLEW_STORE": str(clew.store)})
        assert done.stderr == ""
        return done.stdout.split()

    return ask


def test_names_are_completed_from_the_store(clew: Shell, complete: Callable[[str], list[str]]) -> None:
    assert complete("clew show r") == ["run"]
    assert complete("clew undo t") == ["try"]
    assert complete("clew search x --in h") == ["helper"]
    assert complete("clew show evil") == []  # not what one would want in a shell
    assert "sessions" in complete("clew ses")
    run = [
        sys.executable,
        "-c",
        "from clew.cli import main; import sys; sys.argv[0] = 'clew'; main()",
    ]
    asked = {"_CLEW_COMPLETE": "complete_bash", "COMP_WORDS": "clew show r", "COMP_CWORD": "2"}
    env = {**asked, "HOME": str(clew.home), "CLEW_STORE": str(clew.store), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(run, capture_output=True, text=True, env=env)
    assert (done.stdout.split(), done.stderr) == (["run"], "")


def test_completion_makes_no_store_and_says_nothing_of_a_broken_one(
    clew: Shell, complete: Callable[[str], list[str]]
) -> None:
    clew.store.write_bytes(b"no database" * 100)
    assert complete("clew show r") == []
    clew.store.unlink()
    assert complete("clew show r") == []
    assert not clew.store.exists()


def test_the_shell_is_told_how_to_complete(clew: Shell) -> None:
    assert "--install-completion" in clew("--help").stdout
    assert "--show-completion" in clew("--help").stdout


HERE = ("fork", "pin", "resume", "search", "sessions", "set", "show", "undo")


def test_every_example_in_the_help_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    clew = Shell(tmp_path)
    clew("demo", "--fast")
    for name in HERE:
        *_, told = clew(name, "--help").stdout.strip().splitlines()
        for example in told.strip().removeprefix("Example: ").split(" · "):
            assert example.split()[:2] == ["clew", name]
            done = clew(*[word.strip('"') for word in re.findall(r'"[^"]+"|\S+', example)][1:])
            assert done.exit_code == 0, (example, done.output)


@pytest.mark.parametrize(
    "content",
    [
        '{"model": "gpt-4o", "messages": [{"role": "user", "content": "hi", "n": %s}]}',
        '{"role": "user", "content": "hi", "n": %s}\n{"role": "assistant", "content": "a"}\n',
        '{"clew":1}\n{"branch": "0123456789abcdef", "n": %s}\n',
    ],
)
def test_a_file_with_a_huge_integer_is_refused_in_one_line(clew: Shell, content: str) -> None:
    file = clew.file("huge.jsonl", content % ("9" * 5_000))
    result = clew("import", file)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "an integer of more than 4,300 digits" in result.stderr


def test_a_packed_file_is_unpacked_as_far_as_sessions_go(clew: Shell) -> None:
    line = json.dumps(said("packed zebras")) + "\n"
    packed = gzip.compress(line.encode()) + gzip.compress(b"\n")
    assert clew("import", clew.file("two.jsonl.gz", packed)).exit_code == 0
    assert "packed zebras" in clew("search", "zebras").stdout
    bomb = Path(clew.file("bomb.gz", gzip.compress(b"0" * 20_000_000)))
    told = rf"bomb.gz: it has {bomb.stat().st_size:,} bytes, and unpacks to more than 2,000,000 bytes; .* gunzip -k "
    with pytest.raises(TooLarge, match=told):
        data_of(bomb, 2_000_000)
    for damaged in (packed[:40], packed[:20] + b"\xff" * 9 + packed[29:]):
        result = clew("import", clew.file("damaged.gz", damaged))
        assert (result.exit_code, "cannot be unpacked" in result.stderr) == (1, True)


def test_what_prints_data_prints_json_too(clew: Shell) -> None:
    assert "openai/NAME" in json.loads(clew("model", "list", "--json").stdout)
    assert json.loads(clew("config", "path", "--json").stdout)[0]["kind"] == "user"


def test_a_setting_is_taken_back(clew: Shell) -> None:
    assert clew("config", "set", "budget.high", "0.9").exit_code == 0
    assert "now not set (default)" in clew("config", "unset", "budget.high").stdout
    assert clew("config", "get", "budget.high").stdout.strip() == ""


def test_a_port_that_is_taken_names_options_that_the_command_has(clew: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = {
            name: clew(name, "--port", port, *more) for name, more in (("open", ["--no-browser"]), ("serve", []))
        }
    told = {name: f"{result.output} {result.exception}" for name, result in refused.items()}
    assert "cannot listen on 127.0.0.1" in told["open"]
    assert "--host" not in told["open"]
    assert "--port or --host" in " ".join(told["serve"].split())


def test_an_imported_session_is_listed_by_its_first_words_and_found_by_the_beginning_of_its_id(clew: Shell) -> None:
    clew("import", Path(__file__).parent / "sessions" / "pi.jsonl")
    listed = clew("sessions").stdout
    assert "import 7d1f0a52-93c4 Dr…" in listed  # as much of "Draw the map" as 80 columns have room for
    assert "fork 7d1f0a52-93c4-…" in listed
    assert clew("show", "7d1f0a52-93c4").stdout.startswith("7d1f0a52-93c4-4e1b-8a55-0c6f2b9d1e77.2")


@pytest.mark.parametrize("command", ["serve", "open"])
def test_a_port_that_there_is_not_is_refused_in_one_line(clew: Shell, command: str) -> None:
    done = clew(command, "--port", 99_999)
    assert done.exit_code == 2
    assert done.stderr.startswith("clew: Invalid value for '--port'")
    assert done.stderr.count("\n") == 1


def test_a_server_that_all_requests_go_to_needs_no_configuration(tmp_path: Path) -> None:
    home = "https://api.openai.com"
    config = load({"HOME": str(tmp_path), "OPENAI_API_KEY": "k"}, tmp_path)
    assert home in [upstream.url for upstream in upstreams(config)]
    everything = replace(config, gateway=replace(config.gateway, upstreams=everything_to("http://127.0.0.1:11434/v1")))
    found = Upstreams(upstreams(everything))
    assert {upstream.url for upstream in found.known} == {"http://127.0.0.1:11434"}
    assert not any(upstream.key for upstream in found.known)
    for format in FORMATS:
        if format != "bedrock":
            assert found.find(format, "any-model").url == "http://127.0.0.1:11434"
