"""For all frameworks: folders, an engine and providers of one test, and models that are asked by their agents alone."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from frameworks.reading import WINDOW

from clew import Budget, Engine, SQLite
from clew.engine.settings import Settings
from clew.events import Event
from clew.testing import StrictProvider

os.environ.setdefault("CLEW_SUMMARY_MODEL", "none")  # a question would eat the next answer of a script

Provide = Callable[..., StrictProvider]


@pytest.fixture
def as_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model of an agent is asked to write of what leaves its view, as it is where nobody says otherwise."""
    monkeypatch.delenv("CLEW_SUMMARY_MODEL", raising=False)


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read or written but in the folder of the test."""
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))


@pytest.fixture
def heard() -> list[Event]:
    """What the engine tells."""
    return []


@pytest.fixture
def engine(tmp_path: Path, heard: list[Event]) -> Engine:
    budget = Budget(window=WINDOW, reserve=500)
    return Engine(SQLite(tmp_path / "clew.db"), budget, Settings(listeners=[heard.append]))


@pytest.fixture
def provide() -> Iterator[Provide]:
    """Starts providers that say what a script says, or one answer to all, until the test ends."""
    with ExitStack() as stack:

        def start(script: Any = None, window: int = WINDOW) -> StrictProvider:
            given = [script] if script else []
            return stack.enter_context(StrictProvider(*given, window=window))

        yield start
