"""The public face is exactly what it says it is."""

import doctest
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import clew
from clew import errors
from clew.llm.streaming import BrokenOff


def test_every_public_name_is_there_and_sorted() -> None:
    assert clew.__all__ == sorted(clew.__all__)
    at_home = {name for names in clew._HOMES.values() for name in names.split()}
    assert at_home == set(clew.__all__) == set(dir(clew))
    assert all(getattr(clew, name).__name__ == name for name in clew.__all__)


@pytest.mark.parametrize("name", clew.__all__)
def test_every_public_name_has_an_example_that_works(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    public = getattr(clew, name)
    found = doctest.DocTestParser().get_doctest(inspect.getdoc(public) or "", {"clew": clew}, name, None, None)
    assert found.examples, f"the docstring of clew.{name} has no example"
    said = list[str]()
    doctest.DocTestRunner().run(found, out=said.append)
    assert not said, "".join(said)


def test_names_that_0_1_had_come_with_a_warning_that_says_where_they_are() -> None:
    code = """
import warnings, clew
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as said:
    for module, names in clew._MOVED.items():
        for name in names.split():
            assert getattr(clew, name) is not None
told = [str(one.message) for one in said if "clew." in str(one.message)]
print(len(told), next(one for one in told if "OverBudget" in one))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    count = sum(len(names.split()) for names in clew._MOVED.values())
    assert done.stdout == f"{count} clew.OverBudget is in clew.errors now, and goes from here with 0.3\n", done.stderr


def test_control_is_found_under_its_old_name() -> None:
    from clew import control
    from clew.agent import control as old

    with pytest.warns(DeprecationWarning, match="ContextController goes from here"):
        assert old.ContextController is control.ContextController
    with pytest.raises(AttributeError):
        _ = old.Controller


def test_importing_clew_loads_no_tokenizer_and_opens_no_socket() -> None:
    code = """
import sys, socket
def refuse(*a, **k): raise OSError("no network")
socket.socket.connect = refuse
import clew
heavy = {"splintr", "tiktoken", "asyncio", "sqlite3", "typer", "rich"} & set(sys.modules)
assert not heavy, heavy
result = clew.compress([{"role": "user", "content": "hi " * 500}] * 20, window=4000, model="gpt-4o")
assert result.tokens_after < result.tokens_before and result.exact
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "fine\n", done.stderr


def test_the_page_on_errors_and_the_tree_have_them_all() -> None:
    known = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    page = (Path(__file__).parents[1] / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    listed = {"ClewError", *re.findall(r"^\| (?:⤷ )?`(\w+)`", page, re.MULTILINE)}
    drawn = set(re.findall(r"^[│ ]*[├└]── (\w+)", errors.__doc__ or "", re.MULTILINE))
    assert listed == {"ClewError"} | drawn == known | {BrokenOff.__name__}


@pytest.mark.parametrize(
    ("module", "name", "instead"),
    [
        ("clew.agent", "let_delegate", "agent.child"),
        ("clew.batch", "BatchScore", "clew audit"),
        ("clew.mcp.server", "server", "clew mcp"),
        ("clew.steps.notes.writer", "Writer", "ByModel"),
        ("clew.testing", "check_store", "tests/store_promises.py"),
        ("clew.testing", "take_notes", "write_chapter"),
    ],
)
def test_names_that_went_say_what_there_is_instead(module: str, name: str, instead: str) -> None:
    with pytest.raises(ImportError, match=instead):
        getattr(import_module(module), name)
