"""What a compaction did, or would do: what left the view, what stands there, what it saves."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from clew.catalog.cost import cost
from clew.catalog.usage import Spent
from clew.core.items import Edit, Node, Scope
from clew.core.view import View, originals
from clew.engine.engine import Engine
from clew.errors import NotFound
from clew.facts.coverage import CoverageLedger
from clew.sessions.composition import Shown, recall_id, shown
from clew.sessions.names import called
from clew.steps.worklog.blocks import author
from clew.store.protocol import Store
from clew.store.records import Session
from clew.tokens.meter import Meter


class StandIn(NamedTuple):
    """What took the place of some nodes, and what those were."""

    id: str  # by which what it stands for can be recalled
    by: str  # the step that made it
    nodes: tuple[Node, ...]
    originals: tuple[Node, ...]  # the originals behind it
    before: int  # tokens of what was in view
    after: int
    author: str = ""  # of a chapter: the model, or code


class Price(NamedTuple):
    """Dollars of one prompt: read without, and read from the provider's cache."""

    fresh: float
    cached: float


@dataclass(frozen=True, slots=True)
class Diff:
    """What a compaction did."""

    session: Session  # the one that it began, or would end
    left: tuple[Shown, ...]  # what was in view before it and is not any more, earlier stand-ins among it
    stand_ins: tuple[StandIn, ...]
    before: int  # tokens of the whole request, as the provider counts
    after: int
    limit: int  # of the call it was made for
    coverage: CoverageLedger
    price_before: Price | None  # of such a call
    price_after: Price | None
    spent: int  # tokens that the compaction itself took
    cost: float | None  # dollars for them, where known

    @property
    def removed(self) -> tuple[Node, ...]:
        """The originals behind its stand-ins, each once."""
        return tuple({n.id: n for stand_in in self.stand_ins for n in stand_in.originals}.values())


async def last_event(store: Store, scope: Scope, session: Session) -> int | None:
    """The last event of a session; None: it goes on."""
    every = await store.sessions(scope, session.branch)
    later = [s.seq for s in every if s.number > session.number]
    return min(later) - 1 if later else None


async def made(engine: Engine, scope: Scope, session: Session, known: Mapping[str, Session]) -> Diff:
    """What the compaction that began a session took out of view; `known` are sessions by their ids."""
    store = engine.store
    trace = await store.load(scope, session.branch, await last_event(store, scope, session))
    fold = next((f for f in trace.folds if f.session == session.id), None)
    if fold is None and session.cause == "compaction" and (parent := known.get(session.parent or "")):
        return await made(engine, scope, parent, known)  # a client's own: its summary was made there
    if fold is None:
        name = f"{called(session)}.{session.number}"
        raise NotFound(f"{name} began with {session.cause}, not with a compaction: there is nothing to compare")
    calls = await store.calls(scope, session.branch)
    call = next((c for c in calls if c.seq > fold.last), None)  # that it was made for
    frame = await store.frame(scope, call.frame) if call else None
    before = await engine.view(scope, session.branch, fold.seq - 1, frame)
    after = await engine.view(scope, session.branch, fold.last, frame)
    edits = [e for e in after.edits if not set(fold.made).isdisjoint(n.id for n in e.stand_ins)]
    return await _compared(engine, scope, session, before, after, edits, call.limit if call else None)


async def previewed(engine: Engine, session: Session, before: View, focus: str) -> Diff:
    """What a compaction of a view would do now. Raises `NotFound` where it would do nothing."""
    after = await engine.preview(before, focus)
    if len(after.edits) == len(before.edits):
        raise NotFound("a compaction would change nothing")
    return await _compared(engine, before.scope, session, before, after, after.edits[len(before.edits) :], None)


async def _compared(
    engine: Engine,
    scope: Scope,
    session: Session,
    before: View,
    after: View,
    edits: Sequence[Edit],
    limit: int | None,
) -> Diff:
    """A view beside what some edits make of it."""
    target, was = await engine.target(after), await engine.expected(before)
    now = round(target.size(after).tokens * was / max(1, target.size(before).tokens))
    after = await engine.with_originals(after)
    covered = await engine.covered(after)
    stay = {n.id for n in after.nodes}
    paid = [e.evidence["cost"] for e in edits if e.evidence.get("cost") is not None]
    return Diff(
        session,
        tuple(shown((n for n in before.nodes if n.id not in stay), before.edits, target.meter)),
        tuple(_stand_ins(before, after, edits, target.meter)),
        was,
        now,
        target.limit.tokens if limit is None else limit,
        covered,
        _price(engine, after, was),
        _price(engine, after, now),
        spent=sum(e.spent for e in edits),
        cost=sum(paid) if paid else None,
    )


def _price(engine: Engine, view: View, tokens: int) -> Price | None:
    prices = engine.limits.windows.prices(view.frame.model)
    if prices is None:
        return None
    return Price(cost(prices, Spent(tokens, 0, 0, tokens)), cost(prices, Spent(tokens, 0, tokens)))


def _stand_ins(before: View, after: View, edits: Sequence[Edit], meter: Meter) -> Iterator[StandIn]:
    """What each edit of a compaction put in place of what; edits that a later one covered are part of that one."""
    by_id = after.edits.made
    sizes = {n.id: meter.node(n).tokens for n in before.nodes}
    shown = {n.id: n for n in after.nodes}
    for edit in edits:
        nodes = tuple(shown[n.id] for n in edit.stand_ins if n.id in shown)
        if not nodes:
            continue
        was = _shown_behind(edit, by_id, sizes)
        said = [after.behind.get(id) for id in originals(edit.sources, by_id)]
        yield StandIn(
            recall_id(edit, after.digests),
            edit.by,
            nodes,
            tuple(n for n in said if n is not None),
            sum(sizes[id] for id in was),
            meter.nodes(nodes).tokens,
            author(edit),
        )


def _shown_behind(edit: Edit, by_id: Mapping[str, Edit], shown: Container[str]) -> Iterator[str]:
    """The nodes of an earlier view that an edit covers, through edits that were made in between."""
    for id in edit.sources:
        if id in shown:
            yield id
        elif inner := by_id.get(id):
            yield from _shown_behind(inner, by_id, shown)
