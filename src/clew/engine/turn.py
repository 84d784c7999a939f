"""A turn: a request in, the view to send instead out, and all that happened in the log, in one transaction."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_
from typing import Any

from clew import events
from clew.core import rawjson
from clew.core.items import Digests, Frame, Item, Node, Scope
from clew.core.view import View, fold
from clew.engine.branches import Memory
from clew.engine.compaction import Fitted, Fitting, accepted
from clew.engine.cue import Cue
from clew.engine.model_limits import Gauge
from clew.engine.reports import told
from clew.errors import Conflict, NotFound, Purged
from clew.events import Listener, tell
from clew.recognition.branch import Live, apply, freshened
from clew.recognition.last_body import Body, Incoming, Known
from clew.recognition.other_format import native
from clew.recognition.recognise import Recogniser, Recognition
from clew.recognition.sameness import same_agent
from clew.secrets import Policy
from clew.secrets.guard import Guard, as_sent
from clew.store.protocol import Store
from clew.store.records import Batch, Began, Call, Cause, Event, Method, Origin, Revert
from clew.store.rows import ABSENT
from clew.store.trace import Trace
from clew.tokens.budget import Budget
from clew.wire.rules.binding import is_refused, prefix_of

Act = Callable[[Live, Budget], Awaitable[View]]  # what makes a view shorter

LATE = (Conflict, Purged)  # somebody wrote, or purged what was found, since it was looked for: look again
TRIES = 20  # when another process extends the same branch at the same moment


@dataclass(frozen=True, slots=True)
class Request:
    """A request as the client made it."""

    body: Mapping[str, Any] | bytes
    format: str | None = None  # told from the body if not given
    scope: Scope = "default"
    session: str | None = None  # the host's own name for the conversation, if it has one
    origin: Origin | None = None  # why it begins, should it begin with this request: a task, a sub-agent, a handoff
    method: Method | None = None  # who decides when to compact, if not as the engine has it
    cue: Cue | None = None  # from where on an agent that decides is asked to act, if not as usual


class Turns:
    """Takes turns on the branches of a log, those of late from memory."""

    def __init__(
        self,
        store: Store,
        fitting: Fitting,
        gauge: Gauge,
        listeners: Sequence[Listener],
        hot: int,
        secrets: Policy,
    ) -> None:
        self.store = store
        self.fitting = fitting
        self.gauge = gauge
        self.listeners = listeners
        self._secrets = Guard(secrets, store.secret, "").policy
        self.memory = Memory(hot)

    async def take(self, request: Request, silent: bool = False) -> View:
        """The view to send instead of the request's own history. Raises `OverBudget` if frame and pins do not fit.

        If `silent`, what was said is written down, and nothing is sent.
        """
        body = Body(request.body, request.format)
        self.guard(request.scope).expect_names(scope=request.scope, session=request.session)
        for left in range(TRIES - 1, -1, -1):
            live = self.memory.best(request.scope, request.session, body)
            try:
                view = await self._warm(live, request, body, silent) if live else None
                return view or await self._cold(request, body, silent)
            except LATE:
                if live is not None:  # what it remembers may have been purged
                    self.memory.forget(request.scope, live)
                if not left:
                    raise
                await wait(TRIES - left)
        raise AssertionError("unreachable")

    async def compact(self, view: View, act: Act, method: str, cause: Cause = "compaction") -> View:
        """The newest view of a branch, compacted now."""
        live = self.memory.newest(view)
        if live is None:
            raise NotFound("only the newest view of a branch can be compacted, by the engine that made it")
        async with live.lock:
            scope, first, known = view.scope, live.trace.seq, len(live.trace.edits)
            budget = await self.gauge.budget(scope, view.frame)
            live.view = with_(live.view, pinned=live.trace.pins())  # somebody may have pinned since
            after = accepted(live, await act(live, budget), live.view)
            if len(after.edits) == known:
                return view
            began = Began(after.digests.session(view.branch, first), cause, method)
            edits: list[Event] = [began, *after.edits[known:]]
            sent = after.digests.run("", (n.content for n in after.nodes))
            try:
                # With its head: a host that keeps what it gets here sends it back as if said.
                await self.store.write(scope, Batch(view.branch, first, tuple(edits), heads=(sent,)))
            except BaseException:
                self.memory.forget(scope, live)
                raise
            apply(live.trace, edits)
            live.sent, live.settled = sent, 0
            live.scale.edit()
            live.view = after
            tell(self.listeners, told(scope, live.trace, first, edits, view, budget.meter, None))
            return with_(after, nodes=as_sent(after.nodes, live.unmasked)) if live.unmasked else after

    async def _warm(self, live: Live, request: Request, body: Body, silent: bool) -> View | None:
        """A turn on a branch in memory: what is new costs, what is old does not. None: it is another conversation."""
        async with live.lock:
            if live.stale or (live.whole and live.trace.edits):  # asked again, it may fit without the folds
                return None
            incoming = live.known.read(body)
            if incoming is None or incoming.same < live.known.solid:
                return None
            offset = live.known.starts[incoming.same] + live.known.shift
            if not _is_same_agent(live, incoming.frame):
                return None
            looking = self.recogniser(request.scope, incoming.frame)
            found = await looking.extend(live.trace, incoming.flat(), offset)
            if found is None:
                return None
            found.method, found.cue, found.silent, found.whole = request.method, request.cue, silent, live.whole
            view = await self.turn(request.scope, live, incoming.frame, found, looking.guard, incoming)
            self.memory.keep(request.scope, live)
            return view

    async def _cold(self, request: Request, body: Body, silent: bool) -> View:
        """A turn whose branch must be looked up in the log."""
        known = Known(body.format)
        incoming = known.read(body)
        assert incoming is not None, "its own format"
        looking = self.recogniser(request.scope, incoming.frame)
        found = await looking.find(incoming.flat(), request.session)
        found.origin = None if found.fork else request.origin or found.origin
        found.method, found.cue, found.silent = request.method, request.cue, silent
        live = Live(found.trace, known, View(incoming.frame, (), self.digests(request.scope)))
        live.beside = request.session if found.trace.session is None else None
        live.whole = found.whole
        view = await self.turn(request.scope, live, incoming.frame, found, looking.guard, incoming)
        self.memory.keep(request.scope, live)
        return view

    async def turn(
        self,
        scope: Scope,
        live: Live,
        frame: Frame,
        found: Recognition,
        guard: Guard,
        incoming: Incoming | None = None,
    ) -> View:
        """Let a branch be what was recognised, make its view fit, and write all of it down."""
        try:
            return await self._advance(scope, live, frame, found, guard, incoming)
        except BaseException as error:
            # What memory holds may be half done; the log is not. The next turn reads it.
            self.memory.forget(scope, live)
            if not isinstance(error, LATE):  # that one is tried again
                failed = events.Failed(scope, live.trace.branch, live.trace.seq, type(error).__name__)
                tell(self.listeners, [failed])
            raise

    async def _advance(
        self, scope: Scope, live: Live, frame: Frame, found: Recognition, guard: Guard, incoming: Incoming | None
    ) -> View:
        trace, first = live.trace, live.trace.seq
        same = bool(live.frame) and _is_same_frame(live.known.frame if incoming else live.view.frame, frame)
        digest = live.frame if same else live.view.digests.frame(frame)
        versioned = ((digest, guard.frame(frame)),) if digest != live.frame else ()
        live.unmasked |= guard.sent(found.sent())
        if reverts := _answered(trace, found):
            found.events.insert(0, reverts)
            found.refold = True
        counted = None if live.frame else await self._counted(scope, trace, found)
        apply(trace, found.events)
        known = len(trace.edits)
        budget = await self.gauge.budget(scope, frame)
        await self.gauge.weigh(scope, live.scale, budget, frame)
        if counted and counted[0].frame.model == frame.model:
            live.scale.recover(*counted)
        shown = await self._shown(scope, live, frame, found)
        if live.last is None and not found.silent and is_refused(frame):
            live.last = await self._last(scope, found, guard, shown)
        prices = (await self.gauge.limits.model(scope, frame.model)).prices
        view, error, shadow, folded, cause = (
            Fitted(shown)
            if found.silent
            else await self.fitting.fit(scope, live, shown, budget, prices, found.method, found.cue, found.whole)
        )
        edits: list[Event] = [*view.edits[known:]]
        if folded is not None:
            at = folded - known
            edits.insert(
                at,
                Began(
                    view.digests.session(trace.branch, trace.seq + at), cause, "llm" if cause == "handoff" else "auto"
                ),
            )
        apply(trace, edits)
        heads = {""}
        if incoming is not None:
            live.known.take(incoming, found.contents, view.digests, len(trace.said), found.unfolded)
            heads.add(live.known.chains[-1])
        if edits or found.refold:
            live.sent = view.digests.run("", (n.content for n in view.nodes))
        else:
            live.sent = view.digests.run(live.sent, (n.content for n in found.said()))
        written: list[Event] = [*found.events, *edits]
        if error is None and not found.silent:
            again = live.scale.prefix(live.view, view) if edits or found.refold else live.predicted
            call = self._call(live, view, budget, digest, again if same else 0, shadow)
            written.append(call)
            apply(trace, [call])
            live.predicted = call.predicted
        session = trace.session if found.opened else None
        known_by = tuple((heads | {live.sent}) - {""})
        opened = found.opened, found.fork, session
        batch = Batch(trace.branch, first, tuple(written), *opened, known_by, versioned, found.origin)
        if written:
            await self.store.write(scope, batch)
            if self.listeners:
                heard = [*guard.told(scope, trace.branch, first, found.said())]
                tell(self.listeners, [*heard, *told(scope, trace, first, written, shown, budget.meter, prices)])
        if error is not None:
            raise error
        if edits and live.unmasked:
            live.unmasked = {n.id: live.unmasked[n.id] for n in view.nodes if n.id in live.unmasked}
        live.view = with_(view, scope=scope, branch=trace.branch, seq=trace.seq - 1)
        live.frame = digest
        live.last = live.last if found.silent else live.view
        return with_(live.view, nodes=as_sent(live.view.nodes, live.unmasked)) if live.unmasked else live.view

    async def _shown(self, scope: Scope, live: Live, frame: Frame, found: Recognition) -> View:
        """The branch's view before this turn's steps: lengthened where it can be, folded anew where it must."""
        if found.refold:
            live.scale.edit()
            live.settled = 0
            # The items as the client last sent them, with the marks it set: the log has them without.
            held = {n.id: n.item for n in live.view.nodes}
            view = await self.fold(scope, live.trace, frame, held | found.sent())
            return with_(view, past=live.view.past)
        new = found.said()
        live.scale.grow(as_sent(new, live.unmasked))
        view = with_(live.view, frame=frame, nodes=(*live.view.nodes, *new), pinned=live.trace.pins())
        return freshened(view, found.fresh) if found.fresh else view

    async def _counted(self, scope: Scope, trace: Trace, found: Recognition) -> tuple[View, int] | None:
        """What a branch that comes from the log sent last, and the provider's count of it, if it has said so."""
        if not trace.reported or (said := trace.calls[-1][1]) > len(trace.said):
            return None
        sent = with_(trace, said=trace.said[:said])  # what was said since is no part of it
        return await self.fold(scope, sent, await self.store.frame(scope, trace.frame), found.sent()), trace.reported

    async def _last(self, scope: Scope, found: Recognition, guard: Guard, shown: View) -> View | None:
        """What a branch that comes from the log sent last, in the frame of that call."""
        if not any(n.item.kind == "reasoning" for n in shown.nodes):
            return None
        if found.trace.calls:
            branch = found.fork.parent if found.fork else found.trace.branch
            trace = await self.store.load(scope, branch, found.trace.calls[-1][0])
        elif found.whole and found.origin and found.origin.parent:
            # Asked beside a conversation: there it was thought, after what was sent there.
            trace = await self.store.load(scope, found.origin.parent)
        else:
            return None
        frame = await self.store.frame(scope, trace.frame)
        # In the log, secrets are masked: what differs only by that does not differ.
        same = prefix_of(frame) == prefix_of(guard.frame(shown.frame))
        items = {n.id: n.item for n in shown.nodes}
        return await self.fold(scope, trace, shown.frame if same else frame, items)

    async def refold(self, scope: Scope, live: Live) -> None:
        """Make the view of a branch anew from its log; what it shows already needs no reading."""
        live.scale.edit()
        live.settled = 0
        held = {n.id: n.item for n in live.view.nodes}
        view = await self.fold(scope, live.trace, live.view.frame, held)
        live.sent = view.digests.run("", (n.content for n in view.nodes))
        was = live.view
        live.view = with_(view, scope=scope, branch=was.branch, seq=was.seq, past=was.past)

    async def fold(self, scope: Scope, trace: Trace, frame: Frame, items: Mapping[str, Item]) -> View:
        """A branch as its edits show it; `items` are those that need no reading."""
        said = [Node(p.id, p.content, items.get(p.id, ABSENT)) for p in trace.said]
        nodes = fold(said, trace.edits, trace.alias, trace.gone, trace.loose)
        missing = [n.id for n in nodes if n.item is ABSENT]
        stored = await self.store.nodes(scope, missing) if missing else {}
        nodes = tuple(stored.get(n.id, n) for n in nodes)
        if trace.made_in:
            nodes = await native(self.store, scope, trace, frame.format, nodes, items)
        return View(frame, nodes, self.digests(scope), tuple(trace.edits), trace.pins())

    def _call(
        self, live: Live, view: View, budget: Budget, frame: str, cached: int, shadow: Mapping[str, Any] | None
    ) -> Call:
        return Call(
            branch=live.trace.branch,
            seq=live.trace.seq,
            frame=frame,
            model=view.frame.model,
            format=view.frame.format,
            digest=view.digests.link(frame, (live.sent,)),
            said=len(live.trace.said),
            predicted=live.scale.expected(view),
            limit=budget.limit.tokens,
            exact=budget.meter.counter.exact,
            cached=cached,
            shadow=shadow,
        )

    # --- small services -------------------------------------------------------------------------------------------

    async def record(self, scope: Scope, branch: str, events: list[Event]) -> None:
        """Write events that a host makes between turns."""
        for left in range(TRIES - 1, -1, -1):
            live = self.memory.get(scope, branch)
            try:
                if live is None:
                    trace = await self.store.load(scope, branch)
                    await self.store.write(scope, Batch(branch, trace.seq, tuple(events)))
                    return
                async with live.lock:
                    await self.store.write(scope, Batch(branch, live.trace.seq, tuple(events)))
                    apply(live.trace, events)
                return
            except Conflict:
                if live is not None:
                    self.memory.forget(scope, live)
                if not left:
                    raise
                await wait(TRIES - left)

    def recogniser(self, scope: Scope, frame: Frame) -> Recogniser:
        """Who tells whose history it is, in one scope."""
        return Recogniser(self.store, scope, self.digests(scope), frame, self.guard(scope))

    def guard(self, scope: Scope) -> Guard:
        """The policy over one turn."""
        return Guard(self._secrets, self.store.secret, scope)

    def digests(self, scope: Scope) -> Digests:
        """The digests of one scope."""
        return Digests(self.store.secret, scope)


def _answered(trace: Trace, found: Recognition) -> Revert | None:
    """Mendings to take back: the result of a call that was given up has come after all."""
    late = [n.item.call_id for n in found.said() if n.item.kind == "result" and n.item.call_id in trace.mended]
    ids = tuple(id for call in late for id in trace.mended[call])
    return Revert(ids) if ids else None


def _is_same_frame(was: Frame | None, now: Frame) -> bool:
    """To the letter: to Python, 1 is 1.0 is True."""
    if was is None or was is now:
        return was is now
    return was == now and rawjson.dumps([was.lead, was.body]) == rawjson.dumps([now.lead, now.body])


def _is_same_agent(live: Live, frame: Frame) -> bool:
    known = live.known.frame
    return known is None or known is frame or same_agent(known, frame)


async def wait(tries: int) -> None:
    """A little longer each time, and not in step with whoever else is waiting."""
    await asyncio.sleep(random.random() * 0.005 * tries)  # noqa: S311
