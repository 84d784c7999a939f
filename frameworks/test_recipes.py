"""Each recipe runs in the environment of its framework, word for word, and what it sends is in the log."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from clew import Engine, Sessions, SQLite, run
from clew.testing import Answer, StrictProvider

PAGE = Path(__file__).parents[1] / "docs" / "frameworks.md"
PART = PAGE.read_text(encoding="utf-8").split("\n## Without an adapter\n")[1].split("\n## ")[0]
RECIPES = re.findall(r"^### (.+?)\n\n```python\n(.*?)^```$", PART, re.DOTALL | re.MULTILINE)


def needs(code: str) -> set[str]:
    """The modules that a recipe imports."""
    froms = {node.module for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom) and node.module}
    names = {name.name for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import) for name in node.names}
    return {module.partition(".")[0] for module in froms | names}


@pytest.mark.parametrize(("title", "code"), RECIPES, ids=[title for title, _ in RECIPES])
def test_a_recipe(
    title: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if missing := sorted(module for module in needs(code) if not find_spec(module)):
        pytest.skip(f"{', '.join(missing)}: in another environment")
    monkeypatch.chdir(tmp_path)
    with StrictProvider(lambda _: Answer("It is ported.")) as provider:
        for name, value in (("OPENAI_BASE_URL", f"{provider.url}/v1"), ("OPENAI_API_KEY", "none")):
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
        exec(compile(code, title, "exec"), {})
        assert len(provider.heard) == 1
    assert capsys.readouterr().out == "It is ported.\n"
    (session,) = run(Sessions(Engine(SQLite(tmp_path / "agent.db"))).all())
    assert session.name == "port"
