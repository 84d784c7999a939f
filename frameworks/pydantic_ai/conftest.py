"""Agents of Pydantic AI that talk to a strict provider, with nothing of this machine in them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

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
def model() -> Callable[..., OpenAIChatModel]:
    """A model that a provider serves."""

    def make(provider: StrictProvider, name: str = "gpt-4o", kind: Any = OpenAIChatModel, **more: Any) -> Any:
        http = DefaultAsyncHttpxClient(verify=False)  # certificates are not read for each test
        client = AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="none", max_retries=0, http_client=http)
        return kind(name, provider=OpenAIProvider(openai_client=client), **more)

    return make


@pytest.fixture
def agent(model: Callable[..., OpenAIChatModel]) -> Callable[..., Agent[None, Any]]:
    def make(provider: StrictProvider, *capabilities: Any, **given: Any) -> Agent[None, Any]:
        return Agent(given.pop("model", None) or model(provider), capabilities=capabilities, **given)

    return make
