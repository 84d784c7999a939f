"""Long agent sessions that fit the window and forget nothing.

result = clew.compress(messages, window=32_000)      # one call, no store
view = await engine.prepare(Request(body))           # in a loop: what to send
await engine.recall("default", "3fa94c21b0")         # what did that stand-in stand for?
"""

from typing import TYPE_CHECKING

from clew.core.lazy import loader

if TYPE_CHECKING:
    from clew.adapters.wrapping import wrap
    from clew.compression import Compressed, acompress, compress
    from clew.config.wiring import configured
    from clew.core.bridge import run
    from clew.core.items import Digests, Edit, Frame, Item, Node
    from clew.core.limits import Budget, Size
    from clew.core.view import Swap, View
    from clew.engine.append import Addition
    from clew.engine.engine import Engine, Request, body
    from clew.engine.settings import Settings
    from clew.errors import (
        Ambiguous,
        BadConfig,
        BadRequest,
        BrokenHistory,
        Busy,
        CannotWait,
        ClewError,
        Conflict,
        ForeignFile,
        MissingExtra,
        ModelError,
        NewerFile,
        NotFound,
        OverBudget,
        Pinned,
        Purged,
        SecretFound,
        StoreError,
        TooLarge,
        ToolError,
    )
    from clew.sessions.diffs import Diff
    from clew.sessions.sessions import Sessions
    from clew.steps.chapters.model import Model, Prompt, Reply
    from clew.steps.protocol import Fallback, Pipeline, Step, When
    from clew.store.places import open_store
    from clew.store.protocol import Store
    from clew.store.records import Call, ClientEdit, Origin, Session
    from clew.store.sqlite import SQLite
    from clew.tokens import Counter, Plain, Vocabulary, counter_for
    from clew.tokens.meter import Meter
    from clew.tokens.target import Target

__version__ = "0.1.0"

__all__ = [
    "Addition",
    "Ambiguous",
    "BadConfig",
    "BadRequest",
    "BrokenHistory",
    "Budget",
    "Busy",
    "Call",
    "CannotWait",
    "ClewError",
    "ClientEdit",
    "Compressed",
    "Conflict",
    "Counter",
    "Diff",
    "Digests",
    "Edit",
    "Engine",
    "Fallback",
    "ForeignFile",
    "Frame",
    "Item",
    "Meter",
    "MissingExtra",
    "Model",
    "ModelError",
    "NewerFile",
    "Node",
    "NotFound",
    "Origin",
    "OverBudget",
    "Pinned",
    "Pipeline",
    "Plain",
    "Prompt",
    "Purged",
    "Reply",
    "Request",
    "SQLite",
    "SecretFound",
    "Session",
    "Sessions",
    "Settings",
    "Size",
    "Step",
    "Store",
    "StoreError",
    "Swap",
    "Target",
    "TooLarge",
    "ToolError",
    "View",
    "Vocabulary",
    "When",
    "acompress",
    "body",
    "compress",
    "configured",
    "counter_for",
    "open_store",
    "run",
    "wrap",
]

# Where each name lives. Loaded when first used: a host that imports clew and may never compact pays nothing.
_HOMES = {
    "adapters.wrapping": "wrap",
    "engine.append": "Addition",
    "config.wiring": "configured",
    "core.bridge": "run",
    "core.limits": "Budget Size",
    "tokens.meter": "Meter",
    "tokens.target": "Target",
    "compression": "Compressed acompress compress",
    "engine.engine": "Engine Request body",
    "engine.settings": "Settings",
    "errors": "Ambiguous BadConfig BadRequest BrokenHistory Busy CannotWait ClewError Conflict ForeignFile "
    "MissingExtra ModelError NewerFile NotFound OverBudget Pinned Purged SecretFound StoreError TooLarge "
    "ToolError",
    "core.items": "Digests Edit Frame Item Node",
    "sessions.sessions": "Diff Sessions",
    "steps.protocol": "Fallback Pipeline Step When",
    "steps.chapters.model": "Model Prompt Reply",
    "store.places": "open_store",
    "store.protocol": "Store",
    "store.records": "Call ClientEdit Origin Session",
    "store.sqlite": "SQLite",
    "tokens": "Counter Plain Vocabulary counter_for",
    "core.view": "Swap View",
}
__getattr__ = loader(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
