"""Whose history is this? An incoming request finds its branch: it extends one, edits one, forks one, or begins one."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import uuid4

from clew.core.align import Match, Patch
from clew.core.items import Digests, Frame, Item, Node, Scope
from clew.recognition.other_format import rewriting
from clew.recognition.reading import Entry, Reading, chained, compare, rewritten, unfold
from clew.recognition.sameness import (
    ENOUGH,
    Change,
    alike,
    contradicts,
    evidence,
    is_edit,
    is_stand_in,
    same_agent,
)
from clew.recognition.side_requests import Aside, aside, is_continued
from clew.secrets.guard import Guard
from clew.store.protocol import Store
from clew.store.records import ClientEdit, Event, Fork, Origin, Said, Switch
from clew.store.trace import Trace
from clew.wire import AMBIGUOUS
from clew.wire.convert import convert_item

LOOK = 400  # bodies looked at to tell an edit from another conversation
BEFORE = 40  # items before the first change that are weighed
CANDIDATES = 4  # branches compared before a new one begins
SAMPLE = 2_000  # items looked up to find a branch by what was said in it


@dataclass(slots=True)
class Recognition:
    """A branch as it was, and the events that bring it to where the request is."""

    trace: Trace
    contents: Sequence[str] = ()  # digests of the items that were read
    events: list[Event] = field(default_factory=list)
    opened: bool = False
    fork: Fork | None = None
    origin: Origin | None = None
    fresh: dict[str, Item] = field(default_factory=dict)  # known nodes as the client sent them this time
    unfolded: bool = False  # the client sent stand-ins of ours
    refold: bool = False  # the view must be made anew, not only lengthened
    whole: bool = False  # it is sent as it came if it fits

    def said(self) -> list[Node]:
        """What is new at the end."""
        return [node for event in self.events if isinstance(event, Said) for node in event.nodes]

    def sent(self) -> dict[str, Item]:
        """Every node the client just sent, with the item it sent."""
        nodes = [n for event in self.events if isinstance(event, Said | ClientEdit) for n in event.nodes]
        return {n.id: n.item for n in nodes} | self.fresh


def _may_continue(beside: Aside | None, trace: Trace) -> bool:
    """Whether it may go on there: what sums a conversation up must see it as its client does, not as we folded it."""
    return beside is None or (beside == "agent" and not trace.edits)


@dataclass(frozen=True, slots=True)
class Recogniser:
    """Looks in one scope's log."""

    store: Store
    scope: Scope
    digests: Digests
    frame: Frame  # of the request
    guard: Guard

    @property
    def format(self) -> str:
        return self.frame.format

    async def extend(self, trace: Trace, items: Sequence[Item], offset: int) -> Recognition | None:
        """This branch with `items` after its first `offset` ones, or None if that is another conversation."""
        if aside(self.frame, items) == "request":
            return None
        contents = [self.digests.content(i) for i in items]
        items = self.guard.admit(items)
        entries = unfold(trace, contents, items, offset)
        found = await self._on(trace, entries, offset)
        if found:
            found.contents = contents
            found.unfolded |= len(entries) < len(contents)  # some of it quoted what we had put there
        return found

    async def find(self, items: Sequence[Item], session: str | None) -> Recognition:
        """The branch this history belongs to; a new one if it is like none."""
        beside = aside(self.frame, items)
        sent = _Sent([self.digests.content(i) for i in items], self.guard.admit(items))
        if session is None:
            found = await self._unnamed(sent, beside)
        else:
            found = await self._named(sent, beside, session)
        found.contents = sent.contents
        found.whole = beside is not None
        return found

    async def _named(self, sent: "_Sent", beside: Aside | None, session: str) -> Recognition:
        """The newest branch of a session; others that speak under its name are beside it."""
        own = await self.store.session(self.scope, session)
        if own is None and not beside:
            return self._begin(sent, session)
        if own is None:
            return await self._unnamed(sent, beside)
        trace = await self.store.load(self.scope, own)
        if beside:
            return await self._unnamed(sent, beside, own)
        if not await self._is_same_agent(trace):
            # A title may be asked for before anything else: the name is that of the agent which works.
            if self.frame.tools and not (await self.store.frame(self.scope, trace.frame)).tools:
                return self._begin(sent, session, of_name=False)
            return await self._unnamed(sent, beside, own)
        found, past = await self._relate(trace, sent)
        if found is None:
            found = await self._fork(trace, past, sent, session)
        if found is None:  # a client that begins anew under the same name has replaced its past
            found = self._begin(sent, session, of_name=False)
            found.origin = Origin("compaction", own)
        found.refold = True
        return found

    async def _unnamed(self, sent: "_Sent", beside: Aside | None, own: str | None = None) -> Recognition:
        """The branch that has this history, by what was said in it; `own` is the session that it speaks beside."""
        behind: tuple[Trace, int] | None = None
        origin = Origin("subagent", own) if own else None
        async for trace in self._candidates(sent.contents):
            found, past = await self._relate(trace, sent)
            if found and _may_continue(beside, trace) and await self._may_join(trace, own):
                found.refold = True
                return found
            if origin is None and (beside or is_continued(sent.items)) and await self._has_words_of(trace, sent):
                origin = Origin("subagent" if beside else "compaction", trace.branch)
            behind = behind or (trace, past)
        found = await self._fork(*behind, sent, None) if behind and not beside else None
        if found is None:
            found = self._begin(sent, None)
            found.origin = origin
        return found

    async def _candidates(self, contents: Sequence[str]) -> AsyncIterator[Trace]:
        """Branches that have seen the beginning of this history, the longest first; then the one with most of it."""
        chains, chain = [], ""
        for content in contents:
            chain = self.digests.link(content, (chain,))
            chains.append(chain)
        known = [f.branch for f in await self.store.find(self.scope, chains)]
        names = list(dict.fromkeys(known))[:CANDIDATES]
        for name in names:
            yield await self.store.load(self.scope, name)
        if (most := await self.store.alike(self.scope, contents[-SAMPLE:])) and most not in names:
            yield await self.store.load(self.scope, most)

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

    async def _has_words_of(self, trace: Trace, sent: "_Sent") -> bool:
        """Whether enough was said in both to know that one comes from the other."""
        reading = compare(trace.said, [Entry(c, i) for c, i in sent.pairs()])
        both = [m.new for m in reading.found] or range(reading.prefix)
        return evidence(sent.items[j] for j in both) >= ENOUGH

    async def _relate(self, trace: Trace, sent: "_Sent") -> tuple[Recognition | None, int]:
        """The branch with this history on it, or None and how much of the branch is in the history's past."""
        entries = unfold(trace, *sent)
        if await self._is_written_anew(trace, entries):
            found, past = await self._switched(trace, entries)
        else:
            found = await self._on(trace, entries, 0)
            past = 0 if found else compare(trace.said, entries).prefix
        if found:
            found.unfolded |= len(entries) < len(sent.contents)  # some of it quoted what we had put there
        return found, past

    async def _is_written_anew(self, trace: Trace, entries: Sequence[Entry]) -> bool:
        if trace.format in ("", self.format):
            return False
        if trace.format != AMBIGUOUS or not compare(trace.said, entries).is_extension():
            return True
        # Plain text fits several formats: what is new may show that it was another one all along.
        nodes = await self.store.nodes(self.scope, [p.id for p in trace.said])
        plain = self.format == "anthropic" and all(n.item.kind == "text" for n in nodes.values())
        return not plain

    async def _switched(self, trace: Trace, entries: Sequence[Entry]) -> tuple[Recognition | None, int]:
        """The branch with its whole history in another format."""
        nodes = await self.store.nodes(self.scope, [p.id for p in trace.said])
        old = [nodes[p.id].item for p in trace.said]
        sent = self._native(trace, entries, nodes)
        new = [item for _, item in sent]
        reading = rewriting(old, new)
        if not reading.same:
            return None, reading.past
        # The same words in the same place, yet another node: its message is written otherwise.
        start = self.digests.link(self.format, (trace.branch, str(trace.seq)))
        rewritten = chained(self.digests, start, [Entry(c, i) for c, i in sent[: reading.news]])
        alias = {rewritten[m.new].id: _first(trace, m.old) for m in reading.found}
        gone = tuple(_first(trace, i) for i in reading.gone)
        switch = Switch(self.format, gone, tuple(rewritten[j].id for j in reading.loose))
        events: list[Event] = [ClientEdit(0, len(trace.said), tuple(rewritten), alias, switch)]
        last = rewritten[-1].id if rewritten else start
        said = chained(self.digests, last, [Entry(c, i) for c, i in sent[reading.news :]])
        events += [Said(tuple(said))] if said else []
        unfolded = any(e.item is None for e in entries)
        return Recognition(trace, events=events, refold=True, unfolded=unfolded), reading.past

    def _native(self, trace: Trace, entries: Sequence[Entry], nodes: Mapping[str, Node]) -> list[tuple[str, Item]]:
        """What was sent, and what our own stand-ins in it stand for, in the format of the request."""
        sent = []
        for entry in entries:
            if entry.item is not None:
                sent.append((entry.content, entry.item))
            elif item := convert_item(nodes[entry.id].item, trace.format, self.format):
                sent.append((self.digests.content(item), item))
        return sent

    async def _on(self, trace: Trace, entries: list[Entry], offset: int) -> Recognition | None:
        reading = compare(trace.said, entries, offset)
        if trace.session is None and await self._quotes_another(trace, entries, reading, offset):
            return None
        found = Recognition(trace, unfolded=any(e.item is None for e in entries))
        taken = {p.id for p in trace.said} if trace.patched or not reading.is_extension() else None
        pairs: list[Match] = []
        if not reading.is_extension():
            shifted = [Patch(g.start + offset, g.stop + offset, g.begin, g.end) for g in reading.gaps]
            old = await self._bodies(trace, shifted)
            if _answered_otherwise(shifted[0], old, entries, len(trace.said)):
                return None
            pairs = rewritten(shifted, old, entries, len(trace.said))
            items = [e.item for e in entries]
            change = Change(shifted, old, items, reading.found, pairs, len(trace.said))
            if not await self._is_edit(trace, change, offset):
                return None
            found.refold = True
            entries = await self._with_items(
                entries, [*(range(g.begin, g.end) for g in shifted), range(reading.news, len(entries))]
            )
            self._edit(found, trace, shifted, entries, pairs, taken)
        # Positions of what is new are counted in the entries; their parent is what the log will then end with.
        last = _last_id(trace, found.events)
        nodes = chained(self.digests, last, entries[reading.news :], taken)
        if nodes:
            found.events.append(Said(tuple(nodes)))
            found.refold |= any(e.item is None for e in entries[reading.news :])
        self._alias(found, pairs, trace, reading, nodes)
        self._freshen(found, trace, reading, entries, offset)
        return found

    async def _quotes_another(self, trace: Trace, entries: Sequence[Entry], reading: Reading, offset: int) -> bool:
        """Whether a stand-in of ours comes back that is not of this branch, and little else says whose it is."""
        if not any(e.item is not None and is_stand_in(e.item) for e in entries[reading.prefix - offset :]):
            return False
        nodes = await self.store.nodes(self.scope, [p.id for p in trace.said[: reading.prefix][-BEFORE:]])
        return evidence(n.item for n in nodes.values()) < ENOUGH

    async def _is_edit(self, trace: Trace, change: Change, offset: int) -> bool:
        """Whether the client changed this conversation, or speaks of another one that began alike."""
        if trace.session is not None:  # its host says that it is
            return not contradicts(change) and bool(change.found or change.pairs or offset)
        before = [p.id for p in trace.said[max(0, offset - BEFORE) : offset]]
        nodes = await self.store.nodes(self.scope, before) if before else {}
        return is_edit(change, evidence(n.item for n in nodes.values()))

    async def _with_items(self, entries: list[Entry], places: Sequence[range]) -> list[Entry]:
        """Entries that came as stand-ins, and will be said anew here, with the items behind them."""
        bare = [j for place in places for j in place if entries[j].item is None]
        nodes = await self.store.nodes(self.scope, [entries[j].id for j in bare]) if bare else {}
        entries = list(entries)
        for j in bare:
            entries[j] = entries[j]._replace(item=nodes[entries[j].id].item)
        return entries

    async def _bodies(self, trace: Trace, gaps: Sequence[Patch]) -> dict[int, Item]:
        # The last one first: whether it is the end of the log that changed decides most.
        places = [i for gap in reversed(gaps) for i in range(gap.start, gap.stop)][:LOOK]
        nodes = await self.store.nodes(self.scope, [trace.said[i].id for i in places])
        return {i: nodes[trace.said[i].id].item for i in places}

    def _edit(
        self,
        found: Recognition,
        trace: Trace,
        gaps: Sequence[Patch],
        entries: Sequence[Entry],
        pairs: Sequence[Match],
        taken: set[str] | None,
    ) -> None:
        """One event a gap, from the end so that earlier positions hold."""
        old_of = {m.new: m.old for m in pairs}
        for gap in reversed(gaps):
            parent = trace.said[gap.start - 1].id if gap.start else ""
            nodes = chained(self.digests, parent, entries[gap.begin : gap.end], taken)
            alias = {n.id: _first(trace, old_of[j]) for j, n in enumerate(nodes, gap.begin) if j in old_of}
            found.events.append(ClientEdit(gap.start, gap.stop, tuple(nodes), alias))

    def _alias(
        self, found: Recognition, pairs: Sequence[Match], trace: Trace, reading: Reading, nodes: Sequence[Node]
    ) -> None:
        """Rewrites of the log's last items arrive among the news: say so in the edit that took the old ones away."""
        late = {nodes[m.new - reading.news].id: _first(trace, m.old) for m in pairs if m.new >= reading.news}
        for i, event in enumerate(found.events):
            if late and isinstance(event, ClientEdit) and event.stop == len(trace.said):
                found.events[i] = ClientEdit(event.start, event.stop, event.nodes, {**event.alias, **late})
                return

    def _freshen(
        self, found: Recognition, trace: Trace, reading: Reading, entries: Sequence[Entry], offset: int
    ) -> None:
        known = reading.found or [Match(i, i) for i in range(reading.prefix - offset)]
        for match in known:
            item = entries[match.new].item
            if item is not None:
                found.fresh[trace.said[match.old + offset].id] = item

    async def _fork(self, trace: Trace, past: int, sent: "_Sent", session: str | None) -> Recognition | None:
        """A new branch of the newest call that is wholly in this history's past, if there is one."""
        for seq, said in reversed([c for c in trace.calls if c[1] <= past]):
            then = await self.store.load(self.scope, trace.branch, seq)
            entries = unfold(then, *sent)
            if await self._is_written_anew(then, entries):
                found, _ = await self._switched(then, entries)
                if found is None:
                    continue
            else:
                reading = compare(then.said, entries)
                if not reading.is_extension() or reading.news != said:
                    continue
                found = Recognition(then, refold=True)
                nodes = chained(self.digests, then.said[-1].id if then.said else "", entries[said:])
                found.events += [Said(tuple(nodes))] if nodes else []
                self._freshen(found, then, reading, entries, 0)
            then.branch, then.session = uuid4().hex[:16], session
            found.opened, found.fork = True, Fork(trace.branch, seq)
            return found
        return None

    def _begin(self, sent: "_Sent", session: str | None, of_name: bool = True) -> Recognition:
        """A new branch of nothing."""
        # Two hosts that open a named session at the same moment must open the same branch.
        named = session is not None and of_name
        branch = named_branch(self.digests, str(session)) if named else uuid4().hex[:16]
        nodes = chained(self.digests, begin(self.digests, self.format), [Entry(c, i) for c, i in sent.pairs()])
        events: list[Event] = [Said(tuple(nodes))] if nodes else []
        return Recognition(Trace(branch, session=session), events=events, opened=True, refold=True)


class _Sent(NamedTuple):
    """A history as it was sent: the digests of its items, and the items as they may be kept."""

    contents: Sequence[str]
    items: Sequence[Item]

    def pairs(self) -> Iterator[tuple[str, Item]]:
        return zip(self.contents, self.items, strict=True)


def named_branch(digests: Digests, session: str) -> str:
    """The branch with which a named session begins."""
    return digests.link(session, ("session",))[:16]


def begin(digests: Digests, format: str) -> str:
    """What the first node of a history is chained to."""
    # The same words in another format are other nodes: their messages are written otherwise.
    return "" if format == AMBIGUOUS else digests.link(format, ("begin",))


def _answered_otherwise(gap: Patch, old: dict[int, Item], entries: Sequence[Entry], said: int) -> bool:
    """Whether it is plain at once: after the same words the assistant says something else, and no match follows."""
    if gap.stop != said or gap.start not in old or gap.begin >= len(entries):
        return False
    was, now = old[gap.start], entries[gap.begin].item
    return now is not None and was.role == now.role == "assistant" and not alike(was, now)


def _first(trace: Trace, place: int) -> str:
    """The node as it was first said, however often the client rewrote it."""
    id = trace.said[place].id
    return trace.alias.get(id, id)


def _last_id(trace: Trace, events: Sequence[Event]) -> str:
    """The id of the last item once these edits are applied."""
    for event in events:
        if isinstance(event, ClientEdit) and event.stop == len(trace.said):
            if event.nodes:
                return event.nodes[-1].id
            return trace.said[event.start - 1].id if event.start else ""
    return trace.said[-1].id if trace.said else ""
