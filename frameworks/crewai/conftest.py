"""crewAI, kept from the network and from the files of whoever runs the tests."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

HOME = TemporaryDirectory(prefix="clew-crewai-")
# Before crewAI is imported: it reads them then.
os.environ |= {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TESTING": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
    "HOME": HOME.name,
    "XDG_DATA_HOME": HOME.name,
    "XDG_CONFIG_HOME": HOME.name,
}

from crewai import LLM, Agent
from crewai.events import crewai_event_bus
from crewai.tools import BaseTool, tool

from clew import Budget, Engine, SQLite, run
from clew.engine.settings import Settings
from clew.testing import StrictProvider

SMALL = Budget(window=8_000, reserve=500)


@pytest.fixture(autouse=True)
def own_storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What crewAI stores is of one test."""
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path / "crewai"))
    crewai_event_bus.reset_runtime_state()  # it has the crews of a process, and a checkpoint has the first of them
    yield
    crewai_event_bus.flush()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Callable[..., Engine]]:
    """Opens one store again and again, as after a restart, for models with a small window."""
    opened: list[SQLite] = []

    def make(budget: Budget | None = SMALL, **given: Any) -> Engine:
        opened.append(SQLite(tmp_path / "clew.db"))
        return Engine(opened[-1], budget, Settings(**given))

    yield make
    for store in opened:
        run(store.close())


@pytest.fixture
def clerk() -> Callable[..., Agent]:
    """Makes agents that ask a provider."""

    def make(provider: StrictProvider, role: str = "Clerk", model: str = "gpt-4o", **given: Any) -> Agent:
        llm = LLM(model=f"openai/{model}", base_url=f"{provider.url}/v1", api_key="none")
        return Agent(role=role, goal="Keep the books.", backstory="Careful.", llm=llm, max_retry_limit=0, **given)

    return make


@pytest.fixture
def read_page() -> BaseTool:
    """A tool whose results are long, and all different."""

    @tool("read_page")
    def read_page(path: str, words: int = 600) -> str:
        """Read a page of the books."""
        mark = path.partition("-")[2]
        return "\n".join(" ".join(f"w{mark}x{n + i}" for i in range(10)) for n in range(0, words, 10))

    return read_page
