"""What `clew install` gives to the real programs, with nothing between them and the provider.

The provider is on loopback, and refuses what is too long or invalid; a program's home is a folder of the test's own.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from driving import KEY, PROGRAMS, Model, Stage, stage

from clew.testing import Answer
from clew.testing.provider import Call

BIG = "echo amber-first; seq 1 4000; echo amber-last"  # 19 kB
RULE = "Never open port 4711 on this machine."
RECALL = re.compile(r"recall ([0-9a-f]{10})")
QUOTED = re.compile(r"\[data: .*?\[end of data\]")
NEWEST = "the newest id"


@dataclass
class Recalling(Model):
    """A model that recalls by the last id it was shown, and takes no quoted request for a new one."""

    def __call__(self, body: dict[str, Any]) -> Answer:
        shown = json.dumps(body)
        said = super().__call__(json.loads(QUOTED.sub("", shown)))
        ids = RECALL.findall(shown)
        calls = tuple(
            replace(call, arguments={**call.given, "id": ids[-1] if ids else "none"})
            if call.given.get("id") == NEWEST
            else call
            for call in said.calls
        )
        return replace(said, calls=calls)


def clew(on: Stage, *arguments: str) -> str:
    """What clew's own command says, in the program's home."""
    env = {**os.environ, "HOME": str(on.home), "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-m", "clew", *arguments], cwd=on.home, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files(home: Path, *names: str) -> dict[str, bytes | None]:
    """What is in these files."""
    return {name: (home / name).read_bytes() if (home / name).exists() else None for name in names}


def sent(on: Stage, at: int = -1) -> str:
    """A request as the provider got it."""
    return json.dumps(on.provider.heard[at].body)


def claude(on: Stage, *arguments: str) -> str:
    """What Claude Code says to one prompt."""
    env = {
        "ANTHROPIC_BASE_URL": on.url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    free = ("--model", "claude-sonnet-4-5", "--allowedTools", "Bash,Read,mcp__clew")
    return on.run("claude", *free, "-p", *arguments, env=env)


def test_claude_code(tmp_path: Path) -> None:
    before = '{"env": {"A": "b"}}'
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text(before)
    plans: Mapping[str, list[str | Call]] = {
        "count amber": [BIG],
        "what was it": [Call("mcp__clew__search", {"text": "port 4711"})],
    }
    with stage(tmp_path, Recalling(plans)) as on, on.alone():
        clew(on, "install", "claude", "--yes")
        shutil.rmtree(tmp_path / ".claude/skills")  # as for a version that knows no mods
        assert "Done: count-amber." in claude(on, f"count amber. {RULE}")
        seen = sent(on)
        # There is room for it: it stays whole.
        assert all(part in seen for part in ("amber-first", "\\n3000\\n", "amber-last"))
        assert "characters out of view; recall" not in seen
        claude(on, "-c", "/compact")
        assert on.model.summaries >= 1
        assert "Done: what-was-it." in claude(on, "-c", "what was it")
        assert RULE in sent(on, -2)  # in the first request after its own summary, which did not tell it
        clew(on, "install", "--remove", "claude", "--yes")
    on.check()
    assert (tmp_path / ".claude/settings.json").read_text() == before
    assert "clew" not in json.loads((tmp_path / ".claude.json").read_text()).get("mcpServers", {})


def settings(home: Path, folder: str, **given: Any) -> str:
    """A file of settings without which a program asks questions, or calls its maker."""
    told: dict[str, Any] = {
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False},
        **given,
    }
    (home / folder).mkdir(parents=True, exist_ok=True)
    text = json.dumps(told, indent=2)
    (home / folder / "settings.json").write_text(text)
    return text


def qwen(on: Stage, *arguments: str) -> str:
    """What Qwen Code says to one prompt."""
    env = {"OPENAI_BASE_URL": f"{on.url}/v1", "OPENAI_API_KEY": KEY, "OPENAI_MODEL": "qwen3-coder-plus"}
    free = ("--auth-type", "openai", "--approval-mode", "yolo")
    return on.run("qwen", *free, *arguments[:-1], "-p", arguments[-1], env=env)


def test_qwen_code(tmp_path: Path) -> None:
    before = settings(tmp_path, ".qwen", **{"$version": 4})  # it adds that by itself
    plans: Mapping[str, list[str | Call]] = {
        "count amber": ["echo amber-1"],
        "what was it": [Call("mcp__clew__search", {"text": "port 4711"})],
    }
    with stage(tmp_path, Recalling(plans)) as on, on.alone():
        clew(on, "install", "qwen", "--yes")
        assert "Done: count-amber." in qwen(on, f"count amber. {RULE}")
        qwen(on, "--continue", "/compress")
        assert on.model.summaries >= 1
        assert "Done: what-was-it." in qwen(on, "--continue", "what was it")
        heard = [json.dumps(h.body) for h in on.provider.heard]
        after = [text for text in heard if "A summary that the model made" in text]
        assert any(RULE in text for text in after)
        assert any("not orders" in text and "1: " in text for text in after)  # what the search found
        clew(on, "install", "--remove", "qwen", "--yes")
    on.check()
    assert (tmp_path / ".qwen/settings.json").read_text() == before


def gemini(on: Stage, *arguments: str) -> str:
    """What Gemini CLI says to one prompt."""
    env = {"GOOGLE_GEMINI_BASE_URL": on.url, "GEMINI_API_KEY": KEY, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    free = ("-m", "gemini-2.5-flash", "--approval-mode", "yolo", "--skip-trust")
    return on.run("gemini", *free, *arguments[:-1], "-p", arguments[-1], env=env)


def test_gemini_cli(tmp_path: Path) -> None:
    auth = {"auth": {"selectedType": "gemini-api-key"}}
    before = settings(tmp_path, ".gemini", security=auth)
    plans: Mapping[str, list[str | Call]] = {"count amber": [BIG, Call("mcp_clew_search", {"text": "amber-first"})]}
    with stage(tmp_path, Recalling(plans)) as on, on.alone():
        clew(on, "install", "gemini", "--yes")
        assert "Done: count-amber." in gemini(on, f"count amber. {RULE}")
        seen = sent(on)
        assert "characters out of view; recall" not in seen
        assert "amber-last" in seen
        clew(on, "install", "--remove", "gemini", "--yes")
    on.check()
    assert (tmp_path / ".gemini/settings.json").read_text() == before


def test_gemini_cli_compresses(tmp_path: Path) -> None:
    """Without tools before: of a session that it resumes, it sends results twice, which the provider refuses."""
    settings(
        tmp_path,
        ".gemini",
        security={"auth": {"selectedType": "gemini-api-key"}},
        model={"compressionThreshold": 0.002},
    )
    with stage(tmp_path, Model({"say hi": [], "what was it": ["echo after"]})) as on, on.alone():
        clew(on, "install", "gemini", "--yes")
        gemini(on, f"say hi. {RULE}" + " and so on" * 1500)
        assert "Done: what-was-it." in gemini(on, "--resume", "latest", "what was it")
        assert on.model.summaries >= 1
        assert "A summary that the model made" in sent(on)
        assert RULE in sent(on)  # beside the first result
    on.check()


def codex(on: Stage, *arguments: str) -> str:
    """What Codex says to one prompt; hooks run without a user who trusts them."""
    free = ("--skip-git-repo-check", "--sandbox", "danger-full-access", "--dangerously-bypass-hook-trust")
    return on.run("codex", "exec", *free, *arguments, env={"CLEW_KEY": KEY})


def test_codex(tmp_path: Path) -> None:
    lines = ['model = "gpt-5.4"', "check_for_update_on_startup = false", "model_auto_compact_token_limit = 30000"]
    lines += ["tool_output_token_limit = 8000", 'model_provider = "mine"', "[model_providers.mine]", 'name = "mine"']
    # It does not wait for servers of tools: by the time that a command took, they are there.
    plans: Mapping[str, list[str | Call]] = {
        "count amber": ["sleep 8", *["seq 1 4000"] * 5, Call("mcp__clew__search", {"text": "port 4711"})]
    }
    with stage(tmp_path, Recalling(plans)) as on, on.alone():
        lines += [f'base_url = "{on.url}/v1"', 'env_key = "CLEW_KEY"', 'wire_api = "responses"']
        before = "\n".join([*lines, "[analytics] # none", "enabled = false", ""])
        (tmp_path / ".codex").mkdir()
        (tmp_path / ".codex/config.toml").write_text(before)
        assert "/hooks" in clew(on, "install", "codex", "--yes")
        assert "Done: count-amber." in codex(on, f"count amber. {RULE}")
        assert on.model.summaries >= 1
        after = next(json.dumps(h.body) for h in on.provider.heard if "may lack; not orders" in json.dumps(h.body))
        assert "A summary that the model made" in after
        assert "commands that were run" in after
        assert "what was said earlier" in sent(on)  # what the search found
        clew(on, "install", "--remove", "codex", "--yes")
    on.check()
    assert (tmp_path / ".codex/config.toml").read_text() == before
    assert not (tmp_path / ".codex/hooks.json").exists()
