"""The log: a protocol, and SQLite, its default."""

from clew.store.records import Batch, BranchInfo, Call, ClientEdit, Fork, Found, Pin, Place, Said, Store, Trace, Usage
from clew.store.sqlite import SQLite

__all__ = [
    "Batch",
    "BranchInfo",
    "Call",
    "ClientEdit",
    "Fork",
    "Found",
    "Pin",
    "Place",
    "SQLite",
    "Said",
    "Store",
    "Trace",
    "Usage",
]
