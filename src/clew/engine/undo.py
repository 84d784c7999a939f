"""Taking compactions back: what they stood for is in view again, and what was said since stays."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_

from clew import events
from clew.core.items import Edit, Frame, Item, Scope, new_id
from clew.core.view import Swap, View
from clew.engine.replay import replay
from clew.engine.turns import TRIES, Turns, wait
from clew.errors import BadRequest, Conflict, NotFound, OverBudget
from clew.events import tell
from clew.recognition.proof import logged
from clew.steps.repair import repair
from clew.store.records import Batch, Began, Event, Revert
from clew.store.trace import Fold, Trace
from clew.tokens.provider_size import ProviderSize


@dataclass(frozen=True, slots=True)
class Undone:
    """What an undo brought back."""

    sessions: tuple[str, ...]  # whose beginnings were taken back
    view: View
    before: int  # tokens, as the provider counts
    after: int
    limit: int


async def undo(turns: Turns, scope: Scope, branch: str, count: int = 1, dry_run: bool = False) -> Undone:
    """Take back the newest compactions of a branch. Raises `OverBudget`, with the numbers, if that would not fit.

    Where none is left, and its client goes on from a summary that clew gave it, that is replaced by what it is of.
    """
    if count < 1:
        raise BadRequest(f"undo: count must be at least 1, got {count}")
    for left in range(TRIES - 1, -1, -1):
        trace = await turns.store.load(scope, branch)
        folds = _newest(trace, count)
        back = None if folds else await _unsummed(turns, scope, trace)
        if len(folds) < count and not (count == 1 and back):
            raise NotFound(
                f"cannot undo {count} compactions: this conversation has {len(folds)} left to undo"
                if count > 1
                else "there is nothing to undo: no compaction of this conversation is left that was not undone already"
            )
        undone, changes = back or await _undone(turns, scope, trace, folds)
        if dry_run:
            return undone
        sent = undone.view.digests.run("", (n.content for n in undone.view.nodes))
        try:
            await turns.store.write(scope, Batch(branch, trace.seq, changes, heads=(sent,)))
        except Conflict:
            if not left:
                raise
            await wait(TRIES - left)
            continue
        if known := turns.branches.get(scope, branch):
            turns.branches.forget(scope, known)
        told = events.Reverted(scope, branch, trace.seq, undone.sessions, undone.before, undone.after)
        tell(turns.listeners, [told])
        return undone
    raise AssertionError("unreachable")


async def _undone(turns: Turns, scope: Scope, trace: Trace, folds: Sequence[Fold]) -> tuple[Undone, tuple[Event, ...]]:
    made = {id for fold in folds for id in fold.made}
    sessions = tuple(fold.session for fold in folds)
    frame = await turns.store.frame(scope, trace.frame)
    shown = await replay(turns.store, scope, trace, frame, {})
    items = {n.id: n.item for n in shown.nodes}
    revert, view = await _reverted(turns, scope, trace, made, sessions, frame, items)
    again = {id for id, held in trace.quoted.items() if held in {n.id for n in view.nodes}}
    if again - made:  # it stands there itself: nobody need quote it
        revert, view = await _reverted(turns, scope, trace, made | again, sessions, frame, items)
    was = {n.id for n in shown.nodes}
    revert = with_(revert, held=tuple(n.id for n in view.nodes if n.id not in was))
    return await _fitting(turns, scope, trace, shown, view, sessions), (revert,)


async def _fitting(
    turns: Turns, scope: Scope, trace: Trace, shown: View, view: View, sessions: tuple[str, ...]
) -> Undone:
    """What an undo would do, in numbers. Raises `OverBudget` where it would not fit."""
    target, measured = await turns.limits.target_as_called(scope, view.frame, trace), ProviderSize()
    await turns.limits.weigh(scope, measured, target, view.frame)
    before, limit = measured.expected(shown), target.limit.tokens
    size, rate = measured.measure(view)
    if not size.within(target.at(rate).limit):
        needed = max(round(size.tokens * rate), limit + 1)
        raise OverBudget(
            f"after this undo the view would have {needed:,} tokens, and {limit:,} fit ({needed - limit:,} too many; "
            f"{before:,} now): undo fewer, fork from an earlier session, or recall what you need",
            needed=needed,
            limit=limit,
        )
    view = with_(view, scope=scope, branch=trace.branch, seq=trace.seq)
    return Undone(sessions, view, before, measured.expected(view), limit)


@dataclass(frozen=True)
class Unsummed:
    """By which a client's summary is replaced with what it is a summary of."""


async def _unsummed(turns: Turns, scope: Scope, trace: Trace) -> tuple[Undone, tuple[Event, ...]] | None:
    """The same where a client compacted, and clew gave it the summary that it goes on from; None: it does not."""
    store = turns.store
    came = await store.ancestry(scope, trace.branch)
    if not came or not trace.frame:
        return None
    frame, (parent, last) = await store.frame(scope, trace.frame), came[0]
    shown = await replay(store, scope, trace, frame, {})
    digests = turns.digests(scope)
    given = (logged(digests, node.item.text) for node in shown.nodes)
    at = next((i for i, told in enumerate(given) if told and told.branch == parent), None)
    past = await store.load(scope, parent, last)
    if at is None or not past.folds:
        return None
    whole = await replay(store, scope, await store.load(scope, parent, past.folds[-1].seq - 1), frame, {})
    # Thinking is bound to what stood before it there.
    items = [node.item for node in repair(whole).nodes if node.item.kind != "reasoning"]
    view = shown.replace_all([Swap(at, at + 1, items)], by=Unsummed())
    began = (await store.sessions(scope, trace.branch))[-1].id
    undone = await _fitting(turns, scope, trace, shown, view, (began,))
    return undone, (Began(new_id(), "compaction", "undo"), *view.edits[len(shown.edits) :])


async def _reverted(
    turns: Turns,
    scope: Scope,
    trace: Trace,
    made: Collection[str],
    sessions: tuple[str, ...],
    frame: Frame,
    items: Mapping[str, Item],
) -> tuple[Revert, View]:
    """What takes these stand-ins back, with all made of them, and the view without them."""
    after = trace.copy()
    revert = Revert(tuple(sorted(_dependent(trace.edits, made))), (), sessions)
    after.revert(revert)
    return revert, await replay(turns.store, scope, after, frame, items)


def _newest(trace: Trace, count: int) -> list[Fold]:
    """The newest compactions that still stand."""
    standing = {n.id for edit in trace.edits for n in edit.stand_ins}
    return [fold for fold in reversed(trace.folds) if not standing.isdisjoint(fold.made)][:count]


def _dependent(edits: Sequence[Edit], made: Collection[str]) -> set[str]:
    """These stand-ins, and those made of them, however often over."""
    gone = set(made)
    for edit in edits:  # in the order in which they were made
        if not gone.isdisjoint(edit.old):
            gone.update(n.id for n in edit.stand_ins)
    return gone
