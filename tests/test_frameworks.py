"""What the docs say of frameworks is what is tested."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "adk": "google-adk",
    "agent_framework": "agent-framework-core",
    "crewai": "crewai",
    "hermes": "hermes-agent",
    "inspect_ai": "inspect-ai",
    "langchain": "langchain",
    "litellm": "litellm",
    "openai_agents": "openai-agents",
    "praisonai": "praisonaiagents",
    "pydantic_ai": "pydantic-ai-slim",
    "strands": "strands-agents",
}


def test_every_framework_is_here() -> None:
    assert {path.parent.name for path in (ROOT / "frameworks").glob("*/wanted.txt")} == set(PACKAGES)


@pytest.mark.parametrize("name", PACKAGES)
def test_the_table_says_which_release_was_tested(name: str) -> None:
    locked = (ROOT / "frameworks" / name / "requirements.txt").read_text(encoding="utf-8")
    release = re.search(rf"^{PACKAGES[name]}(?:\[.*\])?==([\d.]+)", locked, re.MULTILINE)
    assert release
    table = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
    assert f"{PACKAGES[name]} {release[1]} |" in table
    if (page := ROOT / "docs" / f"{name}.md").exists():
        assert release[1] in page.read_text(encoding="utf-8")
