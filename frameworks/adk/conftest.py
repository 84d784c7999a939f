"""Apps of ADK that talk to a strict provider, with nothing of this machine in them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ |= {"OTEL_SDK_DISABLED": "true", "GOOGLE_API_KEY": "none"}

import pytest
from google.adk.agents import Agent
from google.adk.models import Gemini

from clew import Budget, Engine, SQLite
from clew.engine.settings import Settings
from clew.events import Event
from clew.testing import StrictProvider

WINDOW = 8_000


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read or written but in the folder of the test."""
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
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
def provide() -> Iterator[Callable[..., StrictProvider]]:
    """Providers that are up until the test ends."""
    running: list[StrictProvider] = []

    def start(script: Any = None, window: int = WINDOW) -> StrictProvider:
        provider = StrictProvider(script, window=window) if script else StrictProvider(window=window)
        running.append(provider.__enter__())
        return provider

    yield start
    for provider in running:
        provider.__exit__(None, None, None)


@pytest.fixture
def agent() -> Callable[..., Agent]:
    """An agent whose model a provider serves."""

    def make(provider: StrictProvider, **given: Any) -> Agent:
        model = Gemini(model="gemini-3-pro", base_url=provider.url)
        return Agent(**{"name": "reader", "model": model, "instruction": "You read."} | given)

    return make
