"""Whose history is this? An incoming request finds its branch: it extends one, edits one, forks one, or begins one."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from clew.core.items import Digests, Frame, Item, Scope, new_id
from clew.core.threads import LONG, are_large, in_thread_if
from clew.recognition.agents import same_agent
from clew.recognition.continuation import Continuation, Recognition, Sent
from clew.recognition.reading import Entry, chained, unfold
from clew.recognition.sameness import ENOUGH, evidence
from clew.recognition.side_requests import FIRST, Aside, aside, is_continued, summary_at
from clew.secrets.guard import Guard
from clew.store.protocol import Store
from clew.store.records import Event, Fork, Origin, Said
from clew.store.trace import Trace
from clew.text.decorations import is_passing
from clew.wire import AMBIGUOUS

CANDIDATES = 4  # branches compared before a new one begins
SAMPLE = 2_000  # items looked up to find a branch by what was said in it


def _may_continue(beside: Aside | None, trace: Trace) -> bool:
    """Whether it may go on there: what sums a conversation up must see it as its client does, not as we folded it."""
    return beside is None or (beside == "agent" and not trace.edits)


def _replaces(trace: Trace, sent: Sent, offset: int = 0) -> bool:
    """Whether a client has put a summary in the place of what was said on this branch."""
    at = summary_at(sent.items[: max(0, FIRST - offset)])
    return at is not None and all(place.content != sent.contents[at] for place in trace.said)


@dataclass(frozen=True, slots=True)
class Recogniser:
    """Looks in one scope's log."""

    store: Store
    scope: Scope
    digests: Digests
    frame: Frame  # of the request
    guard: Guard

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
        if found:
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
        found.whole = beside is not None
        return found

    async def whose(self, items: Sequence[Item], session: str | None) -> str | None:
        """The branch that has this history, whichever agent asks about it; None if too little was said in both."""
        if session is not None and (own := await self.store.session(self.scope, session)):
            return own
        sent = await self._sent(items)
        async for trace in self._candidates(sent):
            if await self._has_words_of(trace, sent):
                return trace.branch
        return None

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
            return await self._unnamed(sent, beside, own)
        if not await self._is_same_agent(trace):
            # A title may be asked for before anything else: the name is that of the agent which works.
            if self.frame.tools and not (await self.store.frame(self.scope, trace.frame)).tools:
                return await self._begin(sent, session, of_name=False)
            return await self._unnamed(sent, beside, own)
        found, past = await self._relate(trace, sent)
        if found is None:
            found = await self._fork(trace, past, sent, session)
        if found is None:  # a client that begins anew under the same name has replaced its past
            found = await self._begin(sent, session, of_name=False)
            found.origin = Origin("compaction", own)
        found.refold = True
        return found

    async def _unnamed(self, sent: Sent, beside: Aside | None, own: str | None = None) -> Recognition:
        """The branch that has this history, by what was said in it; `own` is the session that it speaks beside."""
        behind: tuple[Trace, int] | None = None
        origin = Origin("subagent", own) if own else None
        async for trace in self._candidates(sent):
            found, past = await self._relate(trace, sent)
            if found and _may_continue(beside, trace) and await self._may_join(trace, own):
                found.refold = True
                return found
            if origin is None and (beside or is_continued(sent.items)) and await self._has_words_of(trace, sent):
                origin = Origin("subagent" if beside else "compaction", trace.branch)
            behind = behind or (trace, past)
        found = await self._fork(*behind, sent, None) if behind and not beside else None
        if found is None:
            found = await self._begin(sent, None)
            found.origin = origin
        return found

    async def _relate(self, trace: Trace, sent: Sent) -> tuple[Recognition | None, int]:
        """As a continuation says, but with a summary in the place of its past it is a conversation of its own."""
        return (None, 0) if _replaces(trace, sent) else await self._history.relate(trace, sent)

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

    async def _may_join(self, trace: Trace, own: str | None) -> bool:
        """Whether it is the same agent's, and comes after the same session: by that it may recall more than its own."""
        if not await self._is_same_agent(trace):
            return False
        before = [id for id, _ in await self.store.ancestry(self.scope, trace.branch)]
        if own is not None or not before:
            return own is None or own in before
        first = (await self.store.sessions(self.scope, trace.branch))[-1]
        return first.cause != "subagent"

    async def _is_same_agent(self, trace: Trace) -> bool:
        return not trace.frame or same_agent(await self.store.frame(self.scope, trace.frame), self.frame)

    async def _has_words_of(self, trace: Trace, sent: Sent) -> bool:
        """Whether enough was said in both to know that one comes from the other."""
        return evidence(await self._history.common(trace, sent)) >= ENOUGH

    async def _fork(self, trace: Trace, past: int, sent: Sent, session: str | None) -> Recognition | None:
        """A new branch of the newest call that is wholly in this history's past, if there is one."""
        for seq, said in reversed([c for c in trace.calls if c[1] <= past]):
            then = await self.store.load(self.scope, trace.branch, seq)
            found = await self._history.after(then, sent, said)
            if found is None:
                continue
            then.branch, then.session = new_id(), session
            found.opened, found.fork = True, Fork(trace.branch, seq)
            return found
        return None

    async def _begin(self, sent: Sent, session: str | None, of_name: bool = True) -> Recognition:
        """A new branch of nothing."""
        named = session is not None and of_name
        branch = await first_branch(self.store, self.scope, self.digests, str(session)) if named else new_id()
        nodes = chained(self.digests, begin(self.digests, self.frame.format), [Entry(c, i) for c, i in sent.pairs()])
        events: list[Event] = [Said(tuple(nodes))] if nodes else []
        return Recognition(Trace(branch, session=session), events=events, opened=True, refold=True)


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
