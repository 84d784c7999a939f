"""Long agent sessions that fit the window and forget nothing.

result = clew.compress(messages, window=32_000)      # one call, no store
view = await engine.prepare(Request(body))           # in a loop: what to send
await engine.recall("default", "3fa94c21b0")         # what did that stand-in stand for?
"""

from clew.bridge import run
from clew.budget import Budget, Meter, Size
from clew.compression import Compressed, acompress, compress
from clew.engine import Engine, Request, body
from clew.errors import (
    Ambiguous,
    BadRequest,
    BrokenHistory,
    ClewError,
    Conflict,
    ForeignFile,
    NewerFile,
    NotFound,
    OverBudget,
    Pinned,
    StoreError,
)
from clew.items import Digests, Edit, Frame, Item, Node
from clew.step import Fallback, Model, Pipeline, Reply, Step, When
from clew.store import Call, ClientEdit, SQLite, Store
from clew.tokens import Counter, Plain, Vocabulary, counter_for
from clew.view import Swap, View

__version__ = "0.1.0"

__all__ = [
    "Ambiguous",
    "BadRequest",
    "BrokenHistory",
    "Budget",
    "Call",
    "ClewError",
    "ClientEdit",
    "Compressed",
    "Conflict",
    "Counter",
    "Digests",
    "Edit",
    "Engine",
    "Fallback",
    "ForeignFile",
    "Frame",
    "Item",
    "Meter",
    "Model",
    "NewerFile",
    "Node",
    "NotFound",
    "OverBudget",
    "Pinned",
    "Pipeline",
    "Plain",
    "Reply",
    "Request",
    "SQLite",
    "Size",
    "Step",
    "Store",
    "StoreError",
    "Swap",
    "View",
    "Vocabulary",
    "When",
    "acompress",
    "body",
    "compress",
    "counter_for",
    "run",
]
