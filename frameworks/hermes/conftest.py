"""Hermes in a folder of its own, with clew as its plugin, and a provider on loopback."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Before Hermes is imported: it reads and writes there.
os.environ |= {"HERMES_HOME": tempfile.mkdtemp(prefix="hermes-"), "HERMES_REDACT_SECRETS": "false"}

import pytest
from frameworks.hermes.talking import PLAIN, WINDOW, Model, settings
from hermes_cli.plugins import get_plugin_manager
from run_agent import AIAgent

from clew.testing import StrictProvider


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Hermes and clew keep things, of one test."""
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "hermes"))
    (tmp_path / "hermes").mkdir()
    return tmp_path


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def provider(model: Model) -> Iterator[StrictProvider]:
    with StrictProvider(model, window=WINDOW) as provider:
        yield provider


@pytest.fixture
def agent(home: Path, provider: StrictProvider) -> Callable[..., Any]:
    """An agent of Hermes with the plugin, as its own CLI would make one."""

    def made(engine: str = "clew", window: int = WINDOW, **given: Any) -> Any:
        (home / "hermes" / "config.yaml").write_text(settings(engine, window), encoding="utf-8")
        get_plugin_manager().discover_and_load(force=True)
        return AIAgent(**{**PLAIN, "base_url": f"{provider.url}/v1", **given})

    return made
