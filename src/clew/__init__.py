"""Keeps long agent conversations within the context window without losing anything.

result = clew.compress(messages, window=32_000)      # one call, no store
client = clew.wrap(OpenAI(), "agent.db")             # an SDK's client whose requests fit
view = await engine.prepare(Request(body))           # in a loop: what to send
await engine.recall("default", "3fa94c21b0")         # what did that stand-in stand for?
"""

import warnings
from typing import TYPE_CHECKING, Any

from clew.core.lazy import loader

if TYPE_CHECKING:
    from clew.adapters.wrapping import wrap
    from clew.compression import acompress, compress
    from clew.config.wiring import configured
    from clew.core.bridge import run
    from clew.core.limits import Budget
    from clew.engine.engine import Engine, Request, body
    from clew.engine.settings import Settings
    from clew.sessions.sessions import Sessions
    from clew.store.places import open_store
    from clew.store.sqlite import SQLite

__version__ = "0.1.0"

__all__ = [
    "Budget",
    "Engine",
    "Request",
    "SQLite",
    "Sessions",
    "Settings",
    "acompress",
    "body",
    "compress",
    "configured",
    "open_store",
    "run",
    "wrap",
]

# Where each name lives. Loaded when first used: a host that imports clew and may never compact pays nothing.
_HOMES = {
    "adapters.wrapping": "wrap",
    "compression": "acompress compress",
    "config.wiring": "configured",
    "core.bridge": "run",
    "core.limits": "Budget",
    "engine.engine": "Engine Request body",
    "engine.settings": "Settings",
    "sessions.sessions": "Sessions",
    "store.places": "open_store",
    "store.sqlite": "SQLite",
}
# Names that 0.1 had here, too.
_MOVED = {
    "compression": "Compressed",
    "core.items": "Digests Edit Frame Item Node",
    "core.limits": "Size",
    "core.view": "Swap View",
    "engine.append": "Addition",
    "errors": "Ambiguous BadConfig BadRequest BrokenHistory Busy CannotWait ClewError Conflict ForeignFile "
    "MissingExtra ModelError NewerFile NotFound OverBudget Pinned Purged SecretFound StoreError TooLarge ToolError",
    "sessions.diffs": "Diff",
    "steps.chapters.model": "Model Prompt Reply",
    "steps.protocol": "Fallback Pipeline Step When",
    "store.protocol": "Store",
    "store.records": "Call ClientEdit Origin Session",
    "tokens": "Counter Plain Vocabulary counter_for",
    "tokens.meter": "Meter",
    "tokens.target": "Target",
}
_load, _load_moved = loader(__name__, _HOMES), loader(__name__, _MOVED)


def __getattr__(name: str) -> Any:
    for module, names in _MOVED.items():
        if name in names.split():
            said = f"clew.{name} is in clew.{module} now, and goes from here with 0.3"
            warnings.warn(said, DeprecationWarning, stacklevel=2)
            return _load_moved(name)
    return _load(name)


def __dir__() -> list[str]:
    return __all__
