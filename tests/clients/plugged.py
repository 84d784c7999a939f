"""What `clew install` gives to the real programs, with nothing between them and the provider.

The provider is on loopback, and refuses what is too long or invalid; a program's home is a folder of the test's own.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from driving import KEY, PROGRAMS, Model, Stage, stage

from clew.testing import Answer
from clew.testing.provider import Call

BIG = "echo amber-first; seq 1 4000; echo amber-last"  # 19 kB
RULE = "Never open port 4711 on this machine."
RECALL = re.compile(r"recall ([0-9a-f]{10})")
NEWEST = "the newest id"


@dataclass
class Recalling(Model):
    """A model that recalls by the last id it was shown."""

    def __call__(self, body: dict[str, Any]) -> Answer:
        said = super().__call__(body)
        ids = RECALL.findall(json.dumps(body))
        calls = tuple(
            replace(call, arguments={**call.arguments, "id": ids[-1] if ids else "none"})
            if call.arguments.get("id") == NEWEST
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
        "count amber": [BIG, Call("mcp__clew__recall", {"id": NEWEST, "lines": "1998-2002"})],
        "what was it": [Call("mcp__clew__search", {"text": "port 4711"})],
    }
    with stage(tmp_path, Recalling(plans)) as on, on.alone():
        clew(on, "install", "claude", "--yes")
        assert "Done: count-amber." in claude(on, f"count amber. {RULE}")
        seen = sent(on)
        assert "amber-first" in seen
        assert "amber-last" in seen
        assert "characters out of view; recall" in seen  # the large result came as a preview
        assert "1998: 1997" in seen  # and its middle by its id
        assert "\\n3000\\n" not in seen
        claude(on, "-c", "/compact")
        assert on.model.summaries >= 1
        assert "Done: what-was-it." in claude(on, "-c", "what was it")
        assert RULE in sent(on, -2)  # in the first request after its own summary, which did not tell it
        clew(on, "uninstall", "claude", "--yes")
    on.check()
    assert (tmp_path / ".claude/settings.json").read_text() == before
    assert "clew" not in json.loads((tmp_path / ".claude.json").read_text()).get("mcpServers", {})
