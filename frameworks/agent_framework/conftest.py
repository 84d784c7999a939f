"""Agents of Agent Framework that talk to a strict provider."""

from collections.abc import Callable
from typing import Any

import pytest
from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from clew.testing import StrictProvider


@pytest.fixture
def client() -> Callable[..., Any]:
    """A client of a provider."""

    def make(provider: StrictProvider, kind: Any = OpenAIChatCompletionClient, model: str = "gpt-4o") -> Any:
        http = DefaultAsyncHttpxClient(verify=False)  # certificates are not read for each test
        asking = AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="none", max_retries=0, http_client=http)
        return kind(model=model, async_client=asking)

    return make


@pytest.fixture
def agent(client: Callable[..., Any]) -> Callable[..., Agent]:
    """An agent whose model a provider serves."""

    def make(provider: StrictProvider, *providers: Any, **given: Any) -> Agent:
        asking = given.pop("client", None) or client(provider)
        return Agent(asking, **{"instructions": "You read.", "context_providers": list(providers)} | given)

    return make
