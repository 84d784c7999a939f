"""What `clew export` writes, read without a store on disk: every branch of it is a conversation."""

from clew.core.bridge import run
from clew.engine.engine import Engine
from clew.sessions.export_agent import tell
from clew.sessions.import_log import take_in
from clew.sessions.transcripts import Transcript
from clew.store import open_store

HEADER = b'{"clew":'  # how a file of it begins
SCOPE = "batch"


def is_own_export(data: bytes) -> bool:
    return data.startswith(HEADER)


def read_own_export(data: bytes) -> list[Transcript]:
    """The conversations of an export, in its order. Raises `BadRequest`."""
    return run(_read(data))


async def _read(data: bytes) -> list[Transcript]:
    store = open_store(":memory:")
    try:
        branches = await take_in(store, SCOPE, data.splitlines())
        engine = Engine(store)
        return [await tell(engine, SCOPE, branch) for branch in branches]
    finally:
        await store.close()
