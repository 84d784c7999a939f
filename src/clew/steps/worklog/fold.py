"""One compaction: which of the oldest groups become blocks of the log, and which blocks get fewer words."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from clew.clients.voices import typed
from clew.core.bounds import ITEMS_READ
from clew.core.cuts import Stretch
from clew.core.items import Item, Node
from clew.core.limits import Size
from clew.core.view import Swap
from clew.facts.sheets import voice_of
from clew.steps.shares import log_share, shortened
from clew.steps.worklog.blocks import Block, added, evenly, shorter
from clew.steps.worklog.history import LEAST_BLOCK, History, runs
from clew.steps.worklog.levels import Blocks, changed, lowered, rows
from clew.steps.worklog.wording import indented
from clew.steps.worklog.writing import BlockWriter

SMALL = 1_500  # tokens of originals that a block has before it ends at the next request
WORTH = 300  # tokens that a block has, more or less: with less room there are fewer and longer ones
RATIO = 0.15  # of what is folded: so much its blocks take, more or less
LEAST_RATIO = 0.05  # where the room is small and older blocks would lose words for it
NEWEST = 2.0  # times the share of what it stands for: the newest block in a narrow window, where all older ones share
LEAST_CHAPTER = 200  # tokens that a model has for one
MARGIN = 0.95  # of the room is asked for: a chapter has a heading, too
SLACK = 0.04  # of the history that may be left empty
ROUNDS = 6  # of finding how much to fold
DEEPER = 1.1  # times the size at which a fold begins: by so much it will have been passed when a model has written
GROWTH = 0.1  # of the room: by so much a history grows until a model has written of it
SAYS = {"user": "The person said", "said": "The assistant said", "result": "A tool returned"}
RETRIES = 3  # with less room for words, where all is folded and does not fit


class ChapterStretch(NamedTuple):
    """What a model shall write of, and in how many tokens."""

    nodes: tuple[Node, ...]
    tokens: int  # of what is to be read
    size: int
    blocks: tuple[str, ...] = ()  # blocks of the log that stand for them, to be told anew as one
    shown: tuple[Node, ...] = ()  # the same as they stand in view
    bare: tuple[str, ...] = ()  # the same without what code adds to a model's words


class LogFold:
    """Finds what to replace by what; `most` are the tokens of the log, `whole`: neighbours are one block."""

    def __init__(self, history: History, most: int, whole: bool = False) -> None:
        self.history, self.view, self.meter, self.whole = history, history.view, history.meter, whole
        self.free, self.sizes, self.old = history.free, history.sizes, history.old
        self.log: Blocks = history.log
        self.size, self.goal, self.tokens = history.size, history.goal, history.tokens
        self.most = min(most, log_share(history.target, history.first))
        self.stands = history.state_size(self.most, by_model=bool(history.chapters))
        self.over = 0  # tokens that a fold of all had too many
        self.writing = BlockWriter(history)

    def swaps(self) -> list[Swap]:
        """What to replace by what: as little as does, so that what room there is holds originals."""
        best: list[Swap] = []
        low, high = 0, len(self.free)
        self.log = self._shortened(self._extent())
        tried = self._extent()
        for _ in range(ROUNDS):
            swaps = self._plan(tried)
            after = self._after(swaps)
            if after.within(self.goal):
                best, high = swaps, tried
                left = self.goal.tokens - after.tokens
                if left <= SLACK * self.tokens or low >= high - 1:
                    break
                tried = max(low + 1, self._less(tried, left))
            else:
                low = tried
                if low >= high:
                    break
                tried = min(high, max(low + 1, self._more(tried, after)))
            if tried in (low, high) and (best or tried == low):
                break
        found = self._filled(best, high) or self._least()
        return [self.writing.with_evidence(swap, ITEMS_READ // len(found)) for swap in found]

    def _filled(self, swaps: list[Swap], extent: int) -> list[Swap]:
        """The same with more words, where the next of what was said has no room, but words have."""
        left = self.goal.tokens - self._after(swaps).tokens if swaps else 0
        if left <= SLACK * self.tokens:
            return swaps
        self.most += left
        self.log = self.history.log
        self.log = self._shortened(extent)
        more = self._plan(extent)
        return more if self._after(more).within(self.goal) else swaps

    def coming(self, most: int, stays: int | None = None) -> list[ChapterStretch]:
        """The stretches that would be folded, by the first guess, and of which no chapter was written; before them the
        blocks that would be told anew. Each with the tokens for one, at most so many; `stays` are those of all that
        stands beside the log, where that is known."""
        target, now = self.history.target, self.size.tokens
        self.stands = self.history.state_size(self.most, by_model=True)
        soon = max(now, int(DEEPER * target.threshold)) + int(GROWTH * target.room)
        self.size = self.size._replace(tokens=soon)
        self.log = self._shortened(self._extent())
        extent = self._extent()
        gone = sum(size.tokens for size in self.sizes[:extent])
        # What is said until then is folded or waits: it takes no room from the chapters.
        rest = now - gone - sum(self.meter.node(self.view.nodes[at]).tokens for at in self.old)
        if stays is not None:  # large results will be previews, and what is free the log has
            rest, self.most = min(rest, stays), max(self.most, self.goal.tokens - stays)
        room, alone = (min(most, max(LEAST_BLOCK, self._room(log, rest))) for log in (self.log, {}))
        found = list[ChapterStretch]()
        for run in runs([group for group in self.free[:extent] if group not in self.history.chapters]):
            tokens = self.history.tokens_of(run)
            share = MARGIN * tokens / max(1, gone)
            least = min(int(LEAST_RATIO * tokens), int(share * alone))  # older blocks can lose words for so many
            size = max(LEAST_CHAPTER, least, min(int(RATIO * tokens), int(share * room)))
            found.append(ChapterStretch(tuple(self.view.originals(*run)), tokens, size))
        new = sum(one.size for one in found)
        return [*self._to_tell_anew(self._old_room(new, self._at_length(self.history.log))), *found]

    def _at_length(self, log: Blocks) -> int:
        """Tokens of blocks, each at its greatest length."""
        return self.history.log_tokens(block.longest for block in log.values())

    def _to_tell_anew(self, room: int) -> Iterator[ChapterStretch]:
        """The blocks that lose words by this fold: a model makes one of them better than code can choose of its lines.

        It reads what models wrote of them at first: originals of so many would be longer than its window. Where the
        room is large all their lines stand in fewer words, and only those are told anew that would become one.
        """
        history, small = self.history, self.history.target.budget.is_small
        spans = [at for at in self.log if at[1] - at[0] > 1]
        if small and self._at_length(history.log) > room:
            spans = [(row[0][0], row[-1][1]) for row in rows(history, history.log, spoken=True) if len(row) > 1]
        for start, stop in spans:
            some = {at: block.longest for at, block in history.log.items() if start <= at[0] < stop}
            if (start, stop) in history.anew or not any(block.author for block in some.values()):
                continue
            some = shorter(self.history.block_tokens, some, history.target.room // 2)
            shown = tuple(self.view.nodes[start:stop])
            told, bare = (
                tuple(self._said(node, some.get((at, at + 1)), adds) for at, node in enumerate(shown, start))
                for adds in (True, False)
            )
            tokens = self.meter.counter.text("\n".join(told))
            now = self.history.log_tokens(self.log[at] for at in self.log if start <= at[0] < stop)
            size = max(LEAST_CHAPTER, min(max(now, int(MARGIN * room)), int(MARGIN * tokens)))
            nodes = tuple(self.view.originals(start, stop))
            yield ChapterStretch(nodes, tokens, size, told, shown, bare)

    @staticmethod
    def _said(node: Node, block: Block | None, adds: bool) -> str:
        """What stands there, as a model reads it, with what code adds to a model's words or without."""
        if block is None:
            return f"{SAYS[voice_of(node.item)]}:\n  {indented(node.item.text)}"  # only who speaks begins at the margin
        return "\n".join((f"{block.title}:", block.text, *(added(block.below.splitlines()) if adds else ())))

    def _wanted(self, extent: int, ratio: float = RATIO) -> int:
        """Tokens for blocks of so many groups."""
        told = {at: chapter for at, chapter in self.history.chapters.items() if at in self.free[:extent]}
        others = sum(size.tokens for at, size in zip(self.free, self.sizes[:extent], strict=False) if at not in told)
        want = int(ratio * others) + sum(self.meter.counter.text(one.texts[0]) for one in told.values())
        if self.log and self.history.target.budget.is_narrow:
            new = sum(size.tokens for size in self.sizes[:extent])
            every = new + sum(block.stands_for for block in self.history.log.values())
            want = min(want, int(max(LEAST_RATIO, NEWEST * (self.most - self.stands) / max(1, every)) * new))
        return want

    def _shortened(self, extent: int, lacking: int = 0) -> Blocks:
        """The blocks so far, in fewer words if those of so many groups more have no room beside them."""
        is_small = self.history.target.budget.is_small
        log = self.history.merged(self.log) if is_small else self.log
        want, had = self._wanted(extent), self.history.log_tokens(log.values())
        if not log or (not lacking and had + want + self.stands <= self.most):
            return log
        most = self._old_room(want, had - lacking)
        return lowered(self.history, self.history.merged(log), most, most if is_small else self.most)

    def _old_room(self, new: int, had: int) -> int:
        """Tokens for the blocks so far, which have so many, beside so many new ones."""
        return shortened(self.history.target, min(self.most - self.stands - new, had), new)

    def _raised(self, log: Blocks, left: int) -> Blocks:
        """The blocks with more words again, where so many tokens are left over: a large result for which they lost
        words may be gone."""
        return evenly(self.history.block_tokens, log, self.history.log_tokens(log.values()) + left)

    def _extent(self) -> int:
        """How many of the oldest groups to fold, by a first guess."""
        told = self.history.log_tokens(self.log.values()) + self.stands
        rest = self.size.less(self.meter.nodes(self.view.nodes[at] for at in self.old)).plus(Size(told))
        gone, most = list(accumulate(self.sizes, Size.plus)), max(0, self.most - told)

        def is_enough(n: int) -> bool:
            new = min(most, int(RATIO * gone[n].tokens))
            return rest.less(gone[n]).plus(Size(new, 0, 0, 1)).within(self.goal)

        return min(len(gone), 1 + bisect_left(range(len(gone)), True, key=is_enough))  # the more go, the less is left

    def _less(self, tried: int, left: int) -> int:
        """How many groups to fold if so many tokens more may stay."""
        while tried > 1 and left > (size := self.sizes[tried - 1].tokens):
            left -= int((1 - RATIO) * size)
            tried -= 1
        return tried

    def _more(self, tried: int, after: Size) -> int:
        lacking = after.tokens - self.goal.tokens
        while tried < len(self.sizes) and lacking > 0:
            lacking -= int((1 - RATIO) * self.sizes[tried].tokens)
            tried += 1
        return tried

    def _after(self, swaps: Sequence[Swap]) -> Size:
        size = self.size
        for swap in swaps:
            size = size.less(self.meter.span(self.view, swap.start, swap.stop))
            size = size.plus(self.meter.items(i for i in swap.items if isinstance(i, Item)))
        return size

    def _plan(self, extent: int) -> list[Swap]:
        """The swaps where so many of the oldest groups become blocks."""
        if not (spans := self._spans(extent, self.tokens)):
            return []
        log, is_small = self.log, bool(self.log) and self.history.target.budget.is_small
        gone = sum(self.history.tokens_of(span) for span in spans)  # what is too little for a block stays
        rest = self.size.tokens - gone - sum(self.meter.node(self.view.nodes[at]).tokens for at in self.old) + self.over
        want, room = self._wanted(extent), self._room(log, rest)
        if log and extent == len(self.free) and room < want:
            want = max(room, self._wanted(extent, LEAST_RATIO)) if is_small else want
            log = self._shortened(extent, want - room)
            room = self._room(log, rest)
        spans = self._spans(extent, max(LEAST_BLOCK, room))
        free = self.goal.tokens - rest - self.history.log_tokens(log.values())
        if is_small:  # the old ones have what new ones leave, up to their full length
            room = max(min(room, want), room - self._at_length(log) + self.history.log_tokens(log.values()))
        full = extent < len(self.free)
        made = self.writing.written(spans, max(LEAST_BLOCK // 2, room), self.stands, free, full=full)
        return self._with_left(log, made) if made else []

    def _with_left(self, log: Blocks, made: Mapping[Stretch, Swap]) -> list[Swap]:
        """The swaps of old and new blocks; in a narrow window the old ones have what is left over."""
        swaps = [*changed(self.history, log, made, self.stands, self.writing.anew), *made.values()]
        left = self.goal.tokens - self._after(swaps).tokens
        if log and left > 0 and self.history.target.budget.is_narrow:
            log = self._raised(log, left)
            swaps = [*changed(self.history, log, made, self.stands, self.writing.anew), *made.values()]
        return swaps

    def _room(self, log: Blocks, rest: int) -> int:
        """Tokens for new blocks beside these and all that is neither."""
        bare = self.history.log_tokens(log.values())
        return min(self.most - bare, self.goal.tokens - rest - bare) - self.stands

    def _least(self) -> list[Swap]:
        """Where it does not fit: all that can be is folded; if it is words that are too many, into the fewest."""
        for _ in range(RETRIES):
            swaps = self._plan(len(self.free))
            over = self._after(swaps).tokens - self.goal.tokens
            if over <= 0:
                return swaps
            self.over += over  # a few tokens too many are no reason to tell next to nothing
        spans = [run for run in runs(self.free) if self.history.tokens_of(run) >= LEAST_BLOCK]
        stands = min(self.stands, self.history.rules_size)
        made = self.writing.written(spans, LEAST_BLOCK // 2, stands, 0, brief=True) if spans else {}
        log = lowered(self.history, self.log, 0, self.most, -1 if made else max(self.old, default=-1))
        return self._with_left(log, made)

    def _spans(self, extent: int, room: int) -> list[Stretch]:
        """So many groups as blocks: each ends before a request once it is long enough, or inside a long one."""
        sizes = [size.tokens for size in self.sizes[:extent]]
        small = max(SMALL, sum(sizes) * WORTH // room)
        found, by_models = list[tuple[int, int, int]](), self.history.chapters  # from, to, tokens
        for (start, stop), size in zip(self.free, sizes, strict=False):
            node = self.view.nodes[start].item
            begin, end, tokens = found[-1] if found else (0, 0, 0)
            says = node.role == "assistant" and node.kind == "text"
            full = tokens >= small and (tokens >= 8 * small or (says and tokens >= 4 * small) or typed(node))
            full = (full and not self.whole) or (start, stop) in by_models or (begin, end) in by_models
            if found and start == end and not full:
                found[-1] = begin, stop, tokens + size
            else:
                found.append((start, stop, size))
        alone = {found[-1][:2], found[-2][:2]} & by_models.keys() if len(found) > 1 else by_models
        least = max(small, 2 * self.stands)  # the last says how things stand, too
        if len(found) > 1 and not alone and found[-1][2] < least and found[-2][1] == found[-1][0]:
            begin, _, tokens = found[-2]
            found[-2:] = [(begin, found[-1][1], tokens + found[-1][2])]
        return [(begin, end) for begin, end, tokens in found if tokens >= LEAST_BLOCK]
