"""Requests in, views to send out: each finds its branch, in memory or in the log, and takes a turn on it."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_
from typing import Any, TypeVar

from clew import events
from clew.core.caches import Recent
from clew.core.items import Digests, Frame, Item, Scope, new_id
from clew.core.threads import in_thread_if
from clew.core.view import View
from clew.engine.branch import Branch
from clew.engine.branches import Branches
from clew.engine.compaction import Compactor, Drafting, accepted
from clew.engine.cue import Cue
from clew.engine.model_limits import ModelLimits
from clew.engine.replay import replay
from clew.engine.reports import turn_events
from clew.engine.settings import Settings
from clew.engine.turn import Turn, fitted, recognised, sent, shown, written
from clew.errors import Conflict, NotFound, Purged
from clew.events import tell
from clew.recognition.agents import same_agent
from clew.recognition.last_body import Body, Known
from clew.recognition.reach import Before, ProvenPast
from clew.recognition.recognise import Recogniser
from clew.secrets.guard import Guard
from clew.steps.chapters.author import Author
from clew.store.protocol import Store
from clew.store.records import UNSENT, Batch, Began, Cause, Event, Method, NamedValue, Origin, Usage
from clew.store.trace import Trace, apply
from clew.tokens.target import Target

CompactionAct = Callable[[Branch, Target], Awaitable[View]]  # what makes a view shorter

T = TypeVar("T")

LATE = (Conflict, Purged)  # somebody wrote, or purged what was found, since it was looked for: look again
NEWEST_ONLY = "only the newest view of a branch can be compacted, and only by the engine that prepared it"
PASTS = 4_096  # branches of which it is remembered what came before them
TRIES = 20  # when another process extends the same branch at the same moment


@dataclass(frozen=True, slots=True)
class Request:
    """A request as the client made it.

    >>> body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}
    >>> clew.Request(body, session="greeting").session
    'greeting'
    """

    body: Mapping[str, Any] | bytes
    format: str | None = None  # told from the body if not given
    scope: Scope = "default"
    session: str | None = None  # the host's own name for the conversation, if it has one
    origin: Origin | None = None  # why it begins, should it begin with this request: a task, a sub-agent, a handoff
    method: Method | None = None  # who decides when to compact, if not as the engine has it
    cue: Cue | None = None  # from where on an agent that decides is asked to act, if not as usual
    check: Callable[[Frame, Sequence[Item]], None] | None = None  # sees what is new; what it raises ends the turn
    served: str = ""  # by whom, and how: what one upstream refuses says nothing of the same model at others
    own: Author | None = None  # the model that it is sent to, as one that writes chapters; None: it is not to be asked


class _Paused(Exception):
    """A turn that is to wait for a model."""

    def __init__(self, scope: Scope, branch: Branch) -> None:
        super().__init__(f"branch {branch.trace.branch} waits for a chapter")  # tracebacks are logged, words are not
        self.scope, self.branch = scope, branch


class Turns:
    """Takes turns on the branches of a log, those of late from memory."""

    def __init__(self, store: Store, compactor: Compactor, limits: ModelLimits, settings: Settings) -> None:
        self.store = store
        self.compactor = compactor
        self.limits = limits
        self.listeners: Sequence[events.Listener] = tuple(settings.listeners)
        self.branches = Branches(settings.memory)
        self._before: Recent[tuple[Scope, str], Before] = Recent(PASTS)
        self._secrets = Guard(settings.secrets, store.secret, "").policy

    async def take(self, request: Request, silent: bool = False) -> View:
        """The view to send instead of the request's own history. Raises `OverBudget` if frame and pins do not fit.

        If `silent`, what was said is written down, and nothing is sent.
        """
        body = Body(request.body, request.format)
        self.guard(request.scope).expect_names(scope=request.scope, session=request.session)
        return await self.patiently(lambda waited: self._take(request, body, silent, waited))

    async def patiently(self, take: Callable[[bool], Awaitable[T]]) -> T:
        """A turn; where it is to wait for a model, it does so while nobody waits for it, and is taken again."""
        try:
            return await take(False)
        except _Paused as paused:
            await self.compactor.drafted(paused.scope, paused.branch)
        return await take(True)

    async def _take(self, request: Request, body: Body, silent: bool, waited: bool) -> View:
        for left in range(TRIES - 1, -1, -1):
            branch = self.branches.best(request.scope, request.session, body)
            try:
                view = await self._warm(branch, request, body, silent, waited) if branch else None
                if view is None:
                    await in_thread_if(Known("").takes_long(body), lambda: body.split)
                    tried, branch = branch, self.branches.closest(request.scope, request.session, body)
                    again = branch is not None and branch is not tried
                    view = await self._warm(branch, request, body, silent, waited) if branch and again else None
                return view or await self._cold(request, body, silent, waited)
            except LATE:
                if branch is not None:  # what it remembers may have been purged
                    self.branches.forget(request.scope, branch)
                if not left:
                    raise
                await wait(TRIES - left)
        raise AssertionError("unreachable")

    async def _warm(self, branch: Branch, request: Request, body: Body, silent: bool, waited: bool) -> View | None:
        """A turn on a branch in memory: what is new costs, what is old does not. None: it is another conversation."""
        async with branch.lock:
            if branch.stale or (branch.keeps_all and branch.trace.edits):  # asked again, it may fit without the folds
                return None
            incoming = await in_thread_if(branch.body.takes_long(body), lambda: branch.body.read(body))
            if incoming is None or incoming.same < branch.body.solid:
                return None
            incoming.serve(request.served)
            if request.check:
                request.check(incoming.frame, incoming.flat())
            offset = branch.body.starts[incoming.same] + branch.body.shift
            if not _is_same_agent(branch, incoming.frame):
                return None
            looking = self.recogniser(request.scope, incoming.frame, request.origin)
            found = await looking.extend(branch.trace, incoming.flat(), offset)
            if found is None:
                return None
            asked = request.method, request.cue, request.own, silent, waited
            turn = Turn(request.scope, branch, incoming.frame, found, looking.guard, incoming, *asked)
            return await self.turn(turn)

    async def _cold(self, request: Request, body: Body, silent: bool, waited: bool) -> View:
        """A turn whose branch must be looked up in the log."""
        known = Known(body.format)
        incoming = await in_thread_if(known.takes_long(body), lambda: known.read(body))
        assert incoming is not None, "its own format"
        incoming.serve(request.served)
        if request.check:
            request.check(incoming.frame, incoming.flat())
        looking = self.recogniser(request.scope, incoming.frame, request.origin)
        found = await looking.find(incoming.flat(), request.session)
        proven = found.origin is not None and found.origin.cause == "compaction"
        found.origin = None if found.fork else found.origin if proven else request.origin or found.origin
        branch = Branch(found.trace, known, View(incoming.frame, (), self.digests(request.scope)))
        branch.beside = request.session if found.trace.session is None else None
        branch.keeps_all = found.keeps_all
        asked = request.method, request.cue, request.own, silent, waited
        return await self.turn(Turn(request.scope, branch, incoming.frame, found, looking.guard, incoming, *asked))

    async def turn(self, turn: Turn) -> View:
        """Let a branch be what was recognised, make its view fit, and write all of it down."""
        branch = turn.branch
        if not turn.silent:
            self.compactor.asking.give_way()
        self.compactor.ask(turn.scope, branch)  # should nobody have said that the last answer came
        branch.own = branch.own if turn.silent else turn.own
        before = branch.trace.copy() if self.compactor.author(branch) else branch.trace
        try:
            await recognised(turn, self.store, self.limits)
            await shown(turn, self.store)
            await fitted(turn, self.compactor)
            await written(turn, self.store)
            view = sent(turn, self.listeners)
        except Drafting:
            branch.trace = before  # nothing was written
            raise _Paused(turn.scope, branch) from None
        except BaseException as error:
            # What memory holds may be half done; the log is not. The next turn reads it.
            trace = branch.trace
            self.branches.forget(turn.scope, branch)
            if not isinstance(error, LATE):  # that one is tried again
                tell(self.listeners, [events.Failed(turn.scope, trace.branch, trace.seq, type(error).__name__)])
            raise
        self.branches.keep(turn.scope, branch)
        return view

    async def compact(self, view: View, act: CompactionAct, method: str, cause: Cause = "compaction") -> View:
        """The newest view of a branch, compacted now."""
        branch = self.branches.newest(view)
        if branch is None:
            raise NotFound(NEWEST_ONLY)
        async with branch.lock:
            if branch.stale or branch.view.seq != view.seq:  # somebody took a turn on it meanwhile
                raise NotFound(NEWEST_ONLY)
            scope, first, known = view.scope, branch.trace.seq, len(branch.trace.edits)
            target = await self.limits.target_as_called(scope, view.frame, branch.trace)
            branch.view = with_(branch.view, pinned=branch.trace.pins())  # somebody may have pinned since
            after = accepted(branch, await act(branch, target), branch.view)
            if len(after.edits) == known:
                return view
            began = Began(new_id(), cause, method)
            edits: list[Event] = [began, *after.edits[known:]]
            chain = after.digests.run("", (n.content for n in after.nodes))
            try:
                # With its head: a host that keeps what it gets here sends it back as if said.
                await self.store.write(scope, Batch(view.branch, first, tuple(edits), heads=(chain,)))
            except BaseException:
                self.branches.forget(scope, branch)
                raise
            apply(branch.trace, *edits)
            branch.sent.chain = chain
            branch.view = with_(after, edits=branch.view.edits.plus(branch.trace.edits[known:]))
            tell(self.listeners, turn_events(scope, branch.trace, first, edits, view, target.meter, None))
            return branch.as_sent(after)

    async def trace_of(self, scope: Scope, branch: str, until: int | None = None) -> Trace:
        """What was said on a branch and stands for what, from memory if it is there and nobody is at work on it.

        Only ids may be taken from it: words may have been purged since.
        """
        known = self.branches.get(scope, branch)
        if known is not None and not known.stale and not known.lock.held:
            trace = known.trace.copy()
            kinds = await self.store.catch_up(scope, trace)  # somebody else may have written or purged
            if "purge" not in kinds and until in (None, trace.seq - 1):
                return trace
        return await self.store.load(scope, branch, until)

    async def refold(self, scope: Scope, branch: Branch) -> None:
        """Make the view of a branch anew from its log; what it shows already needs no reading."""
        was = branch.view
        view = await replay(self.store, scope, branch.trace, was.frame, {n.id: n.item for n in was.nodes})
        branch.sent.chain = view.digests.run("", (n.content for n in view.nodes))
        branch.view = with_(view, scope=scope, branch=was.branch, seq=was.seq, behind=was.behind)

    async def record(
        self, scope: Scope, branch: str, happened: list[Event], learned: tuple[NamedValue, ...] = ()
    ) -> None:
        """Write events that a host makes between turns, and what they teach."""
        for left in range(TRIES - 1, -1, -1):
            known = self.branches.get(scope, branch)
            try:
                if known is None:
                    trace = await self.store.load(scope, branch)
                    await self.store.write(scope, Batch(branch, trace.seq, tuple(happened), learned=learned))
                    return
                async with known.lock:
                    batch = Batch(branch, known.trace.seq, tuple(happened), learned=learned)
                    await self.store.write(scope, batch)
                    apply(known.trace, *happened)
                return
            except Conflict:
                if known is not None:
                    self.branches.forget(scope, known)
                if not left:
                    raise
                await wait(TRIES - left)

    async def report(self, view: View, usage: Usage, learned: tuple[NamedValue, ...]) -> None:
        """Write what was reported for a call, and what that taught, in one transaction."""
        if branch := self.branches.get(view.scope, view.branch):
            if UNSENT in usage.usage:
                branch.ledger.wanted = None  # who cancelled wants nothing now, and who is refused is not asked again
            self.compactor.ask(view.scope, branch)
        try:
            await self.record(view.scope, view.branch, [usage], learned)
        except Purged:  # while the model answered: there is no call left to say it of
            for kind, name, value in learned:
                await self.store.learn(view.scope, kind, name, value)

    async def unanswered(self, view: View) -> None:
        """Write that a call had no answer: it counts as none."""
        calls = await self.store.calls(view.scope, view.branch)
        if sent := next((call for call in reversed(calls) if call.seq == view.seq and call.usage is None), None):
            await self.report(view, Usage(view.seq, {UNSENT: sent.predicted}), ())

    def recogniser(self, scope: Scope, frame: Frame, origin: Origin | None = None) -> Recogniser:
        """Who tells whose history it is, in one scope; with what its host says of where it comes from."""
        return Recogniser(self.store, scope, self.digests(scope), frame, self.guard(scope), self.reach(scope, origin))

    def reach(self, scope: Scope, origin: Origin | None = None) -> ProvenPast:
        """Who tells what a conversation may look back into."""
        parent = None if origin is None else "" if origin.cause == "beside" else origin.parent
        return ProvenPast(self.store, scope, self.digests(scope), self._before, parent)

    def guard(self, scope: Scope) -> Guard:
        """The policy over one turn."""
        return Guard(self._secrets, self.store.secret, scope)

    def digests(self, scope: Scope) -> Digests:
        """The digests of one scope."""
        return Digests(self.store.secret, scope)


def _is_same_agent(branch: Branch, frame: Frame) -> bool:
    known = branch.body.frame
    return known is None or known is frame or same_agent(known, frame)


async def wait(tries: int) -> None:
    """A little longer each time, and not in step with whoever else is waiting."""
    await asyncio.sleep(random.random() * 0.005 * tries)  # noqa: S311
