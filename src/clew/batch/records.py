"""The pure function: bytes of a conversation in, records out."""

from collections.abc import Iterator
from hashlib import blake2b

from clew.batch.acts import BatchAct, BatchRecord
from clew.batch.raw import RawConversation
from clew.core.bridge import run
from clew.engine.engine import Engine
from clew.sessions.export_agent import tell
from clew.sessions.import_log import take_in
from clew.sessions.transcripts import Transcript, read_all
from clew.store import open_store

HEADER = b'{"clew":'  # how a file of it begins
SCOPE = "batch"


ID_BYTES = 8


def records(raw: RawConversation, act: BatchAct) -> list[BatchRecord]:
    """What an act makes of a conversation, and of those that began in it; nothing else decides. Raises `ClewError`."""
    if not act.needs(raw.data):
        return []
    found = read_own_export(raw.data) if is_own_export(raw.data) else read_all(raw.data, raw.source)
    made = []
    for which, one in _numbered(found):
        record = act(one)
        if record is not None:
            made.append(_named(raw, which) | _about(one) | record)
    return made


def _numbered(found: list[Transcript]) -> Iterator[tuple[str, Transcript]]:
    """Each conversation with what tells it from others in the same bytes."""
    for n, one in enumerate(found, 1):
        yield from _with_children(f".{n}" if len(found) > 1 else "", one)


def _with_children(which: str, one: Transcript) -> Iterator[tuple[str, Transcript]]:
    yield which, one
    for n, child in enumerate(one.children, 1):
        yield from _with_children(f"{which}.c{n}", child)


def _named(raw: RawConversation, which: str) -> BatchRecord:
    position = f"{raw.position}{which}"
    return {
        "id": f"{raw.source}#{position}-{digest(raw.data)}",
        "source": raw.source,
        "position": position,
        "bytes": len(raw.data),
    }


def _about(one: Transcript) -> BatchRecord:
    return {
        "agent": one.agent,
        "session": one.name,
        "model": one.model,
        "format": one.format,
        "said": len(one.messages),
    }


def digest(data: bytes) -> str:
    """What a conversation is known by beside its place: it shows when a file was changed."""
    return blake2b(data, digest_size=ID_BYTES).hexdigest()


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
