"""From an id as a person or a model writes it to the one node or span it means."""

from clew.errors import Ambiguous, NotFound
from clew.items import Digests, Scope
from clew.store.records import Store


async def resolve(store: Store, scope: Scope, id: str, branch: str | None = None) -> str:
    """The whole id; with `branch`, only of something in that branch's own past."""
    short = id.strip().lower()
    if not short or len(short) > 32 or set(short) - set("0123456789abcdef"):
        raise NotFound(f"{id!r} is not an id: ids are hexadecimal, such as 3fa94c21b0")
    found = await store.resolve(scope, short)
    if branch is not None:
        own = await _lineage(store, scope, branch)
        found = [f for f in found if f in own]
    if not found and (purged := await store.purged(scope, short)):
        raise purged
    if not found:
        raise NotFound(f"nothing here has the id {id}")
    if len(found) > 1:
        raise Ambiguous(f"{id} fits {len(found)} ids; give more of it: {', '.join(f[:16] for f in found[:5])}")
    return found[0]


async def _lineage(store: Store, scope: Scope, branch: str) -> set[str]:
    trace = await store.load(scope, branch)
    digests = Digests(store.secret, scope)
    ids = {p.id for p in trace.said} | set(trace.alias.values())
    for edit in trace.edits:
        ids.update(edit.old, (n.id for n in edit.new), (digests.handle(edit.old),))
    return ids
