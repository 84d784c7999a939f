"""Claude Code through the gateway."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from driving import KEY, Model, Stage, stage

from clew.gateway.settings import ClientCompaction
from clew.testing import Answer
from clew.testing.provider import Call

MODEL = "claude-sonnet-4-5"
BIG = "seq 1 4000"  # 19 kB


def claude(on: Stage, *arguments: str, well: bool = True, stdin: str = "", **env: str) -> str:
    """What it says to one prompt, or to lines of them."""
    given = {
        "CLAUDE_CONFIG_DIR": str(on.home / ".claude"),
        "ANTHROPIC_BASE_URL": on.url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        **env,
    }
    model = ("--model", MODEL, "--allowedTools", "Bash,Read,Task,mcp__clew__recall,mcp__clew__search")
    return on.run("claude", *model, "-p", *arguments, env=given, well=well, stdin=stdin)


async def test_hi_a_tool_and_a_resumed_session(tmp_path: Path) -> None:
    model = Model({"say hi": [], "list amber files": ["echo amber-1; ls"], "and again": ["echo amber-2"]})
    with stage(tmp_path, model) as on:
        with on.serving():
            assert "Done: say-hi." in claude(on, "say hi")
            assert "Done: list-amber-files." in claude(on, "-c", "list amber files")
        with on.serving():
            assert "Done: and-again." in claude(on, "-c", "and again")
    on.check()
    [main] = await on.conversations()
    assert all(word in main.text for word in ("say hi", "amber-1", "amber-2"))


async def test_a_sub_agent_has_a_branch_of_its_own(tmp_path: Path) -> None:
    task = {"description": "look", "prompt": "look for cobalt now", "subagent_type": "general-purpose"}
    plans: Mapping[str, Sequence[str | Call]] = {
        "delegate amber": [Call("Agent", task), "echo amber-after"],
        "look for cobalt": ["echo cobalt-1", "echo cobalt-2"],
    }
    with stage(tmp_path, Model(plans)) as on, on.serving():
        assert "Done: delegate-amber." in claude(on, "delegate amber")
    on.check()
    main, agent = await on.conversations()
    assert "amber-after" in main.text
    assert "cobalt-2" not in main.text
    assert "cobalt-2" in agent.text
    assert "amber" not in agent.text
    assert (agent.session.parent, agent.session.cause) == (main.session.id, "subagent")


async def test_far_past_the_window_it_never_compacts(tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {BIG}" for n in range(25)]
    with stage(tmp_path, Model({"count amber": steps}), window=70_000) as on, on.serving("prevent"):
        assert "Done: count-amber." in claude(on, "count amber", CLAUDE_CODE_MAX_OUTPUT_TOKENS="4000")
    on.check()
    assert on.model.summaries == 0
    assert on.answered == 0
    [main] = await on.conversations()
    assert all(f"fact-{n}\n" in main.text for n in range(25))


@pytest.mark.parametrize("how", ["by usage", "by command"])
async def test_its_compaction_is_answered_from_the_log(how: str, tmp_path: Path) -> None:
    mode: ClientCompaction = "answer" if how == "by usage" else "prevent"
    many = 24 if how == "by usage" else 4
    steps = [f"echo fact-{n}; {BIG}" for n in range(many)]
    model = Model({"count amber": steps, "what was it": ["echo amber-after"]})
    with stage(tmp_path, model) as on, on.serving(mode):
        claude(on, "count amber", CLAUDE_CODE_AUTO_COMPACT_WINDOW="100000")
        if how == "by command":
            claude(on, "-c", "/compact")
        assert "Done: what-was-it." in claude(on, "-c", "what was it")
    on.check()
    assert on.model.summaries == 0
    assert on.answered >= 1
    assert "fact-0" in json.dumps(on.provider.heard[-1].body)
    first, *later = await on.conversations()
    logged = "".join(one.text for one in (first, *later))
    assert all(f"fact-{n}\n" in logged for n in range(many))
    assert all(one.session.parent for one in later)


@pytest.mark.parametrize(
    "fault",
    [Answer(status=429, retry_after=0.1), Answer(status=500), Answer("Some words that are cut.", cut=700)],
    ids=["429", "500", "cut"],
)
async def test_faults_are_met_as_they_would_be_alone(fault: Answer, tmp_path: Path) -> None:
    with stage(tmp_path, Model({"say hi": []}, first=[fault])) as on, on.serving():
        assert "Done: say-hi." in claude(on, "say hi")
    on.check(refused=True)
    [main] = await on.conversations()
    assert "say hi" in main.text


async def test_what_was_too_long_is_sent_shorter(tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {BIG}" for n in range(12)]
    with stage(tmp_path, Model({"count amber": steps}), window=200_000, models={MODEL: 70_000}) as on, on.serving():
        assert "Done: count-amber." in claude(on, "count amber", CLAUDE_CODE_MAX_OUTPUT_TOKENS="4000")
    on.check()
