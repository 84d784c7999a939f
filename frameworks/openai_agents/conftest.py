"""OpenAI's Agents SDK, kept from the network, and a provider on loopback."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

os.environ |= {"OPENAI_API_KEY": "none", "OPENAI_AGENTS_DISABLE_TRACING": "1"}

import pytest
from agents import OpenAIProvider, RunConfig
from frameworks.openai_agents.talking import WINDOW
from openai import AsyncOpenAI

from clew import Budget, Engine, SQLite
from clew.engine.settings import Settings
from clew.events import Event
from clew.testing import StrictProvider

Provide = Callable[..., StrictProvider]
Configure = Callable[..., RunConfig]


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
def config() -> Configure:
    """A configuration whose models a provider on loopback serves, by Responses or by Chat."""

    def made(provider: StrictProvider, responses: bool = True, **given: Any) -> RunConfig:
        client = AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="none", max_retries=0)
        served = OpenAIProvider(openai_client=client, use_responses=responses)
        return RunConfig(model_provider=served, tracing_disabled=True, **given)

    return made
