"""The plugin that marketplaces and registries are given: written from one description, and all of it there."""

import json
import re
from pathlib import Path

import pytest

import processes
from clew import __version__
from clew.mcp.tools import SCHEMAS

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "plugin_tree.py"
MANIFESTS = [*ROOT.glob("plugin/**/*.json"), *(ROOT / name for name in ("gemini-extension.json", "server.json"))]


def test_what_is_there_is_what_the_description_says(tmp_path: Path) -> None:
    processes.run(str(SCRIPT), "--check", check=True)
    processes.run(str(SCRIPT), "--into", str(tmp_path), check=True)
    (tmp_path / "server.json").write_text("{}")
    done = processes.run(str(SCRIPT), "--check", "--into", str(tmp_path))
    assert done.returncode
    assert done.stderr.startswith("server.json: not as")


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_manifests_have_one_name_and_one_version(file: Path) -> None:
    told = json.loads(file.read_text())
    assert told.get("name", "clew").rpartition("/")[2] == "clew"
    assert told.get("version", __version__) == __version__
    places = re.findall(r'"(\./[^"]+)"', file.read_text())
    root = file.parents[1] if file.parent.name.startswith(".") else file.parent
    assert all((root / place).exists() for place in places), places


def test_the_skill_teaches_tools_that_there_are() -> None:
    text = (ROOT / "plugin/skills/clew/SKILL.md").read_text()
    taught = set(re.findall(r"`(\w+)`", text)) - {"lines", "pattern"}
    assert taught == set(SCHEMAS)
    assert text.startswith("---\nname: clew\n")
