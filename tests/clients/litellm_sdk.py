"""The LiteLLM SDK through the gateway, as a client of each of its formats."""

import json
from pathlib import Path
from typing import Any

import pytest
from driving import HERE, Model, Stage, stage

from clew.testing import Answer
from clew.testing.provider import Call

PROGRAM = HERE / ".venv-litellm" / "bin" / "python"
READ = Call("read", {"path": "amber"})
MODELS = {"openai": "openai/gpt-4o", "anthropic": "anthropic/claude-sonnet-4-5", "gemini": "gemini/gemini-2.5-flash"}


def litellm(on: Stage, kind: str, history: list[Any], text: str, streamed: bool = False) -> str:
    """What it says; the history grows."""
    base = {"openai": f"{on.url}/v1", "anthropic": on.url, "gemini": f"{on.url}/v1beta"}[kind]
    given = {"model": MODELS[kind], "url": base, "history": history, "text": text, "streamed": streamed}
    env = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    on.run(PROGRAM, str(HERE / "litellm_agent.py"), env=env, stdin=json.dumps(given))
    came = json.loads(on.ran[-1].stdout)
    history[:] = came["history"]
    return str(came["said"])


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", MODELS)
async def test_hi_a_tool_and_a_restart(kind: str, streamed: bool, tmp_path: Path) -> None:
    history: list[Any] = []
    with stage(tmp_path, Model({"say hi": [], "read amber": [READ], "and again": [READ]})) as on:
        with on.serving():
            assert litellm(on, kind, history, "say hi", streamed) == "Done: say-hi."
            assert litellm(on, kind, history, "read amber", streamed) == "Done: read-amber."
        with on.serving():
            assert litellm(on, kind, history, "and again", streamed) == "Done: and-again."
    on.check()
    [main] = await on.conversations()
    assert all(word in main.text for word in ("say hi", "read amber", "fact-0", "and again"))


@pytest.mark.parametrize("kind", MODELS)
async def test_far_past_the_window(kind: str, tmp_path: Path) -> None:
    with stage(tmp_path, Model({"read amber": [READ] * 15}), window=20_000) as on, on.serving():
        assert litellm(on, kind, [], "read amber") == "Done: read-amber."
    on.check()
    [main] = await on.conversations()
    assert all(f"fact-{n}\n" in main.text for n in range(15))


@pytest.mark.parametrize("fault", [Answer(status=429, retry_after=0.1), Answer(status=500)], ids=["429", "500"])
async def test_faults_are_tried_again(fault: Answer, tmp_path: Path) -> None:
    with stage(tmp_path, Model({"say hi": []}, first=[fault])) as on, on.serving():
        assert litellm(on, "openai", [], "say hi") == "Done: say-hi."
    on.check(refused=True)


async def test_too_long_is_mended_before_it_is_seen(tmp_path: Path) -> None:
    model, windows = Model({"read amber": [READ] * 12}), {"gpt-4o": 20_000}
    with stage(tmp_path, model, window=200_000, models=windows) as on, on.serving():
        assert litellm(on, "openai", [], "read amber") == "Done: read-amber."
    on.check()
