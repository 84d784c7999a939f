"""Every example in the README and the docs runs, in order, as one reader would type them: Python, and the console.

A console block whose output changed is written anew by `python tests/consoles.py PAGE`.
"""

import ast
import inspect
import re
import shutil
from pathlib import Path
from types import FunctionType

import pytest

from consoles import Console, blocks, demo, is_like

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ELSEWHERE = {
    "recipes.md",
    *(f"{f.name}.md" for f in (ROOT / "frameworks").iterdir() if f.is_dir()),
}  # run beside theirs
PASTED = {"README.md", "quickstart.md"}  # make paste types all that is in them into a shell
MARKED, TRIED = 13, 13  # console blocks that nobody can run here, and those that are run
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


@pytest.fixture(scope="module")
def after_demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A home with the log of the demo in it, to be copied, and what the demo printed."""
    home = tmp_path_factory.mktemp("demo")
    return home, demo(home)


TYPED = [page for page in PAGES if any(block.runs for block in blocks(page.read_text(encoding="utf-8")))]


@pytest.mark.xdist_group("demo")
@pytest.mark.parametrize("page", TYPED, ids=lambda p: p.name)
def test_what_is_typed_prints_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    console = Console(tmp_path)
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.how == "after clew demo" and not console.demo:
            home, console.demo = request.getfixturevalue("after_demo")
            shutil.copytree(home, tmp_path, dirs_exist_ok=True)
        console.prepare(block.how)
        for command in block.commands if block.runs else ():
            printed = console(command)
            assert not command.shown or is_like(printed, command.shown), f"{command.line}\n{printed}"


def test_few_console_blocks_are_not_run() -> None:
    every = [(page.name, block) for page in PAGES for block in blocks(page.read_text(encoding="utf-8"))]
    unrun = [f"{name}: {block.how}" for name, block in every if not block.runs and name not in PASTED]
    assert len(unrun) <= MARKED, unrun
    assert sum(block.runs for _, block in every) >= TRIED


OTHERS = ["AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md", "frameworks/README.md"]


@pytest.mark.parametrize("page", [*PAGES, *(ROOT / name for name in OTHERS)], ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
