"""Whose history is this? An incoming request finds its branch: it extends one, edits one, forks one, or begins one."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

from clew.clients.voices import is_passing
from clew.core.items import Digests, Frame, Item, Scope, new_id
from clew.core.threads import LONG, are_large, in_thread_if
from clew.recognition.agents import same_agent, same_instructions
from clew.recognition.client_edits import ENOUGH, evidence
from clew.recognition.continuation import SHARED_NAMES, Continuation, Recognition, Sent
from clew.recognition.reach import ProvenPast
from clew.recognition.reading import Entry, chained, unfold
from clew.recognition.side_requests import Aside, aside, summary_at
from clew.secrets.guard import Guard
from clew.store.protocol import Store
from clew.store.records import ClientEdit, Event, Fork, Origin, Said
from clew.store.trace import Trace
from clew.wire import AMBIGUOUS

CANDIDATES = 4  # branches compared before a new one begins
HANDOFF = "Handoff("  # with which the name of that step begins
SAMPLE = 2_000  # items looked up to find a branch by what was said in it


def _may_continue(beside: Aside | None, trace: Trace) -> bool:
    """Whether it may go on there: what sums a conversation up must see it as its client does, not as we folded it."""
    return beside is None or (beside == "agent" and not trace.edits)


def _replaces(trace: Trace, sent: Sent, offset: int = 0) -> bool:
    """Whether a client has put a summary in the place of what was said on this branch."""
    is_answered = offset > (trace.calls[0][1] if trace.calls else 0)
    at = summary_at(sent.items, offset, is_answered)
    return at is not None and all(place.content != sent.contents[at] for place in trace.said)


@dataclass(frozen=True, slots=True)
class Recogniser:
    """Looks in one scope's log.

    Equal words may tell which branch a history is: then nothing is seen of it that the history does not show. What came
    before that branch is seen only where the history shows the proof, or the host names the parent.
    """

    store: Store
    scope: Scope
    digests: Digests
    frame: Frame  # of the request
    guard: Guard
    reach: ProvenPast

    @property
    def _history(self) -> Continuation:
        return Continuation(self.store, self.scope, self.digests, self.frame.format)

    async def extend(self, trace: Trace, items: Sequence[Item], offset: int) -> Recognition | None:
        """This branch with `items` after its first `offset` ones, or None if that is another conversation."""
        if aside(self.frame, items) == "request":
            return None
        contents, items = sent = await self._sent(items)
        if _replaces(trace, sent, offset):
            return None
        entries = unfold(trace, contents, items, offset)
        found = await self._history.on(trace, entries, offset)
        if found is None or not await self._may_read(trace):
            return None
        if not await self.reach.may_continue(trace, found, trace.session is not None, known=True):
            return None
        if await self._may_be_anothers(found):
            return None
        found.contents = contents
        found.unfolded |= len(entries) < len(contents)  # some of it quoted what we had put there
        return found

    async def find(self, items: Sequence[Item], session: str | None) -> Recognition:
        """The branch this history belongs to; a new one if it is like none."""
        beside = aside(self.frame, items)
        sent = await self._sent(items)
        if session is None:
            found = await self._unnamed(sent, beside)
        else:
            found = await self._named(sent, beside, session)
        found.contents = sent.contents
        found.keeps_all = beside is not None
        return found

    async def whose(self, items: Sequence[Item], session: str | None) -> str | None:
        """The branch that has this history, whichever agent asks about it; None if there is none."""
        sent = await self._sent(items)
        if session is not None:  # only the one of that name: a frame is lent to it, too
            own = await self.store.session(self.scope, session)
            trace = await self.store.load(self.scope, own) if own else None
            return own if trace and (await self._relate(trace, sent, named=True))[0] else None
        changed, is_earlier = list[Recognition](), False  # of one that went on: what it said then is not summed up
        async for trace in self._candidates(sent):
            found, past = await self._relate(trace, sent)
            if not await self._may_read(trace):
                continue
            if found is None:
                is_earlier |= _is_all_before(sent, past)
                continue
            if not found.lossy:
                return trace.branch
            changed.append(found)
        only = _only(changed)
        return only.trace.branch if only and not is_earlier else None

    async def _sent(self, items: Sequence[Item]) -> Sent:
        def read() -> Sent:
            return Sent([self.digests.content(i) for i in items], self.guard.admit(items))

        return await in_thread_if(are_large(items), read)

    async def _named(self, sent: Sent, beside: Aside | None, session: str) -> Recognition:
        """The newest branch of a session; others that speak under its name are beside it."""
        own = await self.store.session(self.scope, session)
        if own is None and not beside:
            return await self._begin(sent, session)
        if own is None:
            return await self._unnamed(sent, beside)
        trace = await self.store.load(self.scope, own)
        if beside:
            return await self._unnamed(sent, beside, trace)
        if not await self._is_same_agent(trace):
            # A title may be asked for before anything else: the name is that of the agent which works.
            if self.frame.tools and not (await self.store.frame(self.scope, trace.frame)).tools:
                return await self._begin(sent, session, known=True)
            return await self._unnamed(sent, beside, trace)
        found, past = await self._relate(trace, sent, named=True)
        if found is None and (found := await self._fork(trace, past, sent, session)):
            # What began with the same words, and got no more than a greeting in common, may be one of its own.
            found.shares_name = evidence(sent.items[:past]) < ENOUGH
        if found is None:  # the name alone says nothing of what came before
            found = await self._begin(sent, session, known=True)
            found.lost = found.shares_name = found.origin is None
        found.refold = True
        return found

    async def _unnamed(self, sent: Sent, beside: Aside | None, own: Trace | None = None) -> Recognition:
        """The branch that has this history, by what was said in it; `own` is the session that it speaks beside."""
        behind: tuple[Trace, int] | None = None
        changed = list[Recognition]()
        origin = Origin("beside", own.branch) if own else None
        if own and beside and _is_unchanged((await self._relate(own, sent, named=True))[0]):
            origin = Origin("subagent", own.branch)
        async for trace in self._candidates(sent):
            found, past = await self._relate(trace, sent)
            may_join = await self._may_join(trace, own)
            if found and may_join and _may_continue(beside, trace):
                found.refold = True
                if not found.lossy:
                    return found
                changed.append(found)
            if origin is None and beside and _is_unchanged(found):
                origin = Origin("subagent", trace.branch)
            if may_join and (behind is None or past > behind[1]):
                behind = trace, past
        is_earlier = behind is not None and _is_all_before(sent, behind[1])
        if (only := _only(changed)) and not is_earlier:
            return only
        found = await self._fork(*behind, sent, None) if behind and not beside else None
        if found is None:
            found = await self._begin(sent, None)
            found.origin = origin or found.origin
        return found

    async def _relate(self, trace: Trace, sent: Sent, named: bool = False) -> tuple[Recognition | None, int]:
        """As a continuation says, but with a summary in the place of its past it is a conversation of its own."""
        if _replaces(trace, sent):
            return None, 0
        found, past = await self._history.relate(trace, sent)
        if found and not await self.reach.may_continue(trace, found, named):
            return None, past
        return (None if found and await self._may_be_anothers(found) else found), past

    async def _may_be_anothers(self, found: Recognition) -> bool:
        """Whether something was taken from a history under a name that several have: it may never have been in this."""
        name = found.trace.session
        return found.lossy and name is not None and name in await self.store.learned(self.scope, SHARED_NAMES)

    async def _candidates(self, sent: Sent) -> AsyncIterator[Trace]:
        """Branches that have seen the beginning of this history, the longest first; then those with most of it."""
        contents = sent.contents
        chains = await in_thread_if(len(contents) > LONG, lambda: self.digests.chains(contents))
        known = [f.branch for f in await self.store.find(self.scope, chains)]
        names = list(dict.fromkeys(known))[:CANDIDATES]
        for name in names:
            yield await self.store.load(self.scope, name)
        # Reminders are the same in all conversations of a client in one folder.
        newest = zip(contents[-SAMPLE:], sent.items[-SAMPLE:], strict=True)
        telling = [content for content, item in newest if not (item.kind == "text" and is_passing(item.text))]
        # Several: who extracts memories from a conversation says all of it, too.
        for name in await self.store.alike(self.scope, telling):
            if name not in names:
                yield await self.store.load(self.scope, name)

    async def _may_join(self, trace: Trace, own: Trace | None) -> bool:
        """Whether it is the same agent's, and speaks beside the same session, or beside none."""
        if not await self._is_same_agent(trace) or not await self._may_read(trace):
            return False
        *_, first = [None, *await self.store.sessions(self.scope, trace.branch)]
        beside = first.parent if first and first.cause == "beside" else None
        if own is None or beside is None:
            return own is None and beside is None
        return beside in {session.id for session in await self.store.sessions(self.scope, own.branch)}

    async def _is_same_agent(self, trace: Trace) -> bool:
        return not trace.frame or same_agent(await self.store.frame(self.scope, trace.frame), self.frame)

    async def _may_read(self, trace: Trace) -> bool:
        """Whether it may read what a model handed over on a branch: that may have words of the system prompt."""
        if trace.session is not None or not any(edit.by.startswith(HANDOFF) for edit in trace.edits):
            return True
        return not trace.frame or same_instructions(await self.store.frame(self.scope, trace.frame), self.frame)

    async def _fork(self, trace: Trace, past: int, sent: Sent, session: str | None) -> Recognition | None:
        """A new branch of the newest call that is wholly in this history's past, if there is one."""
        await self.reach.of(trace)  # of all of it: what ties it to its past may stand behind a call
        for seq, said in reversed([c for c in trace.calls if c[1] <= past]):
            then = await self.store.load(self.scope, trace.branch, seq)
            found = await self._history.after(then, sent, said)
            if found is None or not await self.reach.may_continue(then, found, named=False):
                continue
            then.branch, then.session = new_id(), session
            found.opened, found.fork = True, Fork(trace.branch, seq)
            return found
        return None

    async def _begin(self, sent: Sent, session: str | None, known: bool = False) -> Recognition:
        """A new branch of nothing, under a new name or one that is `known`, and after what its summary proves."""
        named = session is not None and not known
        branch = await first_branch(self.store, self.scope, self.digests, str(session)) if named else new_id()
        nodes = chained(self.digests, begin(self.digests, self.frame.format), [Entry(c, i) for c, i in sent.pairs()])
        events: list[Event] = [Said(tuple(nodes))] if nodes else []
        past, _ = await self.reach.summed_up(sent.items, known)
        found = Recognition(Trace(branch, session=session), events=events, opened=True, refold=True)
        found.origin = Origin("compaction", *past) if past else None
        found.lost = past is None and summary_at(sent.items) is not None
        return found


def _is_all_before(sent: Sent, past: int) -> bool:
    """Whether all that was answered in a history stands at the beginning of a branch: somebody went back there."""
    answers = [n for n, item in enumerate(sent.items) if item.role != "user"]
    return bool(answers) and past > answers[-1]


def _is_unchanged(found: Recognition | None) -> bool:
    """Whether a history has all of a branch, unchanged."""
    return found is not None and not any(isinstance(event, ClientEdit) for event in found.events)


def _only(changed: Sequence[Recognition]) -> Recognition | None:
    """The one conversation from which a client took something away; none where it may have been another."""
    if not changed:
        return None
    taken = [frozenset(_taken(found)) for found in changed]
    most = max(range(len(changed)), key=lambda n: len(taken[n]))  # others are what it was some time ago
    return changed[most] if all(ids <= taken[most] for ids in taken) else None


def _taken(found: Recognition) -> Iterator[str]:
    """What is no longer there of a branch, or is there in other words, as it was first said."""
    for event in found.events:
        if isinstance(event, ClientEdit):
            yield from (found.trace.alias.get(p.id, p.id) for p in found.trace.said[event.start : event.stop])


def named_branch(digests: Digests, session: str) -> str:
    """The branch with which a named session begins the first time."""
    return digests.link(session, ("session",))[:16]


async def first_branch(store: Store, scope: Scope, digests: Digests, session: str) -> str:
    """The branch with which a named session begins now: two hosts that open it at the same moment open the same one."""
    branch = named_branch(digests, session)
    # One that was purged does not come back: another process may remember it, and would go on there.
    while await store.purged(scope, branch):
        branch = named_branch(digests, branch)
    return branch


def begin(digests: Digests, format: str) -> str:
    """What the first node of a history is chained to."""
    # The same words in another format are other nodes: their messages are written otherwise.
    return "" if format == AMBIGUOUS else digests.link(format, ("begin",))
