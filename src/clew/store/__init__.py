"""The log: a protocol; SQLite, its default; PostgreSQL in `clew.store.postgres`, for who has the extra."""

from typing import TYPE_CHECKING

from clew.core.lazy import loader

if TYPE_CHECKING:
    from clew.store.database import Problem
    from clew.store.places import open_store
    from clew.store.protocol import Store
    from clew.store.records import ABSENT, Batch, BranchInfo, Call, ClientEdit, Fork, KnownHead, Pin, Place, Said, Usage
    from clew.store.rows import row_of
    from clew.store.sqlite import SQLite
    from clew.store.trace import Trace, apply
    from clew.store.upkeep import Survey
    from clew.store.upkeep.backup import restore
    from clew.store.upkeep.purge import Audit, Purge
    from clew.store.waiting import patience

__all__ = [
    "ABSENT",
    "Audit",
    "Batch",
    "BranchInfo",
    "Call",
    "ClientEdit",
    "Fork",
    "KnownHead",
    "Pin",
    "Place",
    "Problem",
    "Purge",
    "SQLite",
    "Said",
    "Store",
    "Survey",
    "Trace",
    "Usage",
    "apply",
    "open_store",
    "patience",
    "restore",
    "row_of",
]

# Loaded when first used: who only lists conversations need not wait for it.
_HOMES = {
    "database": "Problem",
    "places": "open_store",
    "protocol": "Store",
    "records": "ABSENT Batch BranchInfo Call ClientEdit Fork KnownHead Pin Place Said Usage",
    "rows": "row_of",
    "sqlite": "SQLite",
    "trace": "Trace apply",
    "upkeep": "Survey",
    "upkeep.backup": "restore",
    "upkeep.purge": "Audit Purge",
    "waiting": "patience",
}
__getattr__ = loader(__name__, _HOMES)
