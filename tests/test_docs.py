"""Every Python example in the README and the docs runs, in order, as one reader would type them."""

import ast
import inspect
import re
from pathlib import Path
from types import FunctionType

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ELSEWHERE = {f"{folder.name}.md" for folder in (ROOT / "frameworks").iterdir() if folder.is_dir()}  # run beside theirs
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [p for p in PAGES if p.name not in ELSEWHERE], ids=lambda p: p.name)
async def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "docs"}
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        code = compile(block, page.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = FunctionType(code, names)()
        if inspect.iscoroutine(result):
            await result


@pytest.mark.parametrize("page", [*PAGES, ROOT / "AGENTS.md", ROOT / "bench" / "README.md"], ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
