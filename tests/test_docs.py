"""Every example in the README and the docs runs, in order, as one reader would type them: Python, and the console.

A console block whose output changed is written anew by `python tests/consoles.py PAGE`.
"""

import re
import shutil
import tomllib
from pathlib import Path

import pytest

from consoles import Console, blocks, demo, is_like
from prompting import Prompt, examples

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ELSEWHERE = {"frameworks.md", "crewai.md", "praisonai.md", "strands.md"}  # run beside theirs
PASTED = {"README.md", "quickstart.md"}  # their Python is in test_pasting.py; make paste types all that is in them
MARKED, TRIED = 13, 15  # console blocks that nobody can run here, and those that are run


@pytest.mark.parametrize("page", [p for p in PAGES if p.name not in ELSEWHERE | PASTED], ids=lambda p: p.name)
def test_examples_run_where_they_are_pasted(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for at, block in enumerate(examples(page.read_text(encoding="utf-8"))):
        (tmp_path / str(at)).mkdir()
        monkeypatch.chdir(tmp_path / str(at))
        Prompt().paste(block)


def test_every_example_of_a_framework_can_be_pasted() -> None:
    """They are run beside their frameworks; here they are read as Python's prompt reads them."""
    for page in (p for p in PAGES if p.name in ELSEWHERE):
        for block in examples(page.read_text(encoding="utf-8")):
            Prompt(runs=False).paste(block)


@pytest.mark.parametrize("block", ["def f():\n    a = 1\n\n    return a\n", "await f()\n", "1 / 0\n", "print(1\n"])
def test_what_cannot_be_pasted_is_noticed(block: str) -> None:
    with pytest.raises((SyntaxError, ZeroDivisionError, AssertionError)):
        Prompt().paste(block)


@pytest.fixture(scope="module")
def after_demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A home with the log of the demo in it, to be copied, and what the demo printed."""
    home = tmp_path_factory.mktemp("demo")
    return home, demo(home)


TYPED = [page for page in PAGES if any(block.runs for block in blocks(page.read_text(encoding="utf-8")))]


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
    for target, anchor in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)", page.read_text(encoding="utf-8")):
        there = page.parent / target if target else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), f"{target}#{anchor}"


def test_addresses_of_pages_that_moved_lead_to_where_they_are_now() -> None:
    moved = tomllib.loads((ROOT / "scripts" / "moved.toml").read_text(encoding="utf-8"))
    for page, (place, anchor) in ((page, place.split("#")) for page, place in moved.items()):
        assert not (ROOT / "docs" / f"{page}.md").exists(), page
        assert anchor in anchors(ROOT / "docs" / place), f"{page}: {place}#{anchor}"


def anchors(page: Path) -> set[str]:
    """What its headings are called in an address."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", h).strip().lower()) for h in headings}
