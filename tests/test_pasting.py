"""README and quickstart survive being pasted: their Python here, all of them with `make paste`.

Their commands are run by test_docs.py, too, in one process.
"""

import sys
from pathlib import Path

import pytest

from clew.testing import StrictProvider
from pasting import ROOT, Terminal, Unpasted, environment, parts

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
PAGES = [ROOT / "README.md", ROOT / "docs" / "quickstart.md"]


def terminal(home: Path, **more: str) -> Terminal:
    env = environment(home, f"{Path(sys.executable).parent}:/usr/bin:/bin")
    return Terminal({**env, **more}, home)


def test_python_of_both_pages_can_be_pasted_line_by_line(tmp_path: Path) -> None:
    with (
        StrictProvider() as provider,
        terminal(tmp_path, OPENAI_BASE_URL=f"{provider.url}/v1", OPENAI_API_KEY="none") as typed,
    ):
        shown = [part for page in PAGES for part in parts(page.read_text(encoding="utf-8")) if part.kind == "python"]
        assert len(shown) >= len(PAGES)
        typed.python([line for part in shown for line in [*part.lines, ""]])  # one prompt: each start takes a second


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_can_be_pasted_into_every_shell(page: Path) -> None:
    """Without a prompt before them, nor a comment behind them, which zsh takes for arguments."""
    lines = [line for part in parts(page.read_text(encoding="utf-8")) if part.kind == "shell" for line in part.lines]
    assert lines
    assert not [line for line in lines if " #" in line or line.startswith("$")]


def test_what_fails_is_noticed(tmp_path: Path) -> None:  # test_docs.py has what the prompt does not take
    with terminal(tmp_path) as typed:
        assert "2\n" in typed.type("echo $((1 + 1))")
        with pytest.raises(Unpasted, match="ended with 127"):
            typed.type("no-such-command")
        assert "3" in typed.python(["def add(a, b):", "    return a + b", "", "add(1, 2)"])
        with pytest.raises(Unpasted, match="ZeroDivisionError"):
            typed.python(["1 / 0"])
