"""Qwen Code through the gateway."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from driving import KEY, Model, Said, Stage, outcome, stage

from clew.clients.voices import undecorated
from clew.gateway.settings import ClientCompaction
from clew.testing import Answer
from clew.testing.provider import Call

MODEL = "qwen3-coder-plus"
BIG = "seq 1 4000"  # 19 kB; on a busy machine it loses, now and then, what a command printed


def qwen(on: Stage, *arguments: str, well: bool | None = True, window: int = 0, **settings: Any) -> str:
    """What it says to one prompt."""
    place = on.home / ".qwen"
    place.mkdir(parents=True, exist_ok=True)
    given: dict[str, Any] = {
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False},
        **settings,
    }
    if window:
        given["model"] = {"generationConfig": {"contextWindowSize": window}}
    (place / "settings.json").write_text(json.dumps(given))
    env = {"OPENAI_BASE_URL": f"{on.url}/v1", "OPENAI_API_KEY": KEY, "OPENAI_MODEL": MODEL}
    free = ("--auth-type", "openai", "--approval-mode", "yolo")
    return on.run("qwen", *free, *arguments[:-1], "-p", arguments[-1], env=env, well=well)


async def test_hi_a_tool_and_a_resumed_session(tmp_path: Path) -> None:
    model = Model({"say hi": [], "list amber files": ["echo amber-1; ls"], "and again": ["echo amber-2"]})
    with stage(tmp_path, model) as on:
        with on.serving():
            assert "Done: say-hi." in qwen(on, "say hi")
            assert "Done: list-amber-files." in qwen(on, "--continue", "list amber files")
        with on.serving():
            assert "Done: and-again." in qwen(on, "--continue", "and again")
    on.check()
    main, *beside = await on.conversations()
    assert all(word in main.text for word in ("say hi", "echo amber-1", "echo amber-2"))
    assert all("amber" not in one.text for one in beside)
    assert "memory" not in said(main)


async def test_a_sub_agent_has_a_branch_of_its_own(tmp_path: Path) -> None:
    task = {"description": "look", "prompt": "look for cobalt now", "subagent_type": "general-purpose"}
    plans: Mapping[str, Sequence[str | Call]] = {
        "delegate amber": [Call("agent", task), "echo amber-after"],
        "look for cobalt": ["echo cobalt-1", "echo cobalt-2"],
    }
    with stage(tmp_path, Model(plans)) as on, on.serving():
        assert "Done: delegate-amber." in qwen(on, "delegate amber")
    on.check()
    main, agent, *_ = await on.conversations()
    assert "amber-after" in main.text
    assert "cobalt-2" not in main.text
    assert "cobalt-2" in agent.text
    assert "amber" not in agent.text


async def test_far_past_the_window_it_never_compacts(tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {BIG}" for n in range(20)]
    with stage(tmp_path, Model({"count amber": steps}), window=70_000) as on, on.serving("prevent"):
        assert "Done: count-amber." in qwen(on, "count amber", window=70_000)
    on.check()
    assert (on.model.summaries, on.answered) == (0, 0)
    main, *_ = await on.conversations()
    assert all(f"echo fact-{n};" in main.text for n in range(20))


@pytest.mark.parametrize("how", ["by usage", "by command"])
async def test_its_compaction_is_answered_from_the_log(how: str, tmp_path: Path) -> None:
    mode: ClientCompaction = "answer" if how == "by usage" else "prevent"
    many = 14 if how == "by usage" else 4
    steps = [f"echo fact-{n}; {BIG}" for n in range(many)]
    model = Model({"count amber": steps, "what was it": ["echo amber-after"], "and more": []})
    with stage(tmp_path, model) as on, on.serving(mode):
        qwen(on, "count amber", window=100_000 if how == "by usage" else 0)
        if how == "by command":
            qwen(on, "--continue", "/compress")
        assert "Done: what-was-it." in qwen(on, "--continue", "what was it")
        with on.alone():
            assert "Done: and-more." in qwen(on, "--continue", "and more")
    on.check()
    assert on.model.summaries == 0
    assert on.answered >= 1
    sent = json.dumps(on.provider.heard[-1].body)
    assert [n for n in range(many) if f"fact-{n}" not in sent] == []
    main, *later = await on.conversations()
    logged = "".join(one.text for one in (main, *later))
    assert all(f"echo fact-{n};" in logged for n in range(many))
    assert "amber-after" in "".join(one.text for one in later if one.session.cause == "compaction")
    assert sum(one.session.cause == "compaction" for one in later) == 1


@pytest.mark.parametrize(
    "fault",
    [Answer(status=429, retry_after=0.1), Answer(status=500)],
    ids=["429", "500"],
)
async def test_faults_are_met_as_they_are_alone(fault: Answer, tmp_path: Path) -> None:
    with stage(tmp_path / "alone", Model({"say hi": []}, first=[fault])) as alone, alone.alone():
        qwen(alone, "say hi", well=None)
    with stage(tmp_path / "through", Model({"say hi": []}, first=[fault])) as on, on.serving():
        qwen(on, "say hi", well=None)
    assert outcome(on) == outcome(alone)
    on.check(refused=True)
    main, *_ = await on.conversations()
    assert "say hi" in main.text


async def test_a_cut_stream_is_seen_and_tried_again(tmp_path: Path) -> None:
    fault = Answer("Some words that are cut.", cut=700)
    with stage(tmp_path, Model({"say hi": []}, first=[fault])) as on, on.serving():
        assert "Retrying" in qwen(on, "say hi")
    on.check()


async def test_what_was_too_long_is_sent_shorter(tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {BIG}" for n in range(12)]
    model, windows = Model({"count amber": steps}), {MODEL: 70_000}
    with stage(tmp_path, model, window=200_000, models=windows) as on, on.serving():
        assert "Done: count-amber." in qwen(on, "count amber")
    on.check()


def said(one: Said) -> str:
    """What was said in a conversation, without what its client adds."""
    return undecorated(one.text)
