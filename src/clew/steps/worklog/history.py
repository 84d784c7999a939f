"""What a fold starts from: the view, its log, what may be folded, and how things stood."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace as with_
from functools import cached_property

from clew.clients.voices import typed
from clew.core.bounds import ends
from clew.core.cuts import Stretch
from clew.core.items import Item, Node
from clew.core.view import View, originals
from clew.facts.chapters import Chapter
from clew.facts.coverage import words_in
from clew.steps.places import first_asked, first_exchange, protected
from clew.steps.shares import STATE
from clew.steps.worklog.blocks import Block, blocks, lines_of, standing
from clew.steps.worklog.choosing import LogLine
from clew.steps.worklog.requests import WorkRequest, requests
from clew.steps.worklog.standing import RULES_FIRST, Standing
from clew.tokens.target import Target

LEAST_BLOCK = 200  # tokens of originals: for less, a block is not worth its heading
MORE_STATE = 1.2  # times what how things stood took last: it grows
NEW_STATE = 100  # tokens: the same where there was little
RULES_SHARE = 8  # of the history: an eighth of it may be the user's rules before they are cut
ALL = 1_000_000  # characters: no bound


class History:
    """A view before a fold, read once."""

    def __init__(self, view: View, target: Target, focus: str = "", chapters: Sequence[Chapter] = ()) -> None:
        self.view, self.target, self.meter = view, target, target.meter
        self.size, self.goal = target.size(view), target.goal
        self.tokens = max(1, self.goal.tokens - target.meter.frame(view.frame).tokens)  # that the goal leaves for it
        self.old = blocks(view)
        self._counted: dict[tuple[str, ...], int] = {}
        self.log = {(at, at + 1): self._weighed(at, block) for at, (block, _) in self.old.items()}
        self.focus = focus.strip()
        self.stood = standing(self.old)
        self.keep = keep = protected(view, target)
        free = [g for g in view.groups() if not any(keep[slice(*g)]) and self.old.keys().isdisjoint(range(*g))]
        self.chapters = written_of(view, free, chapters)
        places = [(at, at + 1) for at in range(len(view.nodes)) if at in self.old or not keep[at]]
        self.anew = {
            at: one for at, one in written_of(view, places, chapters).items() if at[0] in self.old and one.texts
        }
        self.anew = {at: one for at, one in self.anew.items() if at[1] - at[0] > 1 and at[1] - 1 in self.old}
        self.free = list(joined(free, self.chapters))
        self.sizes = [self.meter.span(view, *g) for g in self.free]
        self.first = self.tokens_of(self.head)

    def _weighed(self, at: int, block: Block) -> Block:
        """A block with how much it stands for, which earlier versions did not keep."""
        if block.stands_for:
            return block
        return with_(block, stands_for=self.meter.nodes(self.view.originals(at, at + 1)).tokens)

    def state_size(self, most: int, by_model: bool) -> int:
        """Tokens for how things stand, in a log of so many; beside a model's words, which tell that too, half of them,
        but for rules."""
        most = min(int(STATE * self.tokens), most // 2)
        if self.stood is not None:
            most = min(most, int(MORE_STATE * self.meter.counter.text(self.stood.told(ALL))) + NEW_STATE)
        return max(most // 2, min(most, self.rules_size)) if by_model else most

    @cached_property
    def rules_size(self) -> int:
        """Tokens for the user's rules, whatever else has no room; up to an eighth, as what they said first has."""
        told = "\n".join(self.stood.binding()) if self.stood else ""
        return min(self.tokens // RULES_SHARE, self.meter.counter.text(told[:RULES_FIRST])) + LEAST_BLOCK // 2

    @cached_property
    def others(self) -> AbstractSet[str]:
        """The facts in what stays."""
        return words_in((n for i, n in enumerate(self.view.nodes) if self.keep[i]))

    @cached_property
    def head(self) -> Stretch:
        """The first exchange, or what was asked in it, if that stays."""
        heads = first_exchange(self.view.nodes), first_asked(self.view.nodes)
        return next((one for one in heads if all(self.keep[slice(*one)])), (0, 0))

    @cached_property
    def known(self) -> str:
        """What the reader is told before the log, word for word, and goes on being told."""
        return "\n".join(n.item.text for n in self.view.nodes[slice(*self.head)])

    @cached_property
    def earlier(self) -> Sequence[LogLine]:
        """The lines of the log so far."""
        return [line for block, _ in self.old.values() for line in lines_of(block)]

    def merged(self, log: Mapping[Stretch, Block]) -> dict[Stretch, Block]:
        """The blocks, with those as one that a model has told anew."""
        log = dict(log)
        for (start, stop), chapter in self.anew.items():
            some = [at for at in log if start <= at[0] and at[1] <= stop]
            first, last = log.get((start, start + 1)), log.get((stop - 1, stop))
            if first and last:
                words = chapter.texts, 0, first.continued, chapter.author, chapter.findings
                of = sum(log.pop(at).stands_for for at in some)
                recall = self.view.short(start, stop)
                log[start, stop] = Block(first.first, last.last, recall, *words, stands_for=of)
        return log

    def tokens_of(self, span: Stretch) -> int:
        """Tokens of what stands there."""
        return self.meter.span(self.view, *span).tokens

    def log_tokens(self, log: Iterable[Block]) -> int:
        """Tokens of blocks without how things stand."""
        return sum(map(self.block_tokens, log))

    def block_tokens(self, block: Block) -> int:
        """Tokens of a block without how things stand; it is tried at several lengths beside others."""
        key = block.title, block.recall, block.text, block.below
        if key not in self._counted:
            self._counted[key] = self.meter.item(block.item()).tokens
        return self._counted[key]

    def helps(self, span: Stretch, item: Item) -> bool:
        """Whether a block is smaller than what it stands for, in every way."""
        now, new = self.meter.span(self.view, *span), self.meter.item(item)
        return new.tokens < now.tokens and new._replace(messages=0).within(now._replace(messages=0))

    def since(self, spans: Sequence[Stretch]) -> Standing:
        """How things stood before the first of these; read anew if something before the last block was not told yet."""
        first = spans[0][0]
        if self.stood is not None and first > max(self.old):
            return self.stood
        told = {at for at in self.old if at < first}
        return self.read(told, max(told) + 1 if told else first)

    def staying(self, start: int, stop: int) -> list[WorkRequest]:
        """The requests that stand in view there, as they are."""
        return [WorkRequest(ends(said), [n.id]) for n in self.view.nodes[start:stop] if (said := typed(n.item))]

    def between(self, spans: Sequence[Stretch]) -> list[list[WorkRequest]]:
        """The requests that stay in view before each of these, after the block or the span before it."""
        told = max((at for at in self.old if at < spans[0][0]), default=None)
        ends = [spans[0][0] if told is None else told + 1, *(stop for _, stop in spans[:-1])]
        return [self.staying(end, start) for end, (start, _) in zip(ends, spans, strict=True)]

    def read(self, places: AbstractSet[int], stop: int) -> Standing:
        """How things stand before `stop`, after what was said at these places and behind what took the place of older
        blocks; what else is there stays in view."""
        stood, made, said = Standing(), self.view.stand_ins(), list[Node]()
        for at, node in enumerate(self.view.nodes[:stop]):
            if at in places or (node.item.kind == "summary" and at not in self.old):
                said += [n for n in self.view.originals(at, at + 1) if n.id not in made]
            elif staying := self.staying(at, at + 1):
                stood.take(requests(said), staying)
                said = []
        stood.take(requests(said))
        return stood

    def is_newest_folded(self, spans: Sequence[Stretch]) -> bool:
        """Whether the newest request is told in the log only."""
        folded = {at for span in spans for at in range(*span)}
        asked = [at for at, n in enumerate(self.view.nodes) if typed(n.item)]
        # What stays in view between blocks is newer than the first of them, and so than what that one tells of.
        told = max((at for at in asked if at in folded), default=min(self.old, default=-1))
        return told > max((at for at in asked if at not in folded), default=-1)


def written_of(view: View, groups: Sequence[Stretch], chapters: Sequence[Chapter]) -> dict[Stretch, Chapter]:
    """Where in a view models' chapters can stand: what each was written of is there, as it was, and may be folded."""
    found: dict[Stretch, Chapter] = {}
    by_first: dict[str, list[Chapter]] = {}
    for chapter in reversed(chapters):  # of several about the same, the newest counts
        by_first.setdefault(chapter.ids[0] if chapter.ids else "", []).append(chapter)
    at = 0
    while by_first and at < len(groups):
        first = next(iter(originals([view.nodes[groups[at][0]].id], view.edits.made)), "")
        ends = ((_stop(view, groups, at, one.ids), one) for one in by_first.get(first, ()))
        if fits := next(((stop, one) for stop, one in ends if stop), None):
            stop, one = fits
            if one.texts:
                found[groups[at][0], groups[stop - 1][1]] = one
            at = stop
        else:
            at += 1
    return found


def _stop(view: View, groups: Sequence[Stretch], at: int, ids: Sequence[str]) -> int:
    """Before which group the ids end that begin with this one; 0 if other things stand there, or less."""
    said, end = list[str](), groups[at][0]
    for n in range(at, len(groups)):
        start, stop = groups[n]
        if start != end:
            return 0
        said += originals([node.id for node in view.nodes[start:stop]], view.edits.made)
        end = stop
        if len(said) >= len(ids):
            return n + 1 if tuple(said) == tuple(ids) else 0
    return 0


def joined(groups: Iterable[Stretch], chapters: Mapping[Stretch, Chapter]) -> Iterator[Stretch]:
    """The groups, with those as one that one chapter tells of: they are folded together or not at all."""
    ends = dict(chapters.keys())
    until = -1
    for start, stop in groups:
        if start in ends:
            until = ends[start]
            yield start, until
        elif start >= until:
            yield start, stop


def runs(stretches: Sequence[Stretch]) -> Iterator[Stretch]:
    """Neighbours as one."""
    begin, end = -1, -1
    for start, stop in stretches:
        if start != end:
            if end > begin:
                yield begin, end
            begin = start
        end = stop
    if end > begin:
        yield begin, end
