"""Agents of Pydantic AI that talk to a strict provider."""

from collections.abc import Callable
from typing import Any

import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from clew.testing import StrictProvider


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
