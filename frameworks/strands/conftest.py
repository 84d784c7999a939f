"""Agents of Strands that talk to a strict provider, with nothing of this machine in them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from strands import Agent
from strands.models.openai import OpenAIModel

import clew
from clew.store.places import open_store
from clew.testing import StrictProvider

WINDOW = 4_000


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read or written but in the folder of the test."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def provide() -> Iterator[Callable[..., StrictProvider]]:
    """Providers that are up until the test ends."""
    running: list[StrictProvider] = []

    def start(script: Any, window: int = WINDOW) -> StrictProvider:
        provider = StrictProvider(script, window=window)
        running.append(provider.__enter__())
        return provider

    yield start
    for provider in running:
        provider.__exit__(None, None, None)


@pytest.fixture
def model() -> Callable[..., OpenAIModel]:
    """A model that a provider serves."""

    def make(provider: StrictProvider, window: int | None = WINDOW, **more: Any) -> OpenAIModel:
        # Certificates are not read for each call, and no connection outlives the loop that made it.
        http = httpx.AsyncClient(verify=False, limits=httpx.Limits(max_keepalive_connections=0))
        client = openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="none", max_retries=0, http_client=http)
        return OpenAIModel(client, model_id="gpt-4o", context_window_limit=window, **more)

    return make


@pytest.fixture
def agent(model: Callable[..., OpenAIModel]) -> Callable[..., Agent]:
    """An agent that prints nothing."""

    def make(provider: StrictProvider, *, window: int | None = WINDOW, **given: Any) -> Agent:
        return Agent(**{"model": model(provider, window), "callback_handler": None} | given)

    return make


@pytest.fixture
def found(tmp_path: Path) -> Callable[..., str]:
    """What the log has about something that was said in a session, whole."""

    async def search(session: str, text: str) -> str:
        store = open_store(tmp_path / "clew.db")
        branch = await store.session("default", session)
        assert branch is not None
        nodes = await clew.Engine(store).search("default", text, branch)
        await store.close()
        return "\n".join(node.item.text for node in nodes)

    return lambda session, text: clew.run(search(session, text))
