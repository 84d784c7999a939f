"""The turns of a conversation: what was said, sent, cached and paid, with its compactions among them."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from clew.core.caches import Recent
from clew.core.items import Scope
from clew.engine.engine import Engine
from clew.sessions.bill import CallBill
from clew.sessions.totals import wholes
from clew.store.records import Call, Session, StoreState

TURNS_AT_ONCE = 200  # turns that are loaded at once
POINTS = 1_500  # of a chart: more than a screen has
REMEMBERED_TIMELINES = 4


class TurnRow(NamedTuple):
    """A call, and the sessions that began with it."""

    number: int
    call: Call
    bill: CallBill
    began: tuple[Session, ...]


class Timeline(NamedTuple):
    """The turns of a branch, and what it has from its parents."""

    calls: Sequence[Call]
    began: Mapping[int, tuple[Session, ...]]  # by the place of the call that came next
    marks: Sequence[int] = ()  # those places, sorted, each as often as sessions began there

    def chunks(self, start: int = 0, least: int = TURNS_AT_ONCE) -> list[tuple[int, int]]:
        """Stretches of the turns from one on, the newest first; up to `least` of them are one stretch."""
        end = len(self.calls)
        if end - start <= least:
            return [(min(start, end), end)]
        return [(max(start, stop - TURNS_AT_ONCE), stop) for stop in range(end, start, -TURNS_AT_ONCE)]

    def rows(self, start: int, stop: int) -> int:
        """The lines that a stretch of turns takes, with those of sessions that began in it."""
        return stop - start + bisect_left(self.marks, stop) - bisect_left(self.marks, start)


class Timelines:
    """The turns of conversations; those that were looked at last are remembered until something happens in them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: Recent[tuple[Scope, str, StoreState], Timeline] = Recent(REMEMBERED_TIMELINES)

    async def of(self, scope: Scope, branch: str) -> Timeline:
        """All turns of a branch."""
        key = scope, branch, await self._engine.store.state(scope, branch)
        if (found := self._known.get(key)) is None:
            found = self._known[key] = await _read(self._engine, scope, branch)
        return found


async def _read(engine: Engine, scope: Scope, branch: str) -> Timeline:
    calls = await engine.store.calls(scope, branch)
    own = sorted(await engine.store.sessions(scope, branch), key=lambda s: (s.seq, s.number))
    began: dict[int, tuple[Session, ...]] = {}
    at = 0
    for session in own:
        while at < len(calls) and calls[at].seq < session.seq:
            at += 1
        if session.number > 1 or session.cause != "start":
            began[at] = (*began.get(at, ()), session)
    return Timeline(calls, began, [place for place, those in began.items() for _ in those])


async def turns(engine: Engine, scope: Scope, found: Timeline, start: int, stop: int) -> list[TurnRow]:
    """Some of the turns, the newest first."""
    rows = []
    for at in range(min(stop, len(found.calls)) - 1, max(0, start) - 1, -1):
        call = found.calls[at]
        prices = engine.limits.windows.prices(call.model)
        rows.append(TurnRow(at + 1, call, CallBill.of(call, prices), found.began.get(at, ())))
    return rows


async def chart(engine: Engine, scope: Scope, branch: str, found: Timeline) -> dict[str, Any]:
    """A timeline as columns of numbers, the largest of neighbours where there are very many."""
    everything, _ = await wholes(engine, scope, branch, found.calls)
    columns = (
        list(range(1, len(found.calls) + 1)),
        everything,
        [call.predicted for call in found.calls],
        [(call.usage or {}).get("input") or None for call in found.calls],
        [call.cached if call.usage is None else call.usage.get("cache_read") for call in found.calls],
        [call.limit for call in found.calls],
    )
    step = max(1, -(-len(found.calls) // POINTS))
    thin = [[_largest(column[at : at + step]) for at in range(0, len(column), step)] for column in columns]
    marks = [{"turn": at + 1, "cause": s.cause, "id": s.id} for at, those in found.began.items() for s in those]
    return {"columns": thin, "marks": [mark for mark in marks if mark["cause"] in ("compaction", "handoff")]}


def _largest(values: Sequence[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
