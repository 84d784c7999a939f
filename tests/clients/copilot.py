"""Copilot CLI through the gateway, in each of the three formats it speaks to a provider of the user's own."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from driving import KEY, Model, Stage, stage

from clew.testing import Answer
from clew.testing.provider import Call

# How it is told to speak in each format, and with which model.
WAYS = {
    "chat": ("openai", "completions", "gpt-5.4"),
    "messages": ("anthropic", "", "claude-sonnet-4-5"),
    "responses": ("openai", "responses", "gpt-5.4"),
}
BIG = "seq -f 'line %g of the count' 1 900"  # 19 kB


def copilot(on: Stage, way: str, *arguments: str, window: int = 200_000) -> str:
    """What it says to one prompt."""
    kind, api, model = WAYS[way]
    env = {
        "COPILOT_HOME": str(on.home / ".copilot"),
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": on.url if kind == "anthropic" else f"{on.url}/v1",
        "COPILOT_PROVIDER_TYPE": kind,
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": str(window),
        "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": "32000" if kind == "anthropic" else "4000",  # it takes no less there
        "COPILOT_MODEL": model,
    }
    env |= {"COPILOT_PROVIDER_WIRE_API": api} if api else {}
    return on.run("copilot", "--allow-all-tools", *arguments, env=env)


@pytest.mark.parametrize("way", WAYS)
async def test_hi_a_tool_and_a_resumed_session(way: str, tmp_path: Path) -> None:
    model = Model({"say hi": [], "list amber files": ["echo amber-1; ls"], "and again": ["echo amber-2"]})
    with stage(tmp_path, model) as on:
        with on.serving():
            assert "Done: say-hi." in copilot(on, way, "-p", "say hi")
            assert "Done: list-amber-files." in copilot(on, way, "--continue", "-p", "list amber files")
        with on.serving():
            assert "Done: and-again." in copilot(on, way, "--continue", "-p", "and again")
    on.check()
    [main] = await on.conversations()
    assert all(word in main.text for word in ("say hi", "amber-1", "amber-2"))


@pytest.mark.parametrize("way", WAYS)
async def test_a_sub_agent_has_a_conversation_of_its_own(way: str, tmp_path: Path) -> None:
    about = {"name": "look", "description": "look", "agent_type": "general-purpose", "mode": "sync"}
    plans: Mapping[str, Sequence[str | Call]] = {
        "delegate amber": [Call("task", {**about, "prompt": "look for cobalt now"}), "echo amber-after"],
        "look for cobalt": ["echo cobalt-1", "echo cobalt-2"],
    }
    with stage(tmp_path, Model(plans)) as on, on.serving():
        assert "Done: delegate-amber." in copilot(on, way, "-p", "delegate amber")
    on.check()
    main, agent = await on.conversations()
    assert "amber-after" in main.text
    assert "cobalt-2" not in main.text
    assert "cobalt-2" in agent.text
    assert "amber" not in agent.text


@pytest.mark.parametrize("way", WAYS)
async def test_far_past_the_window_no_model_sums_up(way: str, tmp_path: Path) -> None:
    """It counts by itself what it sends, whatever usage is reported: so it compacts, and is answered from the log."""
    steps = [f"echo fact-{n}; {BIG}" for n in range(25)]
    with stage(tmp_path, Model({"count amber": steps}), window=70_000) as on, on.serving("prevent"):
        assert "Done: count-amber." in copilot(on, way, "-p", "count amber", window=80_000)
    on.check()
    assert on.model.summaries == 0
    first, *later = await on.conversations()
    logged = "".join(one.text for one in (first, *later))
    assert all(f"fact-{n}\n" in logged for n in range(25))
    assert all(one.session.parent for one in later)


@pytest.mark.parametrize("how", ["by usage", "by command"])
@pytest.mark.parametrize("way", WAYS)
async def test_its_compaction_is_answered_from_the_log(way: str, how: str, tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {BIG}" for n in range(12)]
    model = Model({"count amber": steps, "what was it": ["echo amber-after"]})
    window = 70_000 if how == "by usage" else 200_000
    with stage(tmp_path, model) as on, on.serving("answer" if how == "by usage" else "prevent"):
        copilot(on, way, "-p", "count amber", window=window)
        if how == "by command":
            copilot(on, way, "--continue", "-p", "/compact")
        assert "Done: what-was-it." in copilot(on, way, "--continue", "-p", "what was it", window=window)
    on.check()
    assert on.model.summaries == 0
    assert on.answered >= 1
    assert "fact-0" in json.dumps(on.provider.heard[-1].body)
    first, *later = await on.conversations()
    logged = "".join(one.text for one in (first, *later))
    assert all(f"fact-{n}\n" in logged for n in range(12))
    assert all(one.session.parent for one in later)


@pytest.mark.parametrize(
    "fault",
    [Answer(status=429, retry_after=0.1), Answer(status=500), Answer("Some words that are cut.", cut=1_000)],
    ids=["429", "500", "cut"],
)
@pytest.mark.parametrize("way", WAYS)
async def test_faults_are_met_as_they_would_be_alone(way: str, fault: Answer, tmp_path: Path) -> None:
    with stage(tmp_path, Model({"say hi": []}, first=[fault])) as on, on.serving():
        assert "Done: say-hi." in copilot(on, way, "-p", "say hi")
    on.check(refused=True)
    [main] = await on.conversations()
    assert "say hi" in main.text


@pytest.mark.parametrize("way", WAYS)
async def test_what_was_too_long_is_sent_shorter(way: str, tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {BIG}" for n in range(14)]
    with stage(tmp_path, Model({"count amber": steps}), models={WAYS[way][2]: 60_000}) as on, on.serving():
        assert "Done: count-amber." in copilot(on, way, "-p", "count amber")
    on.check()
    assert (on.model.summaries, on.answered) == (0, 0)
