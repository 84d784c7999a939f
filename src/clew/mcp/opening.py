"""The library that a server answers from: what is configured, as seen from one folder."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from clew.config import Config, engine
from clew.core import folders
from clew.engine.engine import Engine
from clew.mcp.indexing import Indexer
from clew.mcp.library import Library
from clew.sessions.projects import project_of
from clew.store import open_store


def library(
    config: Config,
    env: Mapping[str, str],
    folder: Path,
    *,
    conversation: str = "",
    every: bool = False,
    index: bool = True,
    scope: str = "",
    store: str | None = None,
) -> Library:
    """What may be told in a folder: its project's conversations, one of them, or all."""
    scope = scope or config.scope
    # Nothing is compacted or summed up here: no model need be at hand.
    quiet = replace(config, summary=replace(config.summary, model="none"))

    def made(create: bool) -> Engine:
        return engine(quiet, open_store(store or config.store, create), compaction="off")

    home = folders.home(env)
    own = project_of(folder, home)

    @cache
    def mine(other: str) -> bool:
        return own is not None and project_of(other, home) == own

    reachable = None if every else mine
    indexer = Indexer(lambda: made(True), scope, reachable, env) if index else None
    return Library(made, scope, None if conversation else reachable, conversation, indexer)
