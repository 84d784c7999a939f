"""Middle: the first exchange and the newest tokens stay, and all that lies between becomes one summary."""

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_
from itertools import takewhile

from clew.core.cuts import groups
from clew.core.items import Edit, Node
from clew.core.view import Swap, View
from clew.facts.chapters import Chapter, Written
from clew.facts.finding import find
from clew.steps import Summarize
from clew.steps.chapters.asking import Wanted, written_of
from clew.steps.chapters.author import Author
from clew.steps.places import protected, tail_start
from clew.steps.summarize import coming
from clew.steps.worklog.blocks import chosen
from clew.steps.worklog.wording import words
from clew.steps.worklog.writing import BLOCK_SHARE
from clew.text.framing import neutral
from clew.tokens import Counter
from clew.tokens.target import Target

TOOLS = 8  # that are named with how often they were called
HEAD = 40  # tokens of the heading of a block
CUTS = 1, 0.85, 0.7  # of the room: how much a fold leaves a model's words is not known before
TRIES = 3  # with less room, until a summary has its size
SIZES = "sizes"  # what an edit's evidence has of the tail and size it was made for


@dataclass(frozen=True)
class Middle:
    """A step for hosts that say themselves what shall stay; it compacts whatever the size of the whole."""

    tail: int  # tokens at the end that stay; less of them where the window is smaller
    size: int  # tokens of the summary
    heading: str = ""  # the first line of it
    author: Author | None = field(default=None, repr=False)
    on_written: Callable[[Written], None] | None = field(
        default=None, repr=False
    )  # hears what came of asking its model

    async def __call__(self, view: View, target: Target) -> View:
        held = with_(view, pinned=view.pinned | self._kept(view, target))
        aimed = self._aimed(held, target, self.size)
        asked = coming(held, aimed, most=self.size)
        if not asked:
            return view
        heading = self.heading + (
            counted([n for one in asked for n in one.nodes], self.size // 2) if self.heading else ""
        )
        edits = await self._folded(held, target, heading)
        if not any("coverage" in edit.evidence for edit in edits):
            return view  # nothing new is told
        if self.author:
            written = await written_of(self.author, Wanted(held, tuple(asked)))
            if self.on_written:
                self.on_written(written)
            if written.chapters:
                heading = self.heading
                edits = await self._folded(held, target, heading, [as_one(written.chapters)])
        return view.replace_all(self._swaps(view, edits, heading, target.meter.counter), by=self)

    async def _folded(
        self, held: View, target: Target, heading: str, chapters: Sequence[Chapter] = ()
    ) -> tuple[Edit, ...]:
        """The edits that leave one summary, of the size that was asked for if it can be had."""
        count = target.meter.counter.text
        room = most = max(1, self.size - count(heading))
        for _ in range(TRIES):
            step = Summarize(room, chapters=[cut_to(one, room, count) for one in chapters], merges=True)
            edits = (await step(held, self._aimed(held, target, room))).edits[len(held.edits) :]
            over = sum(count(node.item.text) for edit in _direct(edits) for node in edit.new) - most
            if over <= 0 or room <= over:
                break
            room -= over
        return edits

    def _kept(self, view: View, target: Target) -> frozenset[str]:
        """The first exchange, the newest turn, what nobody has read yet, and as much of the end as has room."""
        head = _first_exchange(view)
        used = target.meter.frame(view.frame).plus(target.meter.nodes(view.nodes[:head])).tokens + self.size
        room = max(0, min(self.tail, target.limit.tokens - used))
        # Steps give the tail a quarter of their goal: here all of it is meant.
        whole = target.under(with_(target.budget, tail=room))
        tail = tail_start(view, whole.to(target.frame + 4 * room))
        keep = protected(view, target.under(with_(target.budget, tail=0)).to(target.limit.tokens))
        return frozenset(n.id for i, n in enumerate(view.nodes) if keep[i] or i < head or i >= tail)

    def _aimed(self, held: View, target: Target, size: int) -> Target:
        """The target that leaves the summary its room, and never more than makes it worth while."""
        whole = sum(target.meter.node(n).tokens for n in held.nodes if n.id not in held.pinned)
        goal = target.size(held).tokens - whole + min(size, int(BLOCK_SHARE * whole))
        return target.under(with_(target.budget, tail=0)).to(goal)

    def _swaps(self, view: View, edits: tuple[Edit, ...], first: str, counter: Counter) -> Iterator[Swap]:
        places = {n.id: i for i, n in enumerate(view.nodes)}
        direct = sorted(_direct(edits), key=lambda edit: places[edit.old[0]])
        left = max(1, self.size - counter.text(first)) // max(1, sum(len(edit.new) for edit in direct))
        for n, edit in enumerate(direct):
            heading = "" if n else first
            texts = [fewer_lines(new.item.text, left, counter.text) for new in edit.new]
            told = [with_(new.item, text=f"{heading}{text}") for new, text in zip(edit.new, texts, strict=True)]
            evidence = {**edit.evidence, SIZES: [self.tail, self.size]}
            yield Swap(places[edit.old[0]], places[edit.old[-1]] + 1, told, evidence, edit.spent)

    def is_other(self, view: View) -> bool:
        """Whether a view has summaries that were made for another tail or size."""
        made = (edit.evidence.get(SIZES) for edit in view.edits)
        return any(sizes is not None and tuple(sizes) != (self.tail, self.size) for sizes in made)


def as_one(chapters: Sequence[Chapter]) -> Chapter:
    """What one model wrote in several answers, for it reads no more at once than its window holds."""
    longest = max(len(one.texts) for one in chapters)
    texts = ["\n".join(one.texts[min(n, len(one.texts) - 1)] for one in chapters) for n in range(longest)]
    found = [line for one in chapters for finding in one.findings[:1] for line in finding.splitlines()]
    ids = tuple(id for one in chapters for id in one.ids)
    spent = sum(one.spent for one in chapters)
    return with_(chapters[0], ids=ids, texts=tuple(texts), findings=("\n".join(found),), spent=spent)


def cut_to(chapter: Chapter, room: int, count: Callable[[str], int]) -> Chapter:
    """A chapter with lengths for this very room, where its longest has none: the next may have a third of the words."""
    full, below = chapter.texts[0], "".join(chapter.findings[:1])
    left = room - HEAD - count(below)
    if left >= count(full):
        return chapter
    cuts = [text for share in CUTS if share * left > 0 and (text := chosen(full, share * left / count(full)))]
    fewest = chapter.texts[-1]
    return with_(chapter, texts=(full, *cuts, fewest), findings=(*[below] * (len(cuts) + 1), *chapter.findings[-1:]))


def fewer_lines(text: str, most: int, count: Callable[[str], int]) -> str:
    """A summary without its last lines, where it is longer than it may be; how things stand goes after all others."""
    log, _, stands = text.partition("\n\n")
    lines = log.split("\n")
    while count(text) > most and len(lines) > 2:
        lines.pop()
        text = "\n\n".join(filter(None, ("\n".join(lines), stands)))
    if count(text) > most and stands:
        return fewer_lines("\n".join((*lines, *stands.split("\n"))), most, count)
    if (over := count(text) - most) > 0 and len(lines) > 1:
        share = 1 - over / max(1, count(lines[-1]))
        lines[-1] = words(lines[-1], max(0, int(share * len(lines[-1]))))
        text = "\n".join(lines)
    return text


def counted(nodes: Sequence[Node], most: int) -> str:
    """How many messages there are, the tools that were called, and the files that were named there, in one line of at
    most so many characters."""
    calls = [node.item for node in nodes if node.item.kind == "call"]
    tools = ", ".join(f"{name[:60]} ({n})" for name, n in Tally(call.name for call in calls).most_common(TOOLS))
    named = (fact for call in calls for fact in find(call.text) if fact.kind in ("path", "file"))
    files = [*dict.fromkeys(fact.text for fact in named)]
    files = [name for name in files if not any(other.endswith(f"/{name}") for other in files)]
    line = f"{len(nodes)} messages" + (f"; tools called: {tools}" if tools else "")
    shown = list(takewhile(lambda n: len(line) + sum(map(len, files[: n + 1])) + 2 * n < most, range(len(files))))
    more = f" and {len(files) - len(shown)} more" if len(shown) < len(files) else ""
    told = f"; files: {', '.join(files[: len(shown)])}{more}" if shown else f"; {len(files)} files" if files else ""
    return neutral(" ".join(f"{line}{told}".split())) + "\n"


def _direct(edits: Sequence[Edit]) -> list[Edit]:
    """The same edits without those in between: each stands for what was there before the first of them."""
    made = dict[str, Edit]()
    found = dict[int, Edit]()
    for edit in edits:
        inner = list({id(made[old]): made[old] for old in edit.old if old in made}.values())
        firsts = {one.new[0].id: one for one in inner}
        old = [id for was in edit.old for id in (firsts[was].old if was in firsts else () if was in made else (was,))]
        for one in inner:
            del found[id(one)]
        whole = with_(edit, old=tuple(old), spent=edit.spent + sum(one.spent for one in inner))
        found[id(whole)] = whole
        made |= {node.id: whole for node in whole.new}
    return list(found.values())


def _first_exchange(view: View) -> int:
    """Where what the user said first and the first thing that was done about it end."""
    asked = len(list(takewhile(_is_typed, view.nodes)))
    return next((stop for start, stop in groups(view.nodes) if start == asked), asked)


def _is_typed(node: Node) -> bool:
    return node.item.role == "user" and node.item.kind != "summary"
