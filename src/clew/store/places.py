"""Where a store is: a path, or a URL of a server, whose password is never shown."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from clew.errors import NotFound
from clew.store.addresses import hidden
from clew.store.sql import SQLStore
from clew.store.sqlite import SQLite
from clew.store.waiting import PATIENCE

SCHEMES = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class Server:
    """A store on a server, by its URL."""

    url: str = field(repr=False)

    def __str__(self) -> str:
        return hidden(self.url)


def is_url(text: str) -> bool:
    """Whether this names a server, and no file."""
    return text.startswith(SCHEMES)


def place(text: str) -> Path | Server:
    """What a person names as a store."""
    return Server(text) if is_url(text) else Path(text).expanduser()


def open_store(where: str | os.PathLike[str] | Server, create: bool = True, patience: float = PATIENCE) -> SQLStore:
    """The store at a path or a postgresql:// URL; with `create=False`, one that is not there is not made.

    A call waits `patience` seconds at most for what another process has locked.

    >>> clew.open_store("agent.db").path
    'agent.db'
    """
    if isinstance(where, Server) or is_url(str(where)):
        from clew.store.postgres import Postgres  # needs an extra

        return Postgres(where.url if isinstance(where, Server) else str(where), create=create, patience=patience)
    path = Path(where).expanduser()
    if not create and (not path.exists() or path.stat().st_size == 0):
        raise NotFound(f"{path}: no store found; `clew demo` creates one, or use --store")
    return SQLite(where, patience)
