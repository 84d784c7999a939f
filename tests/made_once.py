"""Store files that many tests begin with: each is made once in a process, and copied from then on."""

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from clew import SQLite

T = TypeVar("T")
_made: dict[Any, tuple[bytes, Any]] = {}


async def copied(path: Path, fill: Callable[[SQLite], Awaitable[T]]) -> T:
    """Write a store that was filled so, and return what came of filling it."""
    if fill not in _made:
        with tempfile.TemporaryDirectory() as folder:
            store = SQLite(Path(folder) / "clew.db")
            came = await fill(store)
            await store.close()
            _made[fill] = ((Path(folder) / "clew.db").read_bytes(), came)
    raw, result = _made[fill]
    path.write_bytes(raw)
    return cast(T, result)
