"""What a history does to a branch it belongs to: the events that bring the branch to where the request is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from clew.core.align import Match, Patch
from clew.core.items import Digests, Item, Node, Scope
from clew.core.threads import LONG, in_thread_if
from clew.recognition.client_edits import (
    ENOUGH,
    Change,
    contradicts,
    evidence,
    has_enough,
    is_all_there,
    is_edit,
    keeps_newest,
)
from clew.recognition.other_format import rewriting
from clew.recognition.reading import Entry, Reading, chained, compare, rewritten, unfold
from clew.recognition.sameness import alike, is_stand_in
from clew.store.protocol import Store
from clew.store.records import ClientEdit, Event, Fork, Origin, Said, Switch
from clew.store.trace import Trace
from clew.wire import AMBIGUOUS
from clew.wire.convert import convert_item

LOOK = 400  # bodies looked at to tell an edit from another conversation
BEFORE = 40  # items before the first change that are weighed
SHARED_NAMES = "shared_name"  # the kind under which a store has names that several conversations have


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
    keeps_all: bool = False  # it is sent as it came if it fits
    lossy: bool = False  # the client took away some of what was said
    lost: bool = False  # it goes on from something, and nothing proves from what
    shares_name: bool = False  # with a conversation with which it has nothing in common

    def new_nodes(self) -> list[Node]:
        """What is new at the end."""
        return [node for event in self.events if isinstance(event, Said) for node in event.nodes]

    def sent(self) -> dict[str, Item]:
        """Every node the client just sent, with the item it sent."""
        nodes = [n for event in self.events if isinstance(event, Said | ClientEdit) for n in event.nodes]
        return {n.id: n.item for n in nodes} | self.fresh


class Sent(NamedTuple):
    """A history as it was sent: the digests of its items, and the items as they may be kept."""

    contents: Sequence[str]
    items: Sequence[Item]

    def pairs(self) -> Iterator[tuple[str, Item]]:
        return zip(self.contents, self.items, strict=True)


@dataclass(frozen=True, slots=True)
class Continuation:
    """Reads histories as continuations of branches, in one scope and format."""

    store: Store
    scope: Scope
    digests: Digests
    format: str

    async def relate(self, trace: Trace, sent: Sent) -> tuple[Recognition | None, int]:
        """The branch with this history on it, or None and how much of the branch is in the history's past."""
        entries = unfold(trace, *sent)
        if await self._is_written_anew(trace, entries):
            found, past = await self._switched(trace, entries)
        else:
            found = await self.on(trace, entries, 0)
            past = 0 if found else compare(trace.said, entries).prefix
        if found:
            found.unfolded |= len(entries) < len(sent.contents)  # some of it quoted what we had put there
        return found, past

    async def after(self, trace: Trace, sent: Sent, said: int) -> Recognition | None:
        """The branch as it was after a call with so many items, with all that this history has beyond them."""
        entries = unfold(trace, *sent)
        if await self._is_written_anew(trace, entries):
            return (await self._switched(trace, entries))[0]
        reading = compare(trace.said, entries)
        if not reading.is_extension() or reading.news != said:
            return None
        found = Recognition(trace, refold=True)
        nodes = chained(self.digests, trace.said[-1].id if trace.said else "", entries[said:])
        found.events += [Said(tuple(nodes))] if nodes else []
        self._freshen(found, trace, reading, entries, 0)
        return found

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
        named = trace.session is not None
        reading = await in_thread_if(len(old) + len(new) > LONG, lambda: rewriting(old, new, named))
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
        found = Recognition(trace, events=events, refold=True, unfolded=unfolded, lossy=reading.lossy)
        return found, reading.past

    def _native(self, trace: Trace, entries: Sequence[Entry], nodes: Mapping[str, Node]) -> list[tuple[str, Item]]:
        """What was sent, and what our own stand-ins in it stand for, in the format of the request."""
        sent = []
        for entry in entries:
            if entry.item is not None:
                sent.append((entry.content, entry.item))
            elif item := convert_item(nodes[entry.id].item, trace.format, self.format):
                sent.append((self.digests.content(item), item))
        return sent

    async def on(self, trace: Trace, entries: list[Entry], offset: int) -> Recognition | None:
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
            equal = [Match(m.old + offset, m.new) for m in reading.found]
            change = Change(shifted, old, items, equal, pairs, len(trace.said), trace.session is not None)
            found.lossy = not is_all_there(change)
            if contradicts(change) or (found.lossy and not _is_edit(change, offset)):
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


def _is_edit(change: Change, offset: int) -> bool:
    """Whether the client took something away here, or speaks of another conversation that began alike."""
    if change.named:
        return has_enough(change) and keeps_newest(change)
    return not offset and is_edit(change)  # else all that may be like it is looked at


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
