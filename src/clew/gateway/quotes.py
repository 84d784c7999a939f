"""Conversations that a client quotes in one text, to have them summed up, and whether a branch is the quoted one."""

import re
from collections import Counter as Tally
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from clew.core.caches import Recent
from clew.core.items import Digests, Item, Scope
from clew.core.threads import LARGE, LONG, in_thread_if
from clew.engine.engine import Engine
from clew.gateway.quoted_text import (
    LEAST_QUOTED,
    NOT_QUOTED,
    Quoted,
    bare,
    goes_on,
    is_part,
    is_quoted,
    is_said,
    leading_summary,
    news,
    quoted,
    quoted_from,
)
from clew.recognition.continuation import SHARED_NAMES
from clew.recognition.proof import Past, logged
from clew.recognition.recognise import HANDOFF
from clew.recognition.side_requests import summary_at
from clew.store.trace import Trace

T = TypeVar("T")

PARAGRAPHS, LONG_ENOUGH = 6, 60  # of a quoted conversation, and characters: by which it is looked for
LONGEST_QUOTE = 1_200  # characters of one
LIKELY = 12  # branches that are compared with a quoted conversation
BEGUN_ALIKE = 256  # of which it is looked up how much of what is quoted they have
SUMMED_UP = 16  # conversations of which it is remembered how much was just summed up
_PARTS = re.compile(r"\n\s*\n|^# (?:USER|ASSISTANT)\n", re.MULTILINE)  # the latter between what aider quotes


class FoundQuote(NamedTuple):
    """What a text quotes."""

    branch: str
    items: list[Item]  # of it, from its beginning to the end of what is quoted
    last: int = 0  # the place in it where that is
    first: int = 0  # of these: where what is quoted begins; the rest is summed up elsewhere
    below: Past | None = None  # as what


class Quotes:
    """Finds the conversations that are quoted."""

    def __init__(self, engine: Engine) -> None:
        self._store = engine.store
        self._summed_up = Recent[tuple[Scope, str], tuple[int, Past]](SUMMED_UP)

    def summed_up(self, scope: Scope, found: FoundQuote, past: Past) -> None:
        """Remember that a conversation was summed up to some place: pi asks for the next part after that."""
        if found.last:
            self._summed_up[scope, found.branch] = found.last, past

    async def find(self, scope: Scope, session: str | None, asked: str) -> FoundQuote | None:
        """The branch that a text quotes, and what of it is quoted."""
        digests = self._digests(scope)
        quote = await in_thread_if(len(asked) > LARGE, lambda: ClientQuote(asked, digests))
        past = quote.past
        if past and not await self._store.sessions(scope, past.branch):  # purged
            past = None
        if past is None or quote.goes_on:
            shared = session is not None and session in await self._store.learned(scope, SHARED_NAMES)
            if session is None or shared:
                found = await self._unnamed(scope, quote)
            else:
                found = await self._named(scope, session, quote)
            if found or past is None:
                return found or await self._part(scope, quote)
        # The summary alone, or, as aider may ask, with what had been left out of it: nothing proves a branch of both.
        _, items = await self.history(scope, past.branch, past.seq)
        return FoundQuote(past.branch, [*items, *await quote.news(Quoted(0, 0, quote.summary_end))])

    async def _part(self, scope: Scope, quote: "ClientQuote") -> FoundQuote | None:
        """What goes on from where a conversation was summed up, just now or by the summary that it begins with.

        Nothing of what stands before is proven by that: whoever asks has to show the summary of it, too.
        """
        if not quote.is_part:
            return None
        just = [(branch, *known) for (of, branch), known in reversed(self._summed_up.items()) if of == scope]
        for branch, place, below in just:
            if found := await self._from(scope, quote, branch, (await self.history(scope, branch))[1], place, below):
                return found
        for branch, _ in (await self._likely(scope, quote.text))[0]:
            trace, items = await self.history(scope, branch)
            at = summary_at(items) if trace.calls else None
            past = logged(self._digests(scope), items[at].text) if at is not None else None
            if past and at is not None and (found := await self._from(scope, quote, branch, items, at + 1, past)):
                return found
        return None

    async def _from(
        self, scope: Scope, quote: "ClientQuote", branch: str, items: list[Item], place: int, below: Past
    ) -> FoundQuote | None:
        """The same on one branch from a place on, before which it is summed up as `below`."""
        found = await quote.work(items, lambda: quoted_from(quote.text, items, place))
        if found.last <= place:
            return None
        told = [*_tellable(items[: found.last]), *await quote.news(found)]
        return FoundQuote(branch, told, found.last, len(_tellable(items[:place])), below)

    def _digests(self, scope: Scope) -> Digests:
        return Digests(self._store.secret, scope)

    async def _named(self, scope: Scope, session: str, quote: "ClientQuote") -> FoundQuote | None:
        own = await self._store.session(scope, session)
        items = (await self.history(scope, own))[1] if own else []
        found = await quote.of(items)
        told = [*_tellable(items[: found.last]), *await quote.news(found)]
        return FoundQuote(own, told, found.last) if own and found.last else None

    async def _unnamed(self, scope: Scope, quote: "ClientQuote") -> FoundQuote | None:
        likely, least = await self._likely(scope, quote.text)
        found = list[QuotedBranch]()
        for branch, count in likely:
            trace, items = await self.history(scope, branch)
            quotes = await quote.of(items)
            # What a model handed over is for those who have its system prompt: who quotes has another one.
            handed_over = any(edit.by.startswith(HANDOFF) for edit in trace.edits)
            if quotes.last and (handed_over or count <= least):  # one that was not compared may be as much like it
                return None
            if quotes.last:
                found.append(QuotedBranch(bool(trace.calls), quotes.size, branch, items[: quotes.last], quotes))
        if not found:
            return None
        best = max(found, key=lambda one: one[:2])
        # One may be how another began, or a copy of it; but where results are cut, two may differ in the rest.
        others = [one.items for one in found if one is not best]
        if not await quote.work(best.items, lambda: all(_is_beginning(other, best.items) for other in others)):
            return None
        return FoundQuote(best.branch, [*_tellable(best.items), *await quote.news(best.quotes)], best.quotes.last)

    async def _likely(self, scope: Scope, text: str) -> tuple[list[tuple[str, int]], int]:
        """Branches in which most paragraphs of a text were said, and how many; how many all others have at most.

        Who began with the same words has these, too, though another one said them first.
        """
        paragraphs = [p[:LONGEST_QUOTE] for p in _PARTS.split(text) if len(p) >= LONG_ENOUGH]
        step = max(1, len(paragraphs) // PARAGRAPHS)
        found: set[str] = set()
        for paragraph in paragraphs[::step][:PARAGRAPHS]:
            found |= set(await self._store.search(scope, paragraph, None, PARAGRAPHS))
        ids = {id for id, _ in await self._store.places(scope, sorted(found))}
        most = Tally(branch for _, branch in await self._store.holders(scope, sorted(ids))).most_common()
        if len(most) <= LIKELY:
            return most, 0
        counts = Tally[str]()  # a fork may have left before what its parent said
        for branch, _ in most[:BEGUN_ALIKE]:
            counts[branch] = len(ids.intersection(place.id for place in (await self._store.load(scope, branch)).said))
        likely = counts.most_common(LIKELY + 1)
        return likely[:LIKELY], max(count for _, count in (likely[LIKELY], *most[BEGUN_ALIKE:][:1]))

    async def history(self, scope: Scope, branch: str, until: int | None = None) -> tuple[Trace, list[Item]]:
        """A branch, and all that was said on it."""
        trace = await self._store.load(scope, branch, until)
        nodes = await self._store.nodes(scope, [place.id for place in trace.said])
        return trace, [nodes[place.id].item for place in trace.said]


def _tellable(items: Sequence[Item]) -> list[Item]:
    """Without instructions: clients quote none, so that nothing proves who quotes was given them."""
    return [item for item in items if item.role != "system"]


def _is_beginning(one: Sequence[Item], other: Sequence[Item]) -> bool:
    """Whether one of two says all that the other does, as far as it goes, whoever is said to say it."""
    said = ("".join(bare(i.text) for i in items if i.kind == "call" or is_said(i)) for items in (one, other))
    short, long = sorted(said, key=len)
    return long.startswith(short)


class QuotedBranch(NamedTuple):
    """A branch that a text quotes; of several, the last by the first two of these is the one."""

    was_asked: bool  # a model, in it: else a quote was written down
    size: int  # of what is quoted
    branch: str
    items: Sequence[Item]  # that are quoted
    quotes: Quoted


class ClientQuote:
    """A conversation that is quoted, and what is said around it."""

    def __init__(self, asked: str, digests: Digests) -> None:
        self.text = quoted(asked)
        self.is_part = is_part(asked)
        self._asked, self._digests = asked, digests
        summary, self.summary_end = leading_summary(self.text)
        self.goes_on = goes_on(self.text, self.summary_end)
        self.past = logged(digests, summary)  # by clew's own line in the summary that it begins with

    async def of(self, items: Sequence[Item]) -> Quoted:
        """How much of a branch this quotes."""
        return await self.work(items, lambda: self._of(items))

    async def news(self, found: Quoted) -> list[Item]:
        """What is quoted beyond a branch."""
        return await self.work((), lambda: list(news(self.text, found.end, found.is_heard)))

    async def work(self, items: Sequence[Item], act: Callable[[], T]) -> T:
        """Do something with the text and some items, where others need not wait for it if there is much of it."""
        return await in_thread_if(len(self._asked) > LARGE or len(items) > LONG, act)

    def _of(self, items: Sequence[Item]) -> Quoted:
        at = summary_at(items)
        if self.past and (at is None or logged(self._digests, items[at].text) != self.past):
            return NOT_QUOTED
        shown = at is not None and self._has_before(items[at].text)
        return is_quoted(self.text, items, shown)

    def _has_before(self, summary: str) -> bool:
        """Whether the summary that a branch begins with stands beside the quote: pi has it updated."""
        inner = summary.partition("<summary>")[2].rpartition("</summary>")[0]
        told = (inner or summary.partition("\n")[2]).strip()
        return len(told) >= LEAST_QUOTED and told in self._asked
