"""The configuration that `clew install` writes, as the real programs read it; then it is as it was."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from driving import KEY, PROGRAMS, Model, Stage, stage

KEYS = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}
CODEX = 'model = "gpt-5.2-codex"\ncheck_for_update_on_startup = false\n\n[analytics] # none\nenabled = false\n'
# It writes its schema there by itself, if that is missing.
OPENCODE = '{\n  "$schema": "https://opencode.ai/config.json",\n  // mine\n  "autoupdate": false,\n}\n'
OFFLINE = {f"OPENCODE_DISABLE_{what}": "1" for what in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "SHARE")}
QUIET = {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", **OFFLINE, **KEYS}
# The file of each, what is in it before, and how the program is asked something.
WIRED = {
    "claude": (".claude/settings.json", '{"env": {"A": "b"}}', ("-p", "--model", "claude-sonnet-4-5")),
    "codex": (".codex/config.toml", CODEX, ("exec", "--skip-git-repo-check")),
    "opencode anthropic": (".config/opencode/opencode.jsonc", OPENCODE, ("run", "-m", "anthropic/claude-sonnet-4-5")),
    "opencode openai": (".config/opencode/opencode.jsonc", OPENCODE, ("run", "-m", "openai/gpt-5.4")),
    "pi anthropic": (".pi/agent/models.json", None, ("-p", "--provider", "anthropic", "--model", "claude-sonnet-4-5")),
    "pi openai": (".pi/agent/models.json", '{"providers": {}}', ("-p", "--provider", "openai", "--model", "gpt-5.4")),
}


def clew(on: Stage, *arguments: str, **more: str) -> str:
    """What clew's own command says, in the program's home."""
    env = {**os.environ, "HOME": str(on.home), "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"}
    env |= {"CLEW_GATEWAY_PORT": on.url.rpartition(":")[2], **more}
    done = subprocess.run(
        [sys.executable, "-m", "clew.cli", *arguments], cwd=on.home, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("which", WIRED)
async def test_a_program_talks_through_the_gateway_and_is_then_as_it_was(which: str, tmp_path: Path) -> None:
    name, (where, before, asked) = which.partition(" ")[0], WIRED[which]
    file = tmp_path / where
    if before is not None:
        file.parent.mkdir(parents=True)
        file.write_text(before)
    with stage(tmp_path, Model({"say hi": []})) as on, on.serving():
        clew(on, "install", name, "--gateway", "--no-start", "--yes")
        assert "Done: say-hi." in on.run(name, *asked, "say hi", env=QUIET)
        clew(on, "install", "--remove", name, "--yes")
    on.check()
    assert (file.read_text() if file.exists() else None) == before
    [main] = await on.conversations()
    assert "say hi" in main.text


async def test_copilot_takes_the_lines_that_are_printed(tmp_path: Path) -> None:
    with stage(tmp_path, Model({"say hi": []})) as on, on.serving():
        said = clew(on, "install", "copilot", "--gateway")
        export, start = (line.strip() for line in said.splitlines()[-3:-1])
        script = f"{export.replace('YOUR-MODEL', 'gpt-5.4')}\n{start} -p 'say hi'\n"
        (tmp_path / "pasted.sh").write_text(script)
        assert "Done: say-hi." in on.run(
            "/bin/sh", str(tmp_path / "pasted.sh"), env={"COPILOT_OFFLINE": "true", **KEYS}
        )
    on.check()
    [main] = await on.conversations()
    assert "say hi" in main.text
