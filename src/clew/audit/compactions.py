"""The compactions that an agent made in a session: what each kept, and what had to be looked up again.

What a compaction had to tell is what was said since the one before it, and what that one had kept. What it kept is what
the model then saw: the summary, turns that stayed as they were, and what the client attached anew before the model went
on. What stayed as it was is no part of what had to be told. Of a summary that is sealed, or that begins a file whose
earlier part is elsewhere, nothing can be said: it is listed, and counts in no figure but those of look-ups.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b

from clew.audit.hiding import Masking
from clew.audit.kinds import FACT_KINDS, FactKind, NamedFact, facts_in, words
from clew.audit.lookups import LookedUpAgain, LookupKind, SeenView, looked_up_again
from clew.audit.survival import Part, ShownText, shown
from clew.catalog import lookup
from clew.clients.voices import is_program_made, summary_alone, typed
from clew.core.items import Item
from clew.sessions.transcripts import Transcript, TranscriptCompaction
from clew.text.quoting import ASSISTANT, quoted
from clew.tokens import Counter as TokenCounter
from clew.tokens import counter_for

MILLION = 1_000_000
USED_BY_CALLS: tuple[FactKind, ...] = ("paths", "commands")  # of which it shows that they were needed again


@dataclass(frozen=True, slots=True)
class KindCount:
    """Facts of one kind: so many there were, so many were kept, so many of the others did calls use again."""

    before: int = 0
    kept: int = 0
    needed: int = 0

    def plus(self, other: "KindCount") -> "KindCount":
        return KindCount(self.before + other.before, self.kept + other.kept, self.needed + other.needed)


@dataclass(frozen=True, slots=True)
class CompactionAudit:
    """What one compaction did."""

    agent: str
    session: str  # as its file names it
    number: int  # in its session, from 1
    model: str
    at: str
    trigger: str
    tokens_before: int  # as the agent reported, else estimated
    tokens_after: int | None  # of the summary and of what stayed, counted; None: it is sealed
    readable: bool  # else its summary, or what it replaced, is in no file
    kinds: Mapping[FactKind, KindCount]
    again: Mapping[LookupKind, int]
    again_tokens: int
    cost: float | None  # US dollars for these; None: the model's price is not known
    digest: str  # of the summary and what was said last before it: the same in two files is one compaction
    lost: Mapping[FactKind, Sequence[str]] = field(default_factory=dict, repr=False)
    looked_up: Sequence[tuple[LookupKind, str]] = field(default=(), repr=False)


def audited(transcript: Transcript, told: str = "", content: bool = False) -> Iterator[CompactionAudit]:
    """The compactions of a session and of its children, each once; with `content`, what was lost, without secrets.

    `told` is the name of the session where its file has none.
    """
    seen: set[int] = set()
    stack = [transcript]
    while stack:
        one = stack.pop()
        known = {id(why) for _, why in one.compactions}
        if not known <= seen:
            yield from SessionAudit(one, told, content).compactions(seen)
        seen |= known
        stack += reversed(one.children)


class SessionAudit:
    """One session, read once."""

    def __init__(self, transcript: Transcript, told: str = "", content: bool = False) -> None:
        self.transcript = transcript
        self.name = transcript.name or told
        self.items = transcript.items()
        self.cuts = transcript.compactions
        self.views = [SeenView(place, place - why.kept, frozenset(why.also)) for place, why in self.cuts]
        self.counter: TokenCounter = counter_for(transcript.model, transcript.format)
        known = lookup(transcript.model) if transcript.model else None
        self.price = known.prices.input if known and known.prices else None
        every = (item for items in self.items for item in items)
        self.mask = Masking(every, [why.summary or "" for _, why in self.cuts]) if content else None
        self._found: dict[int, list[NamedFact]] = {}  # of each message, once it was asked for

    def compactions(self, seen: set[int]) -> Iterator[CompactionAudit]:
        """All but those that were seen in another branch."""
        again: dict[int, list[LookedUpAgain]] = {}
        for found in looked_up_again(self.items, self.views, self.counter.text):
            again.setdefault(found.hidden_by, []).append(found)
        carried: list[NamedFact] = []
        for n, (_, why) in enumerate(self.cuts):
            part, kept, told = self._part(n, carried), {}, {}
            if why.summary is not None:
                stayed = [text for m in self._stayed(n) for item in self.items[m] for text in shown(item)]
                told = part.in_view(ShownText([why.summary]))
                kept = part.in_view(ShownText([why.summary, *stayed])) if stayed else told
            if id(why) not in seen:
                yield self._audit(n, why, part, kept, again.get(n, []))
            # What a summary kept, the next one has to tell; also what only it says.
            carried = [NamedFact(kind, text) for kind, texts in told.items() for text in texts]
            carried += words(summary_alone(why.summary or ""))

    def _audit(
        self,
        n: int,
        why: TranscriptCompaction,
        part: Part,
        kept: Mapping[FactKind, set[str]],
        again: Sequence[LookedUpAgain],
    ) -> CompactionAudit:
        place = self.cuts[n][0]
        readable = why.summary is not None and place > 0
        lost = {k: [f for f in part.facts[k] if f not in kept.get(k, ())] for k in FACT_KINDS} if readable else {}
        needed = self._needed(place, part, lost)
        counts = {k: KindCount(len(part.facts[k]), len(kept[k]), needed.get(k, 0)) for k in FACT_KINDS if readable}
        tokens = sum(one.tokens for one in again)
        stayed = sum(self.counter.item(item) for m in self._stayed(n) for item in self.items[m])
        return CompactionAudit(
            agent=self.transcript.agent,
            session=self.name,
            number=n + 1,
            model=self.transcript.model,
            at=why.at,
            trigger=why.trigger,
            tokens_before=why.tokens_before or self._earlier_text(n),
            tokens_after=None if why.summary is None else self.counter.text(why.summary) + stayed,
            readable=readable,
            kinds=counts,
            again=Counter(one.subject.kind for one in again),
            again_tokens=tokens,
            cost=None if self.price is None else tokens * self.price / MILLION,
            digest=self._digest(n),
            lost={kind: [*map(self._shown, texts)] for kind, texts in lost.items()} if self.mask else {},
            looked_up=[(kind, self.mask(what)) for _, (kind, what), _ in again] if self.mask else (),
        )

    def _shown(self, fact: str) -> str:
        """A fact as it may be shown; one that tells of the user, and is not theirs, as the assistant's."""
        assert self.mask is not None
        return self.mask(fact) if fact in self._users else quoted(self.mask(fact), ASSISTANT)

    @cached_property
    def _users(self) -> set[str]:
        """What the user named."""
        return {fact.text for items in self.items for item in items if typed(item) for fact in facts_in(item)}

    def _digest(self, n: int) -> str:
        place, why = self.cuts[n]
        said = [why.summary or "", *(item.text for items in self.items[max(0, place - 2) : place] for item in items)]
        return blake2b("\0".join(said).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def _part(self, n: int, carried: Iterable[NamedFact]) -> Part:
        """What a compaction had to tell."""
        view = self.views[n]
        old = [m for m in range(max(0, self._start(n)), max(0, view.start)) if m not in view.also]
        more = [m for m in (self.views[n - 1].also if n else ()) if m < self._start(n) and m not in view.also]
        return Part([*carried, *(fact for m in (*sorted(more), *old) for fact in self._facts(m))])

    def _facts(self, message: int) -> list[NamedFact]:
        if message not in self._found:
            self._found[message] = [fact for item in self.items[message] for fact in facts_in(item)]
        return self._found[message]

    def _start(self, n: int) -> int:
        """The first message that was in view before a compaction, but for those that stayed beside a summary."""
        return self.views[n - 1].start if n else 0

    def _stayed(self, n: int) -> list[int]:
        """The messages that the model saw after it, beside the summary and before it went on."""
        place, view = self.cuts[n][0], self.views[n]
        stayed = [*sorted(view.also), *range(max(0, view.start), place)]
        for m in range(place, len(self.items)):
            if not all(_is_attached(item) for item in self.items[m]):
                break
            stayed.append(m)
        return stayed

    def _earlier_text(self, n: int) -> int:
        texts = (i.text for m in range(max(0, self._start(n)), self.cuts[n][0]) for i in self.items[m])
        earlier = (self.cuts[n - 1][1].summary or "") if n else ""
        return sum(map(self.counter.text, (earlier, *texts)))

    def _needed(self, place: int, part: Part, lost: Mapping[FactKind, Sequence[str]]) -> dict[FactKind, int]:
        """How many lost files and commands a later call used again."""
        if not (lost.get("paths") or lost.get("commands")):
            return {}
        calling = (m for m in range(place, len(self.items)) if any(item.kind == "call" for item in self.items[m]))
        found = [fact for m in calling for fact in self._facts(m)]
        files = part.files.named_in(fact.text for fact in found if fact.kind == "paths")
        used = {"paths": files, "commands": {fact.text for fact in found if fact.kind == "commands"}}
        return {kind: sum(fact in used[kind] for fact in lost[kind]) for kind in USED_BY_CALLS}


def _is_attached(item: Item) -> bool:
    """Whether a client put it there, and nobody said it."""
    return item.role == "user" and item.kind in ("text", "media") and is_program_made(item)
