"""A conversation as it went: what was asked, what was done for it, where it was compacted."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from clew.clients.voices import typed
from clew.core.items import SHORT, Node
from clew.mcp.reach import Reach
from clew.screens.lines import count, moment, words
from clew.store.records import Call, Session
from clew.store.trace import Fold

READ_ITEMS = 200  # items that are read at a time
REQUEST_CHARACTERS = 240  # characters of a request
TOOLS_NAMED = 5


async def timeline(reach: Reach, session: Session, before: int | None, size: int) -> tuple[str, int]:
    """The newest of what happened, or of what came before an item, and the item that it begins with; 0: the first."""
    store, scope = reach.engine.store, reach.scope
    trace = await store.load(scope, session.branch)
    own = {s.id: s for s in await store.sessions(scope, session.branch)}
    calls = await store.calls(scope, session.branch)
    # Session files are read later than they are written: when their requests were made is not known.
    dated = [] if min(own.values(), key=lambda s: s.number).cause == "import" else calls
    stop = len(trace.said) if before is None else max(0, min(before - 1, len(trace.said)))
    folds = {fold.said: fold for fold in trace.folds if fold.said <= stop}
    lines = [_folded(folds[stop], own, calls, bool(dated))] if before is None and stop in folds else []
    work: Counter[str] = Counter()
    at = stop
    while at > 0:
        begin = max(0, at - READ_ITEMS)
        nodes = await store.nodes(scope, [place.id for place in trace.said[begin:at]])
        for place in range(at - 1, begin - 1, -1):
            node = nodes[trace.said[place].id]
            fresh = [*_entry(place, node, work, dated)]
            if place in folds:
                fresh.append(_folded(folds[place], own, calls, bool(dated)))
            size -= sum(len(line) + 1 for line in fresh)
            if size < 0 and lines:
                return "\n".join(reversed(lines)), place + 2
            lines += fresh
        at = begin
    return "\n".join(reversed(lines)), 0


def _entry(place: int, node: Node, work: Counter[str], calls: Sequence[Call]) -> Iterator[str]:
    """The lines of an item, the last first: if it is a request, what was done for it, and what it said."""
    item = node.item
    if item.kind == "call":
        work[item.name] += 1
    asked = typed(item)
    if not asked:
        return
    if work:
        named = ", ".join(f"{words(name, 40)} × {times}" for name, times in work.most_common(TOOLS_NAMED))
        yield f"    done: {count(work.total(), 'call')} ({named})"
        work.clear()
    when = next((f"{moment(call.at)}  " for call in calls if call.said > place), "")
    yield f"{place + 1}. {when}{node.id[:SHORT]}  {words(asked, REQUEST_CHARACTERS)}"


def _folded(fold: Fold, sessions: Mapping[str, Session], calls: Sequence[Call], is_dated: bool) -> str:
    """A compaction, with the tokens of the calls before and after it."""
    began = sessions.get(fold.session)
    was = next((c.predicted for c in reversed(calls) if c.seq < fold.seq), 0)
    now = next((c.predicted for c in calls if c.seq > fold.last), 0)
    how = f"{began.cause} ({words(began.method, 20)})" if began else "compaction"
    when = f" {moment(began.at)}" if began and is_dated else ""
    undone = ", undone since" if began and began.undone else ""
    return f"--- {how}{when}{undone}: requests of {was:,} tokens before, {now:,} after"
