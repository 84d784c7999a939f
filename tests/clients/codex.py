"""Codex through the gateway: with a provider of the user's own, and with OpenAI's built in."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driving import KEY, PROGRAMS, Model, Stage, stage

from clew.testing import Answer

BIG = "seq 1 4000"  # 19 kB
WAYS = ["own", "built-in"]


def codex(on: Stage, way: str, *arguments: str, well: bool = True, **settings: int) -> str:
    """What it says to one prompt."""
    env = _settled(on, way, **settings)
    free = ("exec", "--skip-git-repo-check", "--sandbox", "danger-full-access")
    return on.run("codex", *free, *arguments, env=env, well=well)


def _settled(on: Stage, way: str, **settings: int) -> dict[str, str]:
    """Its settings in a file, and what it is told in the environment."""
    home = on.home / ".codex"
    home.mkdir(exist_ok=True)
    lines = ['model = "gpt-5.2-codex"', "check_for_update_on_startup = false", "tool_output_token_limit = 20000"]
    lines += [f"{name} = {value}" for name, value in settings.items()]
    if way == "own":
        lines += ['model_provider = "clew"', "[model_providers.clew]", 'name = "clew"', f'base_url = "{on.url}/v1"']
        lines += ['env_key = "CLEW_KEY"', 'wire_api = "responses"']
    else:
        lines += [f'openai_base_url = "{on.url}/v1"']
    (home / "config.toml").write_text("\n".join([*lines, "[analytics]", "enabled = false", ""]))
    return {"CODEX_HOME": str(home), "CLEW_KEY": KEY, "CODEX_API_KEY": KEY}


def codex_compacts(on: Stage, way: str = "own") -> None:
    """Tell it to compact its newest session, as editors that show it do."""
    env = {**on.env, **_settled(on, way)}
    newest = max((on.home / ".codex/sessions").rglob("*.jsonl"), key=lambda file: file.stat().st_mtime)
    thread = newest.stem[-36:]
    with subprocess.Popen(
        [PROGRAMS / "codex", "app-server"],
        cwd=on.work,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdin
        assert server.stdout

        def ask(number: int, method: str, params: dict[str, object], until: Callable[[dict[str, Any]], bool]) -> None:
            assert server.stdin
            assert server.stdout
            server.stdin.write(json.dumps({"id": number, "method": method, "params": params}) + "\n")
            server.stdin.flush()
            for told in map(json.loads, server.stdout):
                assert "error" not in told, told
                if until(told):
                    return
            raise AssertionError(f"{method}: it ended")

        ask(1, "initialize", {"clientInfo": {"name": "test", "version": "1"}}, lambda told: told.get("id") == 1)
        server.stdin.write('{"method": "initialized"}\n')
        ask(2, "thread/resume", {"threadId": thread}, lambda told: told.get("id") == 2)
        ask(3, "thread/compact/start", {"threadId": thread}, lambda told: told.get("method") == "turn/completed")
        server.stdin.close()


@pytest.mark.parametrize("way", WAYS)
async def test_hi_a_tool_and_a_resumed_session(way: str, tmp_path: Path) -> None:
    model = Model({"say hi": [], "list amber files": ["echo amber-1; ls"], "and again": ["echo amber-2"]})
    with stage(tmp_path, model) as on:
        with on.serving():
            assert "Done: say-hi." in codex(on, way, "say hi")
            assert "Done: list-amber-files." in codex(on, way, "resume", "--last", "list amber files")
        with on.serving():
            assert "Done: and-again." in codex(on, way, "resume", "--last", "and again")
    on.check()
    [main] = await on.conversations()
    assert all(word in main.text for word in ("say hi", "amber-1", "amber-2"))


@pytest.mark.parametrize("way", WAYS)
async def test_far_past_the_window_it_never_compacts(way: str, tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {BIG}" for n in range(25)]
    with stage(tmp_path, Model({"count amber": steps}), window=70_000) as on, on.serving("prevent"):
        assert "Done: count-amber." in codex(on, way, "count amber")
    on.check()
    assert (on.model.summaries, on.answered) == (0, 0)
    [main] = await on.conversations()
    assert all(f"fact-{n}\n" in main.text for n in range(25))


@pytest.mark.parametrize("way", WAYS)
async def test_its_compaction_is_answered_from_the_log(way: str, tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {BIG}" for n in range(16)]
    model = Model({"count amber": steps, "what was it": ["echo amber-after"], "and more": []})
    with stage(tmp_path, model) as on, on.serving("answer"):
        codex(on, way, "count amber", model_auto_compact_token_limit=60_000)
        assert "Done: what-was-it." in codex(on, way, "resume", "--last", "what was it")
        if way == "own":  # OpenAI's own form of a compaction is sealed: what clew puts there, it alone reads
            with on.alone():
                assert "Done: and-more." in codex(on, way, "resume", "--last", "and more")
    on.check()
    assert on.model.summaries == 0
    assert on.answered >= 1
    sent = json.dumps(on.provider.heard[-1].body)
    assert [n for n in range(16) if f"fact-{n};" not in sent] == []
    first, *later = await on.conversations()
    assert all(one.session.parent for one in later)
    assert "count amber" in first.text


@pytest.mark.parametrize(
    "fault",
    [Answer(status=500), Answer("Some words that are cut.", cut=1_500)],
    ids=["500", "cut"],
)
async def test_faults_are_met_as_they_would_be_alone(fault: Answer, tmp_path: Path) -> None:
    with stage(tmp_path, Model({"say hi": []}, first=[fault])) as on, on.serving():
        assert "Done: say-hi." in codex(on, "own", "say hi")
    on.check(refused=True)
    [main] = await on.conversations()
    assert "say hi" in main.text


async def test_a_limit_of_the_provider_is_passed_on(tmp_path: Path) -> None:
    with stage(tmp_path, Model({"say hi": []}, first=[Answer(status=429, retry_after=0.1)])) as on, on.serving():
        codex(on, "own", "say hi", well=False)  # it does not try again, without the gateway as little
        assert "429 Too Many Requests" in on.ran[-1].stderr
        assert "Done: say-hi." in codex(on, "own", "say hi")
    on.check(refused=True)


async def test_what_was_too_long_is_sent_shorter(tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {BIG}" for n in range(14)]
    model, windows = Model({"count amber": steps}), {"gpt-5.2-codex": 60_000}
    with stage(tmp_path, model, window=200_000, models=windows) as on, on.serving():
        assert "Done: count-amber." in codex(on, "own", "count amber")
    on.check()
