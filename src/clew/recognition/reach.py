"""What a conversation may look back into beside its own words: what came before its branch, where that is proven."""

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from clew.core.items import Digests, Item, Scope
from clew.recognition.continuation import Recognition
from clew.recognition.proof import ANSWER_MARKS, LEAST_ANSWER, Past, answered, logged
from clew.recognition.side_requests import FIRST, LEADING, summary_at
from clew.store.protocol import Store
from clew.store.records import ClientEdit
from clew.store.trace import Trace


class Before(NamedTuple):
    """The branches that one comes after, and by which of its nodes that is known."""

    branches: frozenset[str] = frozenset()
    tie: str = ""  # the summary that it goes on from; none: its host said so
    signed: bool = False  # clew's own line is in it; else only one branch got it, so far


@dataclass(frozen=True, slots=True)
class ProvenPast:
    """Tells what came before the branches of one scope, and whether a history proves it."""

    store: Store
    scope: Scope
    digests: Digests
    known: MutableMapping[tuple[Scope, str], Before]  # of branches that were looked at
    parent: str | None = None  # the branch that the host says it comes after; "": nobody knows which it means

    async def summed_up(self, items: Sequence[Item], named: bool = False) -> tuple[Past | None, int]:
        """What a history goes on from by a summary, and which item that is, where it is proof.

        Proof is that clew gave it, or saw one branch's compaction get it. Where a history has a name, a message may
        also be such a summary and nothing else, as in Crush.
        """
        at = summary_at(items)
        if at is not None:
            places = [at]
            if (past := logged(self.digests, items[at].text)) and await self._is_there(past):
                return past, at
        else:
            places = [n for n, i in enumerate(items[:FIRST]) if i.kind == "text" and i.role == "user" and named]
        places = [n for n in places if len(items[n].text) >= LEAST_ANSWER]
        learned = await self.store.learned(self.scope, ANSWER_MARKS) if places else {}
        for n in places:
            past = answered(self.digests, items[n].text, learned, alone=at is None)
            if past and await self._is_there(past):
                return past, n
        return None, 0

    async def may_continue(self, trace: Trace, found: Recognition, named: bool, known: bool = False) -> bool:
        """Whether a history may be what it was found to be, with all that came before that branch.

        It shows the summary that ties the branch to it; or its host names the parent. Where it names none, it has a
        name for the whole, and the history an answer that was given there. `known`: it was the last to speak here.
        """
        before = await self.of(trace)
        if not before.branches or await self._is_child(before):
            return True
        changed = [event for event in found.events if isinstance(event, ClientEdit)]
        if not before.tie:
            return named and self.parent is None and not changed and await self._has_answer(trace)
        places = [n for n, p in enumerate(trace.said[: 2 * LEADING]) if before.tie in (p.id, trace.alias.get(p.id))]
        kept = any(all(_keeps(event, n, before.tie) for event in changed) for n in places)
        # A summary that another one has got since then is proof no more.
        return kept and ((known and before.signed) or bool((await self._looked_up(trace)).tie))

    async def may_look(self, trace: Trace) -> bool:
        """Whether whoever shows all that was said on a branch may see what it saw of what came before."""
        before = await self.of(trace)
        return not before.branches or bool(before.tie) or await self._is_child(before)

    async def of(self, trace: Trace) -> Before:
        """What came before a branch, which never changes: it is looked up once."""
        key = self.scope, trace.branch
        if (found := self.known.get(key)) is None:
            found = self.known[key] = await self._looked_up(trace)
        return found

    async def _looked_up(self, trace: Trace) -> Before:
        branches = frozenset(id for id, _ in await self.store.ancestry(self.scope, trace.branch))
        if not branches:
            return Before()
        first = [p.id for p in trace.said[: max(FIRST, min(LEADING, trace.calls[0][1] if trace.calls else LEADING))]]
        nodes = await self.store.nodes(self.scope, first)
        items = [nodes[id].item for id in first]
        past, at = await self.summed_up(items, named=True)
        if past is None or past.branch not in branches:
            return Before(branches)
        tie, signed = trace.alias.get(first[at], first[at]), logged(self.digests, items[at].text) == past
        return Before(branches, tie, signed)

    async def _is_child(self, before: Before) -> bool:
        """Whether what came before is what the host names as the parent, or the past of that."""
        if not self.parent:
            return False
        line = {self.parent, *(id for id, _ in await self.store.ancestry(self.scope, self.parent))}
        return not line.isdisjoint(before.branches)

    async def _has_answer(self, trace: Trace) -> bool:
        nodes = await self.store.nodes(self.scope, [p.id for p in trace.said[: 2 * FIRST]])
        return any(node.item.role == "assistant" for node in nodes.values())

    async def _is_there(self, past: Past) -> bool:
        return bool(await self.store.sessions(self.scope, past.branch))


def _keeps(event: ClientEdit, place: int, id: str) -> bool:
    return not event.start <= place < event.stop or id in event.alias.values()
