"""Gemini CLI through the gateway."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from driving import KEY, Model, Stage, outcome, stage

from clew.gateway.settings import ClientCompaction
from clew.testing import Answer
from clew.testing.provider import Call

MODEL = "gemini-2.5-flash"
BIG = "seq 1 4000"  # 19 kB
AGAIN = ("--resume", "latest")


def gemini(on: Stage, *arguments: str, well: bool | None = True, **settings: Any) -> str:
    """What it says to one prompt."""
    place = on.home / ".gemini"
    place.mkdir(parents=True, exist_ok=True)
    given = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False},
        **settings,
    }
    (place / "settings.json").write_text(json.dumps(given))
    env = {"GOOGLE_GEMINI_BASE_URL": on.url, "GEMINI_API_KEY": KEY, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    free = ("-m", MODEL, "--approval-mode", "yolo", "--skip-trust")
    return on.run("gemini", *free, *arguments[:-1], "-p", arguments[-1], env=env, well=well)


async def test_hi_a_tool_and_a_resumed_session(tmp_path: Path) -> None:
    model = Model({"say hi": [], "list amber files": ["echo amber-1; ls"], "and again": ["echo amber-2"]})
    with stage(tmp_path, model) as on:
        with on.serving():
            assert "Done: say-hi." in gemini(on, "say hi")
            assert "Done: list-amber-files." in gemini(on, *AGAIN, "list amber files")
        with on.serving():
            assert "Done: and-again." in gemini(on, *AGAIN, "and again")
    on.check()
    [main] = await on.conversations()
    assert all(word in main.text for word in ("say hi", "amber-1", "amber-2"))


async def test_a_sub_agent_has_a_branch_of_its_own(tmp_path: Path) -> None:
    plans: Mapping[str, Sequence[str | Call]] = {
        "delegate amber": [
            Call("invoke_agent", {"agent_name": "generalist", "prompt": "look for cobalt now"}),
            "echo amber-after",
        ],
        "look for cobalt": [
            "echo cobalt-1",
            "echo cobalt-2",
            Call("complete_task", {"result": {"response": "found copper"}}),
        ],
    }
    with stage(tmp_path, Model(plans)) as on, on.serving():
        assert "Done: delegate-amber." in gemini(on, "delegate amber")
    on.check()
    main, agent = await on.conversations()
    assert all(word in main.text for word in ("amber-after", "found copper"))
    assert "cobalt-2" not in main.text
    assert "cobalt-2" in agent.text
    assert "amber" not in agent.text


async def test_far_past_the_window_it_never_compacts(tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {BIG}" for n in range(20)]
    with stage(tmp_path, Model({"count amber": steps}), window=70_000) as on, on.serving("prevent"):
        assert "Done: count-amber." in gemini(on, "count amber", model={"compressionThreshold": 0.08})
    on.check()
    assert (on.model.summaries, on.answered) == (0, 0)
    [main] = await on.conversations()
    assert all(f"fact-{n}\n" in main.text for n in range(20))


@pytest.mark.parametrize("mode", ["prevent", "answer"])
async def test_its_compaction_is_answered_from_the_log(mode: ClientCompaction, tmp_path: Path) -> None:
    """A session that it resumes is as large as its file: nobody has told it another size yet."""
    steps = [f"echo fact-{n}; {BIG}" for n in range(10)]
    model = Model({"count amber": steps, "what was it": ["echo amber-after"]})
    with stage(tmp_path, model, window=70_000 if mode == "prevent" else 200_000) as on, on.serving(mode):
        gemini(on, "count amber")
        assert "Done: what-was-it." in gemini(on, *AGAIN, "what was it", model={"compressionThreshold": 0.02})
    on.check()
    assert (on.model.summaries, on.answered) == (0, 2)
    sent = json.dumps(on.provider.heard[-1].body)
    assert [n for n in range(10) if f"fact-{n}" not in sent] == []
    first, later = await on.conversations()
    assert all(f"fact-{n}\n" in first.text for n in range(10))
    assert "amber-after" in later.text
    assert later.session.cause == "compaction"


@pytest.mark.parametrize(
    "fault",
    [Answer(status=429, retry_after=0.1), Answer(status=500), Answer("Some words that are cut.", cut=200)],
    ids=["429", "500", "cut"],
)
async def test_faults_are_met_as_they_are_alone(fault: Answer, tmp_path: Path) -> None:
    with stage(tmp_path / "alone", Model({"say hi": []}, first=[fault])) as alone, alone.alone():
        gemini(alone, "say hi", well=None)
    with stage(tmp_path / "through", Model({"say hi": []}, first=[fault])) as on, on.serving():
        gemini(on, "say hi", well=None)
    assert outcome(on) == outcome(alone)
    on.check(refused=True)
    [main] = await on.conversations()
    assert "say hi" in main.text


async def test_what_was_too_long_is_sent_shorter(tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {BIG}" for n in range(12)]
    model, windows = Model({"count amber": steps}), {MODEL: 70_000}
    with stage(tmp_path, model, window=200_000, models=windows) as on, on.serving():
        assert "Done: count-amber." in gemini(on, "count amber")
    on.check()
