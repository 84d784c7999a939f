"""Every Python example in the docs page of a framework runs, in the environment that has that framework."""

import ast
import inspect
import re
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType

import pytest

from clew.testing import Answer, StrictProvider

ROOT = Path(__file__).parents[1]
MODULES = {"crewai": "crewai", "praisonai": "praisonaiagents", "strands": "strands"}
PAGES = [name for name, module in MODULES.items() if find_spec(module)]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
async def test_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    names: dict[str, object] = {"__name__": "docs"}
    with StrictProvider([Answer("Done: the answer is 42.")]) as provider:
        for name, value in {
            "OPENAI_BASE_URL": f"{provider.url}/v1",
            "OPENAI_API_KEY": "none",
            "ANTHROPIC_BASE_URL": provider.url,
            "ANTHROPIC_API_KEY": "none",
        }.items():
            monkeypatch.setenv(name, value)
        for block in BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")):
            result = FunctionType(compile(block, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)()
            if inspect.iscoroutine(result):
                await result
