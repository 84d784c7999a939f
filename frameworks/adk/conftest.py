"""Apps of ADK that talk to a strict provider."""

import os
from collections.abc import Callable
from typing import Any

os.environ |= {"OTEL_SDK_DISABLED": "true", "GOOGLE_API_KEY": "none"}

import pytest
from google.adk.agents import Agent
from google.adk.models import Gemini

from clew.testing import StrictProvider


@pytest.fixture
def agent() -> Callable[..., Agent]:
    """An agent whose model a provider serves."""

    def make(provider: StrictProvider, **given: Any) -> Agent:
        model = Gemini(model="gemini-3-pro", base_url=provider.url)
        return Agent(**{"name": "reader", "model": model, "instruction": "You read."} | given)

    return make
