"""OpenAI's Agents SDK, kept from the network, and a provider on loopback."""

import os
from collections.abc import Callable
from typing import Any

os.environ |= {"OPENAI_API_KEY": "none", "OPENAI_AGENTS_DISABLE_TRACING": "1"}

import pytest
from agents import OpenAIProvider, RunConfig
from openai import AsyncOpenAI

from clew.testing import StrictProvider

Provide = Callable[..., StrictProvider]
Configure = Callable[..., RunConfig]


@pytest.fixture
def config() -> Configure:
    """A configuration whose models a provider on loopback serves, by Responses or by Chat."""

    def made(provider: StrictProvider, responses: bool = True, **given: Any) -> RunConfig:
        client = AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="none", max_retries=0)
        served = OpenAIProvider(openai_client=client, use_responses=responses)
        return RunConfig(model_provider=served, tracing_disabled=True, **given)

    return made
