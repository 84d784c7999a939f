"""An engine as the configuration wants it."""

import logging
import sys
from pathlib import Path
from typing import Any, Literal

from clew.config.places import here
from clew.config.reading import load
from clew.config.table import Config, Override
from clew.core.limits import Budget
from clew.engine.engine import Engine
from clew.engine.model_limits import Budgeting
from clew.engine.settings import Settings
from clew.errors import BadConfig, BadRequest
from clew.events import JSONLines, Listener, log
from clew.llm import named, read
from clew.steps import preset
from clew.steps.chapters.by_model import ByModel
from clew.store.places import open_store
from clew.store.protocol import Store
from clew.wire.formats import add


def configured(where: str | Path | None = None, budget: Budget | Budgeting | None = None, **given: Any) -> Engine:
    """An engine as files and variables want it here, over this store or theirs; what is `given` is above them.

    Raises `BadConfig`. Where `log` is set, the logger `clew` writes to stderr from now on.

    >>> engine = clew.configured("agent.db")  # with your settings, over a store of this program's own
    >>> engine.store.path
    'agent.db'
    """
    config = load(here().env, here().folder)
    return engine(config, open_store(config.store if where is None else where), budget, **given)


def engine(config: Config, store: Store, budget: Budget | Budgeting | None = None, **given: Any) -> Engine:
    """An engine with all that is configured; a budget and settings that are `given` are above it."""
    try:
        for name in config.formats:
            add(name)
    except BadRequest as error:
        raise BadConfig(f"formats: {error}") from None
    settings: dict[str, Any] = {
        "step": preset(config.preset),
        "expand": config.expand,
        "secrets": config.secrets,
        "models": {name: config.model(name) for name in config.models},
        "servers": config.servers,
        "listeners": listeners(config),
        "compaction": config.compaction,
        "method": config.compaction_method,
        "author": author(config),
        "memory": config.memory << 20,
    }
    return Engine(store, budget or config.budget_for, Settings(**{**settings, **given}))


def author(config: Config) -> ByModel | Literal["own"] | None:
    """Which model writes chapters: that of each conversation (`own`), one that is named, or none."""
    own = config.summary
    if own.model == "none":
        return None
    if own.model == "own":
        return "own"
    model = named(own.model, window=config.models.get(read(own.model).name, Override()).window)
    return ByModel(model, instructions=own.instructions or "")


def listeners(config: Config) -> list[Listener]:
    """Who hears what happens: the log on stderr, the user's own collector."""
    found: list[Listener] = []
    if config.log != "off":
        _write_to_stderr(config.log)
        found.append(log)
    if config.telemetry:
        from clew.events.telemetry import Traces  # needs an extra

        found.append(Traces())
    return found


def _write_to_stderr(form: str) -> None:
    logger = logging.getLogger("clew")
    logger.setLevel(logging.INFO)
    if not logger.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JSONLines() if form == "json" else logging.Formatter("%(asctime)s %(message)s"))
        logger.addHandler(handler)
