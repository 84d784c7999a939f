"""Adding to a conversation that hosts know by name: several of them may, at once, and nobody's words are lost."""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as with_
from typing import Any, Protocol, TypeVar

from clew.core.items import Digests, Frame, Scope
from clew.core.threads import are_large, in_thread_if
from clew.core.view import View
from clew.engine.branch import Branch
from clew.engine.cue import Cue
from clew.engine.turn import Turn
from clew.engine.turns import LATE, TRIES, Turns, wait
from clew.errors import BadRequest, NotFound
from clew.recognition.continuation import Recognition
from clew.recognition.last_body import Body, Incoming, Known
from clew.recognition.reading import Entry, chained
from clew.recognition.recognise import begin, first_branch, named_branch
from clew.secrets.guard import Guard
from clew.steps.chapters.author import Author
from clew.store.records import Batch, Event, Method, Origin, Said
from clew.store.trace import Trace, apply

LENGTHEN = frozenset(
    {"said", "call", "usage", "chapter"}
)  # kinds of events that leave the view as it was, or lengthen it
FOLD = frozenset({"session", "edit", "revert", "pin", "unpin"})  # and those after which it is made anew


@dataclass(frozen=True, slots=True)
class Addition:
    """What is new in a conversation, as the client made it; what came before is in the log."""

    body: Mapping[str, Any] | bytes  # a request whose messages are the new ones
    session: str  # the host's name for the conversation
    format: str | None = None
    scope: Scope = "default"
    origin: Origin | None = None  # why it begins, should it begin with this
    method: Method | None = None  # who decides when to compact, if not as the engine has it
    cue: Cue | None = None  # from where on an agent that decides is asked to act, if not as usual
    own: Author | None = None  # the model that it is sent to, as one that writes chapters; None: it is not to be asked


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class AdditionAct(Protocol[T_co]):
    """What is done with an addition, once its conversation is found."""

    async def __call__(
        self, request: Addition, branch: Branch, fresh: bool, incoming: Incoming, waited: bool
    ) -> T_co: ...


class Appender:
    """Takes turns of hosts that send only what is new."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._store = turns.store

    async def append(self, request: Addition) -> None:
        """Write down what was said, and no more: nothing is sent now."""
        await self._take(request, self._say)

    async def take(self, request: Addition) -> View:
        """The view to send: all that was said in the conversation, with this at its end."""
        return await self._take(request, self._add)

    async def open(self, request: Addition) -> View:
        """The conversation as it stands; it is in memory then, and may be compacted."""
        return await self._take(request, self._look)

    async def _take(self, request: Addition, act: AdditionAct[T]) -> T:
        body = Body(request.body, request.format)
        incoming = await in_thread_if(Known("").takes_long(body), lambda: Known(body.format).read(body))
        assert incoming is not None, "its own format"
        self._turns.guard(request.scope).expect_names(scope=request.scope, session=request.session)
        name = named_branch(self._turns.digests(request.scope), request.session)

        async def taken(waited: bool) -> T:
            return await self._alone(request, act, name, incoming, waited)

        return await self._turns.patiently(taken)

    async def _alone(self, request: Addition, act: AdditionAct[T], name: str, incoming: Incoming, waited: bool) -> T:
        # Several may add to it at once. They take turns: else most of what each of them does is in vain.
        async with self._store.alone(request.scope, name):
            for left in range(TRIES - 1, -1, -1):
                try:
                    known = await self._known(request)
                    branch = known or await self._loaded(request, incoming.frame)
                    _expect_format(request, branch.trace, incoming.frame.format)
                    async with branch.lock:
                        if not branch.stale:
                            return await act(request, branch, known is None, incoming, waited)
                except LATE:
                    if not left:
                        raise
                    await wait(TRIES - left)
        raise AssertionError("unreachable")

    async def _add(self, request: Addition, branch: Branch, fresh: bool, incoming: Incoming, waited: bool) -> View:
        trace, frame = branch.trace, incoming.frame
        looking = self._turns.recogniser(request.scope, frame)
        found = Recognition(trace, opened=fresh and not trace.seq, refold=fresh, origin=request.origin)
        found.events = await _new_events(trace, looking.digests, looking.guard, incoming)
        turn = Turn(
            *(request.scope, branch, frame, found, looking.guard, None),
            *(request.method, request.cue, request.own),
            waited=waited,
        )
        return await self._turns.turn(turn)

    async def _look(self, request: Addition, branch: Branch, fresh: bool, incoming: Incoming, waited: bool) -> View:
        scope, trace = request.scope, branch.trace
        branch.own = request.own or branch.own
        if not trace.seq:
            raise NotFound(f"conversation {request.session} is empty: send a user message first")
        if fresh:
            limits, frame = self._turns.limits, incoming.frame
            await limits.weigh(scope, branch.ledger.size, await limits.target(scope, frame), frame)
            await self._turns.refold(scope, branch)
            branch.view = with_(branch.view, scope=scope, branch=trace.branch, seq=trace.seq - 1)
            self._turns.branches.keep(scope, branch)
        return branch.view

    async def _say(self, request: Addition, branch: Branch, fresh: bool, incoming: Incoming, waited: bool) -> None:
        looking = self._turns.recogniser(request.scope, incoming.frame)
        events = await _new_events(branch.trace, looking.digests, looking.guard, incoming)
        opened = fresh and not branch.trace.seq
        named = branch.trace.session if opened else None
        at = branch.trace.branch, branch.trace.seq
        batch = Batch(*at, tuple(events), opened, session=named, origin=request.origin)
        try:
            await self._store.write(request.scope, batch)
        except BaseException:
            self._turns.branches.forget(request.scope, branch)
            raise
        apply(branch.trace, *events)
        branch.lengthen([node for event in events if isinstance(event, Said) for node in event.nodes])
        if not fresh:
            self._turns.branches.keep(request.scope, branch)

    async def _loaded(self, request: Addition, frame: Frame) -> Branch:
        digests = self._turns.digests(request.scope)
        name = await self._store.session(request.scope, request.session)
        if name:
            trace = await self._store.load(request.scope, name)
        else:
            first = await first_branch(self._store, request.scope, digests, request.session)
            trace = Trace(first, session=request.session)
        return Branch(trace, Known(frame.format), View(frame, (), digests))

    async def _known(self, request: Addition) -> Branch | None:
        """The conversation as it is in memory, with what others wrote since; None where it must be read."""
        scope, branch = request.scope, self._turns.branches.named(request.scope, request.session)
        if branch is None:
            return None
        try:
            async with branch.lock:
                return branch if await self._caught_up(request, branch) else None
        except BaseException:  # it may have half of what others wrote
            self._turns.branches.forget(scope, branch)
            raise

    async def _caught_up(self, request: Addition, branch: Branch) -> bool:
        """Let a branch have what others wrote; False, and it is forgotten, where it must be read anew."""
        scope, said = request.scope, len(branch.trace.said)
        try:
            kinds = await self._store.catch_up(scope, branch.trace)
        except NotFound:  # purged
            kinds = {"purge"}
        newest = await self._store.session(scope, request.session)  # somebody may have begun anew under its name
        if branch.stale or kinds - LENGTHEN - FOLD or newest != branch.trace.branch:
            self._turns.branches.forget(scope, branch)
            return False
        if kinds - LENGTHEN:
            await self._turns.refold(scope, branch)
        elif kinds:
            new = branch.trace.said[said:]
            nodes = await self._store.nodes(scope, [p.id for p in new])
            branch.lengthen([nodes[p.id] for p in new])
            self._turns.branches.keep(scope, branch)
        return True


def _expect_format(request: Addition, trace: Trace, format: str) -> None:
    if trace.format not in ("", format):
        raise BadRequest(
            f"conversation {request.session} is in the format {trace.format}; send additions in that format"
        )


async def _new_events(trace: Trace, digests: Digests, guard: Guard, incoming: Incoming) -> list[Event]:
    """What is new, after all that is there."""
    items = incoming.flat()

    def read() -> list[Entry]:
        return [Entry(digests.content(i), kept) for i, kept in zip(items, guard.admit(items), strict=True)]

    entries = await in_thread_if(are_large(items), read)
    taken = {p.id for p in trace.said} if trace.patched else None
    last = trace.said[-1].id if trace.said else begin(digests, incoming.frame.format)
    nodes = chained(digests, last, entries, taken)
    return [Said(tuple(nodes))] if nodes else []
