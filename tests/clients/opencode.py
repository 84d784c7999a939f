"""opencode through the gateway, in each of the three formats it speaks."""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from driving import KEY, PROGRAMS, Model, Stage, stage

from clew.testing import Answer
from clew.testing.provider import Call

# The model that it is told to use in each format.
MODELS = {"chat": "clew/amber", "messages": "anthropic/claude-sonnet-4-5", "responses": "openai/gpt-5.4"}
BIG = "seq -f 'line %g of the count' 1 900"  # 19 kB; of more lines it keeps a part


def opencode(on: Stage, way: str, *arguments: str, window: int = 200_000) -> str:
    """What it says to one prompt."""
    return on.run("opencode", "run", "-m", MODELS[way], *arguments, env=_settled(on, way, window))


def _settled(on: Stage, way: str, window: int) -> dict[str, str]:
    """Its settings in a file, and what it is told in the environment."""
    named = MODELS[way]
    provider, _, model = named.partition("/")
    given = {"options": {"baseURL": f"{on.url}/v1", "apiKey": KEY}}
    known = {model: {"limit": {"context": window, "input": window, "output": 4_000}, "tool_call": True}}
    adapter = {"npm": "@ai-sdk/openai-compatible", "name": "clew"} if way == "chat" else {}
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "small_model": named,  # for titles: the provider knows no other
        "permission": {"bash": "allow", "task": "allow"},
        "provider": {provider: {**adapter, **given, "models": known}},
    }
    file = on.home / "opencode.json"
    file.write_text(json.dumps(settings))
    off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "SHARE")
    return {"OPENCODE_CONFIG": str(file)} | {f"OPENCODE_DISABLE_{what}": "1" for what in off}


def opencode_compacts(on: Stage, way: str, window: int = 200_000) -> None:
    """Tell it to compact its newest session, as its screen does."""
    provider, _, model = MODELS[way].partition("/")
    env = {**on.env, **_settled(on, way, window)}
    with subprocess.Popen(
        [PROGRAMS / "opencode", "serve", "--port", "0"], cwd=on.work, env=env, stdout=subprocess.PIPE, text=True
    ) as serving:
        assert serving.stdout
        url = next(found[0] for line in serving.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
        with urlopen(f"{url}/session") as answer:
            newest = max(json.load(answer), key=lambda session: session["time"]["updated"])
        asked = Request(
            f"{url}/session/{newest['id']}/summarize",
            json.dumps({"providerID": provider, "modelID": model}).encode(),
            {"content-type": "application/json"},
        )
        with urlopen(asked) as answer:
            assert json.load(answer) is True
        serving.terminate()


@pytest.mark.parametrize("way", MODELS)
async def test_hi_a_tool_and_a_resumed_session(way: str, tmp_path: Path) -> None:
    model = Model({"say hi": [], "list amber files": ["echo amber-1; ls"], "and again": ["echo amber-2"]})
    with stage(tmp_path, model) as on:
        with on.serving():
            assert "Done: say-hi." in opencode(on, way, "say hi")
            assert "Done: list-amber-files." in opencode(on, way, "-c", "list amber files")
        with on.serving():
            assert "Done: and-again." in opencode(on, way, "-c", "and again")
    on.check()
    [main] = await on.conversations()
    assert all(word in main.text for word in ("say hi", "amber-1", "amber-2"))


@pytest.mark.parametrize("way", MODELS)
async def test_a_sub_agent_has_a_branch_of_its_own(way: str, tmp_path: Path) -> None:
    task = {"description": "look", "prompt": "look for cobalt now", "subagent_type": "general"}
    plans: Mapping[str, Sequence[str | Call]] = {
        "delegate amber": [Call("task", task), "echo amber-after"],
        "look for cobalt": ["echo cobalt-1", "echo cobalt-2"],
    }
    with stage(tmp_path, Model(plans)) as on, on.serving():
        assert "Done: delegate-amber." in opencode(on, way, "delegate amber")
    on.check()
    main, agent = await on.conversations()
    assert "amber-after" in main.text
    assert "cobalt-2" not in main.text
    assert "cobalt-2" in agent.text
    assert "amber" not in agent.text
    assert (agent.session.parent, agent.session.cause) == (main.session.id, "subagent")


@pytest.mark.parametrize("way", MODELS)
async def test_far_past_the_window_it_never_compacts(way: str, tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {BIG}" for n in range(25)]
    with stage(tmp_path, Model({"count amber": steps}), window=70_000) as on, on.serving("prevent"):
        assert "Done: count-amber." in opencode(on, way, "count amber", window=80_000)
    on.check()
    assert (on.model.summaries, on.answered) == (0, 0)
    [main] = await on.conversations()
    assert all(f"fact-{n}\n" in main.text for n in range(25))


@pytest.mark.parametrize("way", MODELS)
async def test_its_compaction_is_answered_from_the_log(way: str, tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {BIG}" for n in range(16)]
    model = Model({"count amber": steps, "what was it": ["echo amber-after"]})
    with stage(tmp_path, model) as on, on.serving("answer"):
        opencode(on, way, "count amber", window=70_000)
        assert "Done: what-was-it." in opencode(on, way, "-c", "what was it", window=70_000)
    on.check()
    assert on.model.summaries == 0
    assert on.answered >= 1
    assert "fact-0" in json.dumps(on.provider.heard[-1].body)
    first, *later = await on.conversations()
    logged = "".join(one.text for one in (first, *later))
    assert all(f"fact-{n}\n" in logged for n in range(16))
    assert all(one.session.parent for one in later)


@pytest.mark.parametrize(
    "fault",
    [Answer(status=429, retry_after=0.1), Answer(status=500), Answer("Some words that are cut.", cut=1_000)],
    ids=["429", "500", "cut"],
)
@pytest.mark.parametrize("way", MODELS)
async def test_faults_are_met_as_they_would_be_alone(way: str, fault: Answer, tmp_path: Path) -> None:
    with stage(tmp_path, Model({"say hi": []}, first=[fault])) as on, on.serving():
        assert "Done: say-hi." in opencode(on, way, "say hi")
    on.check(refused=True)
    [main] = await on.conversations()
    assert "say hi" in main.text


@pytest.mark.parametrize("way", MODELS)
async def test_what_was_too_long_is_sent_shorter(way: str, tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {BIG}" for n in range(14)]
    windows = {MODELS[way].partition("/")[2]: 60_000}
    with stage(tmp_path, Model({"count amber": steps}), models=windows) as on, on.serving():
        assert "Done: count-amber." in opencode(on, way, "count amber")
    on.check()
    assert (on.model.summaries, on.answered) == (0, 0)
