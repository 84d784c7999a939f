"""pi through the gateway, in each of the three formats it speaks."""

import json
from pathlib import Path

import pytest
from driving import KEY, Model, Stage, stage

from clew.testing import Answer

# What it calls each format, and the model that it is told to use there.
WAYS = {
    "chat": ("openai-completions", "amber"),
    "messages": ("anthropic-messages", "claude-sonnet-4-5"),
    "responses": ("openai-responses", "gpt-5.4"),
}
BIG = "seq -f 'line %g of the count' 1 900"  # 19 kB; of more lines it keeps a part


def pi(on: Stage, way: str, *arguments: str, window: int = 200_000, stdin: str = "", until: str = "") -> str:
    """What it says to one prompt."""
    home = on.home / "agent"
    home.mkdir(exist_ok=True)
    api, model = WAYS[way]
    known = {"id": model, "contextWindow": window, "maxTokens": 4_000}
    url = on.url if way == "messages" else f"{on.url}/v1"
    provider = {"baseUrl": url, "api": api, "apiKey": KEY, "models": [known]}
    (home / "models.json").write_text(json.dumps({"providers": {"clew": provider}}))
    env = {"PI_CODING_AGENT_DIR": str(home), "PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}
    chosen = ("--provider", "clew", "--model", model)
    return on.run("pi", *chosen, *arguments, env=env, stdin=stdin, until=until)


def pi_compacts(on: Stage, way: str) -> None:
    """Tell it to compact its newest session, as its screen does."""
    said = pi(on, way, "--mode", "rpc", "-c", stdin='{"type":"compact"}\n', until='"type":"response"')
    assert '"success":true' in said, said


@pytest.mark.parametrize("way", WAYS)
async def test_hi_a_tool_and_a_resumed_session(way: str, tmp_path: Path) -> None:
    model = Model({"say hi": [], "list amber files": ["echo amber-1; ls"], "and again": ["echo amber-2"]})
    with stage(tmp_path, model) as on:
        with on.serving():
            assert "Done: say-hi." in pi(on, way, "-p", "say hi")
            assert "Done: list-amber-files." in pi(on, way, "-p", "-c", "list amber files")
        with on.serving():
            assert "Done: and-again." in pi(on, way, "-p", "-c", "and again")
    on.check()
    [main] = await on.conversations()
    assert all(word in main.text for word in ("say hi", "amber-1", "amber-2"))


@pytest.mark.parametrize("way", WAYS)
async def test_far_past_the_window_it_never_compacts(way: str, tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {BIG}" for n in range(25)]
    with stage(tmp_path, Model({"count amber": steps}), window=70_000) as on, on.serving("prevent"):
        assert "Done: count-amber." in pi(on, way, "-p", "count amber", window=80_000)
    on.check()
    assert (on.model.summaries, on.answered) == (0, 0)
    [main] = await on.conversations()
    assert all(f"fact-{n}\n" in main.text for n in range(25))


@pytest.mark.parametrize("how", ["by usage", "by command"])
@pytest.mark.parametrize("way", WAYS)
async def test_its_compaction_is_answered_from_the_log(way: str, how: str, tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {BIG}" for n in range(16)]
    model = Model({"count amber": steps, "what was it": ["echo amber-after"]})
    window = 70_000 if how == "by usage" else 200_000
    with stage(tmp_path, model) as on, on.serving("answer" if how == "by usage" else "prevent"):
        pi(on, way, "-p", "count amber", window=window)
        if how == "by command":
            pi_compacts(on, way)
        assert "Done: what-was-it." in pi(on, way, "-p", "-c", "what was it", window=window)
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
@pytest.mark.parametrize("way", WAYS)
async def test_faults_are_met_as_they_would_be_alone(way: str, fault: Answer, tmp_path: Path) -> None:
    with stage(tmp_path, Model({"say hi": []}, first=[fault])) as on, on.serving():
        assert "Done: say-hi." in pi(on, way, "-p", "say hi")
    on.check(refused=True)
    [main] = await on.conversations()
    assert "say hi" in main.text


@pytest.mark.parametrize("way", WAYS)
async def test_what_was_too_long_is_sent_shorter(way: str, tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {BIG}" for n in range(14)]
    with stage(tmp_path, Model({"count amber": steps}), models={WAYS[way][1]: 60_000}) as on, on.serving():
        assert "Done: count-amber." in pi(on, way, "-p", "count amber")
    on.check()
    assert (on.model.summaries, on.answered) == (0, 0)
