"""A conversation as it went: its calls with what they took, and what was asked with what was done for it."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple

from clew.clients.voices import typed
from clew.core.caches import Recent
from clew.core.items import Node, Scope
from clew.core.threads import LONG, in_thread_if
from clew.engine.engine import Engine
from clew.sessions.bill import CallBill
from clew.sessions.totals import everything_said
from clew.store.protocol import Store
from clew.store.records import Call, Session, StoreState
from clew.store.trace import Fold

POINTS = 1_500  # of a chart: more than a screen has
REMEMBERED_TIMELINES = 4
UNREPORTED = 20  # calls of which there may be other reports yet
READ_ITEMS = 200  # items that are read at a time


class TurnRow(NamedTuple):
    """A call, and the sessions that began with it."""

    number: int
    call: Call
    bill: CallBill
    began: tuple[Session, ...]


class Timeline(NamedTuple):
    """The calls of a branch, with those it has from its parents, and the sessions that began between them."""

    calls: Sequence[Call]
    began: Mapping[int, tuple[Session, ...]]  # by the place of the call that came next


class Timelines:
    """The turns of conversations; those that were looked at last are remembered, and what is new is read."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: Recent[tuple[Scope, str], tuple[StoreState, Timeline]] = Recent(REMEMBERED_TIMELINES)

    async def of(self, scope: Scope, branch: str) -> Timeline:
        """All turns of a branch."""
        state = await self._engine.store.state(scope, branch)
        was, found = self._known.get((scope, branch)) or (None, Timeline((), {}))
        if was != state:
            known = found.calls if was is not None and was.purges == state.purges else ()
            found = await read_timeline(self._engine, scope, branch, known)
            self._known[scope, branch] = state, found
        return found


async def read_timeline(engine: Engine, scope: Scope, branch: str, known: Sequence[Call] = ()) -> Timeline:
    """All turns of a branch, from the log, but for those known before the last and before one that has no report."""
    settled = max(0, len(known) - UNREPORTED)
    kept = known[: next((n for n, call in enumerate(known[:settled]) if call.usage is None), settled)]
    calls = [*kept, *await engine.store.calls(scope, branch, kept[-1].seq + 1 if kept else 0)]
    own = sorted(await engine.store.sessions(scope, branch), key=lambda s: (s.seq, s.number))
    began: dict[int, tuple[Session, ...]] = {}
    at = 0
    for session in own:
        while at < len(calls) and calls[at].seq < session.seq:
            at += 1
        if session.number > 1 or session.cause != "start":
            began[at] = (*began.get(at, ()), session)
    return Timeline(calls, began)


def turns(engine: Engine, found: Timeline, start: int, stop: int) -> list[TurnRow]:
    """Some of the turns, the newest first."""
    rows = []
    for at in range(min(stop, len(found.calls)) - 1, max(0, start) - 1, -1):
        call = found.calls[at]
        prices = engine.limits.windows.prices(call.model)
        rows.append(TurnRow(at + 1, call, CallBill.of(at + 1, call, prices), found.began.get(at, ())))
    return rows


async def chart(engine: Engine, scope: Scope, branch: str, found: Timeline) -> dict[str, Any]:
    """A timeline as columns of numbers, the largest of neighbours where there are very many."""
    everything = (await everything_said(engine, scope, branch, found.calls)).sizes
    step = max(1, -(-len(found.calls) // POINTS))

    def columns() -> list[list[int | None]]:
        every: Sequence[Sequence[int | None]] = (
            range(1, len(found.calls) + 1),
            everything,
            [call.predicted for call in found.calls],
            [(call.usage or {}).get("input") or None for call in found.calls],
            [call.cached if call.usage is None else call.usage.get("cache_read") for call in found.calls],
            [call.limit for call in found.calls],
        )
        return [[_largest(column[at : at + step]) for at in range(0, len(column), step)] for column in every]

    thin = await in_thread_if(len(found.calls) > LONG, columns)
    marks = [{"turn": at + 1, "cause": s.cause, "id": s.id} for at, those in found.began.items() for s in those]
    return {"columns": thin, "marks": [mark for mark in marks if mark["cause"] in ("compaction", "handoff")]}


def _largest(values: Sequence[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


# --- what was asked, and what was done for it -------------------------------------------------------------------------


class AskedRequest(NamedTuple):
    """A request of the user's, with what was called for it until the next one."""

    place: int  # among all that was said, from 1
    node: Node
    text: str
    work: Counter[str]  # tools, by how often they were called
    at: float | None  # when it was sent; None: nobody knows


class FoldedHistory(NamedTuple):
    """A compaction, with the tokens of the calls before and after it."""

    place: int  # of the item that it came before, from 1
    session: Session | None  # that it began
    was: int
    now: int
    at: float | None


Happening = AsyncIterator[AskedRequest | FoldedHistory]


async def happenings(store: Store, scope: Scope, branch: str, before: int | None = None) -> Happening:
    """What happened on a branch, or before an item of it, the newest first."""
    trace = await store.load(scope, branch)
    own = {s.id: s for s in await store.sessions(scope, branch)}
    calls = await store.calls(scope, branch)
    # Session files are read later than they are written: when their requests were made is not known.
    is_dated = min(own.values(), key=lambda s: s.number).cause != "import"
    stop = len(trace.said) if before is None else max(0, min(before - 1, len(trace.said)))
    folds = {fold.said: fold for fold in trace.folds if fold.said <= stop}
    if before is None and stop in folds:
        yield _folded(folds[stop], own, calls, is_dated)
    work: Counter[str] = Counter()
    for end in range(stop, 0, -READ_ITEMS):
        begin = max(0, end - READ_ITEMS)
        nodes = await store.nodes(scope, [place.id for place in trace.said[begin:end]])
        for place in range(end - 1, begin - 1, -1):
            node = nodes[trace.said[place].id]
            if node.item.kind == "call":
                work[node.item.name] += 1
            if text := typed(node.item):
                at = next((call.at for call in calls if call.said > place), None) if is_dated else None
                yield AskedRequest(place + 1, node, text, work, at)
                work = Counter()
            if place in folds:
                yield _folded(folds[place], own, calls, is_dated)


def _folded(fold: Fold, sessions: Mapping[str, Session], calls: Sequence[Call], is_dated: bool) -> FoldedHistory:
    began = sessions.get(fold.session)
    was = next((c.predicted for c in reversed(calls) if c.seq < fold.seq), 0)
    now = next((c.predicted for c in calls if c.seq > fold.last), 0)
    return FoldedHistory(fold.said + 1, began, was, now, began.at if began and is_dated else None)
