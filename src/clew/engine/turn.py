"""One turn: what was recognised happens to its branch, a view is made of it that fits, and all of it is written down.

Five plain functions, one after the other, each of which fills in a part of a `Turn`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_

from clew.catalog import Prices
from clew.core import rawjson
from clew.core.items import Frame, Scope, new_id
from clew.core.threads import LONG, are_large, in_thread_if
from clew.core.view import View
from clew.engine.branch import Branch, freshened
from clew.engine.compaction import Compactor, Fitted
from clew.engine.cue import Cue
from clew.engine.model_limits import ModelLimits
from clew.engine.replay import counted, replay, sent_last
from clew.engine.reports import turn_events
from clew.events import Listener, Unproven, tell
from clew.recognition.continuation import SHARED_NAMES, Recognition
from clew.recognition.last_body import Incoming
from clew.secrets.guard import Guard
from clew.steps.chapters.author import Author
from clew.store.protocol import Store
from clew.store.records import Batch, Began, Call, Event, Method, Revert
from clew.store.trace import Trace, apply
from clew.tokens.target import Target
from clew.wire.rules.binding import is_refused


@dataclass(slots=True)
class Turn:
    """A request on its way through the engine."""

    scope: Scope
    branch: Branch
    frame: Frame
    found: Recognition
    guard: Guard
    incoming: Incoming | None = None  # the body it came in; None: only what is new was sent
    method: Method | None = None  # that it asks for
    cue: Cue | None = None  # and when its agent is asked to act
    own: Author | None = None  # the model that it is sent to, where its host lets that be asked
    silent: bool = False  # it is written down, and nothing is sent
    waited: bool = False  # for notes that a model was writing
    # What the functions below find out.
    first: int = 0  # the number of its first event
    known: int = 0  # edits that there were before
    digest: str = ""  # of its frame
    same_frame: bool = False  # as the last one
    target: Target = field(init=False)
    prices: Prices | None = None
    shown: View = field(init=False)  # before anything is compacted
    fitted: Fitted = field(init=False)
    written: list[Event] = field(default_factory=list)


async def recognised(turn: Turn, store: Store, limits: ModelLimits) -> None:
    """What the request says happens to the branch, and the branch is measured as the request's model counts."""
    branch, found, size = turn.branch, turn.found, turn.branch.ledger.size
    trace, last = branch.trace, branch.sent.frame
    turn.first = trace.seq
    before = branch.body.frame if turn.incoming else branch.view.frame
    turn.same_frame = bool(last) and _is_same_frame(before, turn.frame)
    turn.digest = last if turn.same_frame else branch.view.digests.frame(turn.frame)
    branch.unmasked |= turn.guard.sent(found.sent())
    if reverts := _answered(trace, found):
        found.events.insert(0, reverts)
        found.refold = True
    reported = None if last else await counted(store, turn.scope, trace, found)
    apply(trace, *found.events)
    turn.known = len(trace.edits)
    turn.written += found.events
    if turn.silent:
        turn.target = await limits.target(turn.scope, turn.frame)
    else:
        turn.target = await limits.target_of_turn(turn.scope, turn.frame, trace.branch)
    turn.prices = limits.windows.prices(turn.frame.model)
    await limits.weigh(turn.scope, size, turn.target, turn.frame)
    size.unmasked = branch.unmasked
    if reported and reported[0].frame.model == turn.frame.model:
        size.recover(*reported)


async def shown(turn: Turn, store: Store) -> None:
    """The branch's view before anything is compacted: lengthened where it can be, made anew where it must."""
    branch, found = turn.branch, turn.found
    if found.refold:
        # The items as the client last sent them, with the marks it set: the log has them without.
        held = {n.id: n.item for n in branch.view.nodes}
        view = await replay(store, turn.scope, branch.trace, turn.frame, held | found.sent())
        turn.shown = with_(view, behind=branch.view.behind)
    else:
        nodes = (*branch.view.nodes, *found.new_nodes())
        view = with_(branch.view, frame=turn.frame, nodes=nodes, pinned=branch.trace.pins())
        turn.shown = freshened(view, found.fresh) if found.fresh else view
    if branch.sent.view is None and not turn.silent and is_refused(turn.frame):
        branch.sent.view = await sent_last(store, turn.scope, found, turn.guard, turn.shown)


async def fitted(turn: Turn, compactor: Compactor) -> None:
    """The view as it may be sent; what was edited for that happens to the branch."""
    if turn.silent:
        turn.fitted = Fitted(turn.shown)
    else:
        size, view = turn.branch.ledger.size, turn.shown
        await in_thread_if(are_large(node.item for node in size.unmeasured(view)), lambda: size.measure(view))
        asked = turn.method, turn.cue, turn.waited
        turn.fitted = await compactor.fit(turn.scope, turn.branch, turn.shown, turn.target, *asked)
    view, trace = turn.fitted.view, turn.branch.trace
    edits: list[Event] = [*view.edits[turn.known :]]
    if turn.fitted.folded is not None:
        at, cause = turn.fitted.folded - turn.known, turn.fitted.cause
        # Not made of branch and event: a branch that was purged may begin anew while an heir of it has its sessions.
        edits.insert(at, Began(new_id(), cause, "llm" if cause == "handoff" else "auto"))
    apply(trace, *edits)
    turn.written += edits


async def written(turn: Turn, store: Store) -> None:
    """All that happened goes to the log in one transaction, with the call that is about to be made."""
    branch, found, trace, view = turn.branch, turn.found, turn.branch.trace, turn.fitted.view
    heads = {""}
    if turn.incoming is not None:
        taken = turn.incoming, found.contents, view.digests, len(trace.said), found.unfolded
        await in_thread_if(len(turn.incoming.messages) > LONG, lambda: branch.body.take(*taken))
        heads.add(branch.body.chains[-1])
    changed = found.refold or len(turn.written) > len(found.events)
    since, nodes = ("", view.nodes) if changed else (branch.sent.chain, found.new_nodes())
    branch.sent.chain = view.digests.run(since, (n.content for n in nodes))
    if turn.fitted.error is None and not turn.silent:
        again = branch.ledger.size.prefix(branch.view, view) if changed else branch.sent.predicted
        call = _call(turn, again if turn.same_frame else 0)
        turn.written.append(call)
        apply(trace, call)
        branch.sent.predicted = call.predicted
    if turn.written or found.opened:
        heads = {*heads, branch.sent.chain} - {""}
        frames = ((turn.digest, turn.guard.frame(turn.frame)),) if turn.digest != branch.sent.frame else ()
        opened = found.opened, found.fork, trace.session if found.opened else None
        batch = Batch(trace.branch, turn.first, tuple(turn.written), *opened, tuple(heads), frames, found.origin)
        if found.shares_name and trace.session is not None:
            batch = with_(batch, learned=((SHARED_NAMES, trace.session, {}),))
        await store.write(turn.scope, batch)


def sent(turn: Turn, listeners: Sequence[Listener]) -> View:
    """The view to send, now that it is in the log; listeners hear of it. Raises what kept it from fitting."""
    branch, view, trace = turn.branch, turn.fitted.view, turn.branch.trace
    if turn.written and listeners:
        heard = turn.guard.masked_events(turn.scope, trace.branch, turn.first, turn.found.new_nodes())
        facts = turn_events(turn.scope, trace, turn.first, turn.written, turn.shown, turn.target.meter, turn.prices)
        lost = [Unproven(turn.scope, trace.branch, turn.first)] if turn.found.lost else []
        tell(listeners, [*lost, *heard, *facts])
    if turn.fitted.error is not None:
        raise turn.fitted.error
    new = trace.edits[turn.known :]
    if new and branch.unmasked:
        branch.unmasked = {n.id: branch.unmasked[n.id] for n in view.nodes if n.id in branch.unmasked}
    # What was folded is in the log: whoever needs it again reads it there, and memory holds no more than is in view.
    edits = turn.shown.edits.plus(new) if new else view.edits
    branch.view = with_(view, scope=turn.scope, branch=trace.branch, seq=trace.seq - 1, behind={}, edits=edits)
    branch.sent.frame = turn.digest
    branch.sent.view = branch.sent.view if turn.silent else branch.view
    return branch.as_sent(with_(branch.view, edits=view.edits) if new else branch.view)


def _call(turn: Turn, cached: int) -> Call:
    branch, view = turn.branch, turn.fitted.view
    return Call(
        branch=branch.trace.branch,
        seq=branch.trace.seq,
        frame=turn.digest,
        model=view.frame.model,
        format=view.frame.format,
        digest=view.digests.link(turn.digest, (branch.sent.chain,)),
        said=len(branch.trace.said),
        predicted=branch.ledger.size.expected(view),
        limit=turn.target.limit.tokens,
        exact=turn.target.meter.counter.exact,
        cached=cached,
        shadow=turn.fitted.shadow,
        due=turn.fitted.due.note(),
        window=turn.target.window,
    )


def _answered(trace: Trace, found: Recognition) -> Revert | None:
    """Mendings to take back: the result of a call that was given up has come after all."""
    late = [n.item.call_id for n in found.new_nodes() if n.item.kind == "result" and n.item.call_id in trace.mended]
    ids = tuple(id for call in late for id in trace.mended[call])
    return Revert(ids) if ids else None


def _is_same_frame(was: Frame | None, now: Frame) -> bool:
    """To the letter: to Python, 1 is 1.0 is True."""
    if was is None or was is now:
        return was is now
    return was == now and rawjson.dumps([was.lead, was.body]) == rawjson.dumps([now.lead, now.body])
