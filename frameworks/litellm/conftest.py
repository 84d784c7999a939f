"""LiteLLM, kept from the network, and a provider on loopback."""

import os
from collections.abc import AsyncIterator, Iterator

# Before LiteLLM is imported: it looks for prices on the network.
os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none"}

import litellm
import pytest
from frameworks.litellm.talking import TURNS
from frameworks.reading import WINDOW, reading
from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

from clew.testing import StrictProvider


@pytest.fixture(autouse=True)
async def own_callbacks(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Callbacks are of one test."""
    monkeypatch.setattr(litellm, "suppress_debug_info", True)
    yield
    await GLOBAL_LOGGING_WORKER.flush()
    for known in (litellm.callbacks, litellm.success_callback, litellm._async_success_callback):
        known.clear()


@pytest.fixture
def provider() -> Iterator[StrictProvider]:
    said = reading(TURNS)
    with StrictProvider(lambda _: next(said), window=WINDOW) as provider:
        yield provider
