"""A conversation that nobody has sent anything in of late, brought back to memory so that it can be compacted."""

from clew.core.items import Scope
from clew.core.view import View
from clew.engine.turns import Request, Turns
from clew.errors import Conflict, NotFound
from clew.wire import encode


async def reopened(turns: Turns, scope: Scope, branch: str) -> View:
    """A conversation as it stands. Raises `Conflict` where a newer one goes on from the same history."""
    store, hot = turns.store, turns.branches.get(scope, branch)
    trace = await store.load(scope, branch)
    if hot is not None and hot.trace.seq == trace.seq:
        return hot.view
    if not trace.frame:
        raise NotFound(f"nothing has been sent on branch {branch} yet")
    frame = await store.frame(scope, trace.frame)
    nodes = await store.nodes(scope, [place.id for place in trace.said])
    items = [nodes[place.id].item for place in trace.said]
    newest = await store.session(scope, trace.session) if trace.session else None
    if (newest or await turns.recogniser(scope, frame).whose(items, None)) != branch:
        raise Conflict("a newer conversation goes on from the same history: compact that one")
    # As if its client had sent all of it again, and waited for no answer.
    return await turns.take(Request(encode(frame, items), frame.format, scope, trace.session), silent=True)
