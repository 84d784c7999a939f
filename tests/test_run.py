"""`clew run`: an agent for scripts, over a real server on loopback."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import processes
from clew.engine.windows import PROBED
from clew.testing.provider import Answer, Call, StrictProvider
from shell import Typed, typed


def environment(provider: StrictProvider, folder: Path) -> dict[str, str]:
    home = {k: v for k, v in os.environ.items() if not k.startswith(("CLEW_", "XDG_"))}
    own = {"CLEW_AGENT_MODEL": f"{provider.url}/v1#gpt-4o", "CLEW_SUMMARY_MODEL": "none"}  # what it answers is a script
    return home | {"HOME": str(folder / "home")} | own


def clew(provider: StrictProvider, folder: Path, *args: str, **more: str) -> Typed:
    return typed(Path.cwd(), environment(provider, folder) | more, "run", *args, "--in", str(folder))


def another(provider: StrictProvider, folder: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    """The same in a process of its own."""
    return processes.run("-m", "clew.cli", "run", *args, "--in", str(folder), env=environment(provider, folder))


def test_it_reads_answers_and_goes_on_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("the build number is 7431\n")
    script = [
        Answer("", (Call("read_file", {"path": "notes.txt"}),)),
        Answer("It is 7431."),
        Answer("As I said: 7431."),
    ]
    with StrictProvider(script) as provider:
        done = clew(provider, tmp_path, "What is the build number?", "--session", "build")
        assert (done.returncode, done.stdout) == (0, "It is 7431.\n"), done.stderr
        assert "▸ read_file" in done.stderr
        assert "conversation build" in done.stderr
        again = another(provider, tmp_path, "Again?", "--session", "build")
        assert again.stdout == "As I said: 7431.\n"
        said = json.dumps(provider.heard[-1].body)
    assert "the build number is 7431" in said
    assert "What is the build number?" in said


def test_it_changes_and_runs_nothing_unless_it_may(tmp_path: Path) -> None:
    calls = (
        Call("write_file", {"path": "new.txt", "content": "x"}),
        Call("run", {"command": "touch ran.txt"}),
    )
    for flags, there in (((), False), (("--write", "--run"), True)):
        with StrictProvider([Answer("", calls), Answer("Done.")]) as provider:
            done = clew(provider, tmp_path, "Do it.", *flags)
            assert done.returncode == 0, done.stderr
        assert (tmp_path / "new.txt").exists() == there
        assert (tmp_path / "ran.txt").exists() == there


def events(done: Typed) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_programs_get_events_and_failures_an_exit_code(tmp_path: Path) -> None:
    with StrictProvider([Answer("Hello.")]) as provider:
        found = events(clew(provider, tmp_path, "Hi.", "--json"))
        assert "".join(e["delta"] for e in found if e["event"] == "text") == "Hello."
        assert found[-1] == {"event": "answered", "text": "Hello.", "stop": "end", "steps": 1}
    with StrictProvider([Answer(status=401)]) as provider:
        done = clew(provider, tmp_path, "Hi.")
        assert done.returncode == 1
        assert "401" in done.stderr
        failed = clew(provider, tmp_path, "Hi.", "--json")
        assert failed.returncode == 1
        assert events(failed)[-1]["event"] == "failed"


def test_the_agent_decides_where_it_is_told_to_and_the_session_remembers(tmp_path: Path) -> None:
    script = [
        Answer("", (Call("new_session", {"summary": "Task: count. Done: one."}),)),
        Answer("Two."),
        Answer("Three."),
    ]
    with StrictProvider(script) as provider:
        done = clew(provider, tmp_path, "Count.", "--session", "c", "--method", "llm", CLEW_NEW_SESSION_WHEN="50%")
        assert done.stdout == "Two.\n", done.stderr
        assert "a new session begins" in done.stderr
        first, second = (h.body for h in provider.heard)
        assert "used_pct >= 50" in json.dumps(first["tools"])
        begins = "What the user asked for, word for word:\n- request 1: The user: Count.\n\nBy the assistant"
        assert second["messages"][1]["content"].startswith(f"{begins}, not the user:\n  Task: count. Done: one.\n")
        clew(provider, tmp_path, "Go on.", "--session", "c")  # without the flag
        assert "context_status" in json.dumps(provider.heard[-1].body["messages"][-1])


def refusals(provider: StrictProvider) -> int:
    """How many requests did not fit, with the room that they wanted for an answer."""
    asked = [h.spent.input + h.body["max_completion_tokens"] for h in provider.heard]
    return sum(tokens > provider.window for tokens in asked)


def test_a_server_smaller_than_the_catalog_says_refuses_twice_and_then_rarely(tmp_path: Path) -> None:
    for n in range(12):
        (tmp_path / f"p{n}.txt").write_text("\n".join(f"p{n} line {i}: value {n * 1000 + i}" for i in range(120)))
    reads = [Answer(f"Page {n}.", (Call("read_file", {"path": f"p{n}.txt"}),)) for n in range(12)]
    script = [*reads, Answer("All read."), *reads, Answer("Again.")]
    with StrictProvider(script, window=12_000) as provider:  # the catalog says 128,000 of this model
        first = events(clew(provider, tmp_path, "Read all pages.", "--session", "pages", "--json"))
        assert first[-1] == {"event": "answered", "text": "All read.", "stop": "end", "steps": 13}
        assert (refusals(provider), sum(e["event"] == "retrying" for e in first)) == (2, 2)
        again = clew(provider, tmp_path, "And again.", "--session", "pages", "--json", "--method", "llm")
        assert events(again)[-1]["text"] == "Again."
        assert refusals(provider) <= 2 + 13 // PROBED
        told = json.dumps(provider.heard[-1].body["messages"][-1])
    assert '\\"context_window\\":12000' in told
    assert '\\"context_window\\":128000' not in told


def test_nobody_is_told_a_window_that_nobody_knows(tmp_path: Path) -> None:
    with StrictProvider([Answer("Hello.")]) as provider:
        nobody = f"{provider.url}/v1#a-model-of-nobody"
        clew(provider, tmp_path, "Hi.", "--method", "llm", CLEW_AGENT_MODEL=nobody)
        assert "context_status" not in json.dumps(provider.heard[-1].body["messages"])
        clew(provider, tmp_path, "Hi.", "--method", "llm", CLEW_AGENT_MODEL=nobody, CLEW_BUDGET_WINDOW="20000")
        assert '\\"context_window\\":20000' in json.dumps(provider.heard[-1].body["messages"])
