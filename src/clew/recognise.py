"""Whose history is this? An incoming request finds its branch: it extends one, edits one, forks one, or begins one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

from clew.align import Match, Patch, alike
from clew.guard import Guard
from clew.items import Digests, Item, Node, Scope
from clew.live import Entry, Reading, chained, compare, rewritten, unfold
from clew.store.protocol import Store
from clew.store.records import ClientEdit, Event, Fork, Method, Origin, Said, Switch
from clew.store.trace import Trace
from clew.switching import rewriting
from clew.wire import AMBIGUOUS
from clew.wire.convert import convert_item

LOOK = 400  # bodies looked at to tell an edit from another conversation
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
    method: Method | None = None  # that the request asks for
    fresh: dict[str, Item] = field(default_factory=dict)  # known nodes as the client sent them this time
    unfolded: bool = False  # the client sent stand-ins of ours
    refold: bool = False  # the view must be made anew, not only lengthened
    silent: bool = False  # it is written down, and nothing is sent

    def said(self) -> list[Node]:
        """What is new at the end."""
        return [node for event in self.events if isinstance(event, Said) for node in event.nodes]

    def sent(self) -> dict[str, Item]:
        """Every node the client just sent, with the item it sent."""
        nodes = [n for event in self.events if isinstance(event, Said | ClientEdit) for n in event.nodes]
        return {n.id: n.item for n in nodes} | self.fresh


@dataclass(frozen=True, slots=True)
class Recogniser:
    """Looks in one scope's log."""

    store: Store
    scope: Scope
    digests: Digests
    format: str
    guard: Guard

    async def extend(self, trace: Trace, items: Sequence[Item], offset: int) -> Recognition | None:
        """This branch with `items` after its first `offset` ones, or None if that is another conversation."""
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
        contents = [self.digests.content(i) for i in items]
        items = self.guard.admit(items)
        behind: tuple[Trace, int] | None = None
        for branch in await self._candidates(contents, session):
            trace = await self.store.load(self.scope, branch)
            entries = unfold(trace, contents, items)
            found, past = await self._relate(trace, entries)
            if found:
                found.refold = True
                found.contents = contents
                found.unfolded |= len(entries) < len(contents)
                return found
            if behind is None:
                behind = trace, past
        begun = await self._begin(behind, contents, items, session)
        begun.contents = contents
        return begun

    async def _candidates(self, contents: Sequence[str], session: str | None) -> list[str]:
        if session is not None:
            found = await self.store.session(self.scope, session)
            return [found] if found else []
        chains, chain = [], ""
        for content in contents:
            chain = self.digests.link(content, (chain,))
            chains.append(chain)
        known = [f.branch for f in await self.store.find(self.scope, chains)]
        names = list(dict.fromkeys(known))[:CANDIDATES]
        if not names and (alike := await self.store.alike(self.scope, contents[-SAMPLE:])):
            names = [alike]
        return names

    async def _relate(self, trace: Trace, entries: list[Entry]) -> tuple[Recognition | None, int]:
        """The branch with this history on it, or None and how much of the branch is in the history's past."""
        if await self._is_written_anew(trace, entries):
            return await self._switched(trace, entries)
        found = await self._on(trace, entries, 0)
        return found, 0 if found else compare(trace.said, entries).prefix

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
        found = Recognition(trace, unfolded=any(e.item is None for e in entries))
        taken = {p.id for p in trace.said} if trace.patched or not reading.is_extension() else None
        pairs: list[Match] = []
        if not reading.is_extension():
            shifted = [Patch(g.start + offset, g.stop + offset, g.begin, g.end) for g in reading.gaps]
            old = await self._bodies(trace, shifted)
            if _answered_otherwise(shifted[0], old, entries, len(trace.said)):
                return None
            pairs = rewritten(shifted, old, entries, len(trace.said))
            if not _same_conversation(reading, offset, shifted, old, entries, pairs, len(trace.said)):
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

    async def _with_items(self, entries: list[Entry], places: Sequence[range]) -> list[Entry]:
        """Entries that came as stand-ins, and will be said anew here, with the items behind them."""
        bare = [j for place in places for j in place if entries[j].item is None]
        nodes = await self.store.nodes(self.scope, [entries[j].id for j in bare]) if bare else {}
        entries = list(entries)
        for j in bare:
            entries[j] = entries[j]._replace(item=nodes[entries[j].id].item)
        return entries

    async def _bodies(self, trace: Trace, gaps: Sequence[Patch]) -> dict[int, Item]:
        places = [i for gap in gaps for i in range(gap.start, gap.stop)][:LOOK]
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

    async def _begin(
        self, behind: tuple[Trace, int] | None, contents: Sequence[str], items: Sequence[Item], session: str | None
    ) -> Recognition:
        """A new branch: of the newest call that is wholly in this history's past, or of nothing."""
        # Two hosts that open a named session at the same moment must open the same branch.
        named = session is not None and behind is None
        branch = named_branch(self.digests, str(session)) if named else uuid4().hex[:16]
        if behind:
            trace, prefix = behind
            for seq, said in reversed([c for c in trace.calls if c[1] <= prefix]):
                past = await self.store.load(self.scope, trace.branch, seq)
                entries = unfold(past, contents, items)
                if await self._is_written_anew(past, entries):
                    found, _ = await self._switched(past, entries)
                    if found is None:
                        continue
                    past.branch, past.session = branch, session
                    found.opened, found.fork = True, Fork(trace.branch, seq)
                    return found
                reading = compare(past.said, entries)
                if reading.is_extension() and reading.news == said:
                    past.branch, past.session = branch, session
                    found = Recognition(past, opened=True, fork=Fork(trace.branch, seq), refold=True)
                    nodes = chained(self.digests, past.said[-1].id if past.said else "", entries[said:])
                    found.events += [Said(tuple(nodes))] if nodes else []
                    self._freshen(found, past, reading, entries, 0)
                    return found
        nodes = chained(
            self.digests, begin(self.digests, self.format), [Entry(c, i) for c, i in zip(contents, items, strict=True)]
        )
        events: list[Event] = [Said(tuple(nodes))] if nodes else []
        return Recognition(Trace(branch, session=session), events=events, opened=True, refold=True)


def named_branch(digests: Digests, session: str) -> str:
    """The branch with which a named session begins."""
    return digests.link(session, ("session",))[:16]


def begin(digests: Digests, format: str) -> str:
    """What the first node of a history is chained to."""
    # The same words in another format are other nodes: their messages are written otherwise.
    return "" if format == AMBIGUOUS else digests.link(format, ("begin",))


def _same_conversation(
    reading: Reading,
    offset: int,
    gaps: Sequence[Patch],
    old: dict[int, Item],
    entries: Sequence[Entry],
    pairs: Sequence[Match],
    said: int,
) -> bool:
    """Whether the client edited this conversation, or speaks of another one that began alike."""
    beyond = said - reading.prefix
    kept = sum(m.old + offset >= reading.prefix for m in reading.found) + len(pairs)
    was, now = {m.old for m in pairs}, {m.new for m in pairs}
    for gap in gaps:
        end = gap.end if gap.stop < said else len(entries)
        lost = any(i in old and old[i].role == "assistant" for i in range(gap.start, gap.stop) if i not in was)
        put = any(
            (e := entries[j].item) is not None and e.role == "assistant" for j in range(gap.begin, end) if j not in now
        )
        if lost and put and (gap.stop < said or kept == 0):
            return False  # clients do not put words in the assistant's mouth: it answered otherwise
        if lost and gap.stop == said:
            return False
    newest = bool(reading.found) and reading.found[-1].old + offset == said - 1
    went_on = any(e.item is not None and e.item.role == "assistant" for e in entries[reading.prefix - offset :])
    unanswered = len(old) < LOOK and not any(i.role == "assistant" for i in old.values())
    return kept * 2 >= beyond or newest or (unanswered and went_on and reading.prefix > 0)


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
