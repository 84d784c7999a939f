"""LiteLLM, kept from the network, and a provider on loopback."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

# Before LiteLLM is imported: it looks for prices on the network.
os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none"}

import litellm
import pytest
from frameworks.litellm.talking import WINDOW, reading
from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

from clew import Budget, Engine, SQLite
from clew.engine.settings import Settings
from clew.events import Event
from clew.testing import StrictProvider


@pytest.fixture(autouse=True)
async def own_callbacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Callbacks are of one test; where clew keeps things, too."""
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr(litellm, "suppress_debug_info", True)
    yield
    await GLOBAL_LOGGING_WORKER.flush()
    for known in (litellm.callbacks, litellm.success_callback, litellm._async_success_callback):
        known.clear()


@pytest.fixture
def heard() -> list[Event]:
    """What the engine tells."""
    return []


@pytest.fixture
def engine(tmp_path: Path, heard: list[Event]) -> Engine:
    budget = Budget(window=WINDOW, reserve=500)
    return Engine(SQLite(tmp_path / "clew.db"), budget, Settings(listeners=[heard.append]))


@pytest.fixture
def provider() -> Iterator[StrictProvider]:
    said = reading()
    with StrictProvider(lambda _: next(said), window=WINDOW) as provider:
        yield provider
