"""The plugin as the programs read it from a checkout: each says itself whether that is well."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from driving import PROGRAMS

ROOT = Path(__file__).parents[2]
TREE = ("plugin", ".claude-plugin", ".agents", "gemini-extension.json", "LICENSE")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in TREE:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tree / name)
    return tree


def said(home: Path, *command: str) -> str:
    env = {"PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "TERM": "dumb"}
    done = subprocess.run(command, env=env, cwd=home, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_claude_code_takes_it(checkout: Path, tmp_path: Path) -> None:
    assert "Validation passed" in said(tmp_path, "claude", "plugin", "validate", str(checkout / "plugin"))
    assert "Validation passed" in said(tmp_path, "claude", "plugin", "validate", str(checkout))
    said(tmp_path, "claude", "plugin", "marketplace", "add", str(checkout))
    said(tmp_path, "claude", "plugin", "install", "clew@clew")
    assert "clew@clew" in said(tmp_path, "claude", "plugin", "list")


def test_codex_takes_it(checkout: Path, tmp_path: Path) -> None:
    said(tmp_path, "codex", "plugin", "marketplace", "add", str(checkout))
    assert "Added plugin" in said(tmp_path, "codex", "plugin", "add", "clew@clew")
    assert "installed, enabled" in said(tmp_path, "codex", "plugin", "list")


def test_gemini_cli_takes_it(checkout: Path, tmp_path: Path) -> None:
    assert "successfully validated" in said(tmp_path, "gemini", "extensions", "validate", str(checkout))
