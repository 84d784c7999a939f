"""LangChain, kept from the network, and a provider on loopback."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

os.environ |= {"OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none", "LANGSMITH_TRACING": "false"}

import pytest
from frameworks.langchain.talking import WINDOW
from langchain_openai import ChatOpenAI

from clew import Budget, Engine, SQLite
from clew.engine.settings import Settings
from clew.events import Event
from clew.testing import StrictProvider

Provide = Callable[..., StrictProvider]


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def provide() -> Iterator[Provide]:
    """Starts a provider that says what a script says."""
    with ExitStack() as stack:

        def start(script: Any, window: int = WINDOW) -> StrictProvider:
            return stack.enter_context(StrictProvider(script, window=window))

        yield start


@pytest.fixture
def chat() -> Callable[..., ChatOpenAI]:
    """A model of LangChain that a provider on loopback serves."""

    def made(provider: StrictProvider, **given: Any) -> ChatOpenAI:
        return ChatOpenAI(**{"model": "gpt-4o-mini", "base_url": f"{provider.url}/v1", "max_retries": 0} | given)

    return made
