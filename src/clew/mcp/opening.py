"""The library that a server answers from: what is configured, as seen from one folder."""

from collections.abc import Callable, Mapping
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
from clew.store.sql import SQLStore


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
    shared: Callable[[bool], SQLStore] | None = None,
) -> Library:
    """What may be told in a folder: its project's conversations, one of them, or all.

    The store that answers is its own, unless there is one that others use, too.
    """
    scope = scope or config.scope
    # Nothing is compacted or summed up here: no model need be at hand.
    quiet = replace(config, summary=replace(config.summary, model="none"))

    def made(create: bool) -> Engine:
        return over(open_store(store or config.store, create))

    def over(opened: SQLStore) -> Engine:
        return engine(quiet, opened, compaction="off")

    home = folders.home(env)
    project = project_of(folder, home)

    @cache
    def mine(other: str) -> bool:
        return project is not None and project_of(other, home) == project

    reachable = None if every else mine
    indexer = Indexer(lambda: made(True), scope, reachable, env) if index else None
    answering = (lambda create: over(shared(create))) if shared else made
    own = None if conversation else reachable
    return Library(answering, scope, own, conversation, indexer, owns=shared is None)
