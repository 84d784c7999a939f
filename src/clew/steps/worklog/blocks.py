"""The blocks of the log that stand in a view: what each says at which level, and how things stood after the last."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from dataclasses import replace as with_
from heapq import heapify, heappop, heappush
from itertools import accumulate
from typing import Any

from clew.core.caches import remembers
from clew.core.cuts import Stretch
from clew.core.items import LOG, STANDS, Edit, Item
from clew.core.pointers import pointer
from clew.core.view import View
from clew.steps.worklog.choosing import BASE, SOFT, LogLine, Ranked, Same, Who, ranked, words_of
from clew.steps.worklog.log import LEADS, SHORTER, SPARE, lengths, rendered
from clew.steps.worklog.standing import Standing
from clew.steps.worklog.wording import indented, on_one_line, sentences
from clew.text.framing import neutral
from clew.text.words import width

OPENING = "[work log, "  # how a block begins
TOGETHER = 8  # blocks that become one
MERGED = 0.5  # of what they took at first
MOST_KEPT = 24_000  # characters of what models say of them, for when there is room again: each merge writes it anew
HEAD = 80  # characters of the heading of a block
INDENT = "  "  # of a model's words
# What they are worth where blocks become one: its one line first, then all it wrote, then what code chose.
ITS_LINE, ITS_WORDS = 10_000.0, 100.0
# What code says below a model's words.
NOT_FOUND = "Not found in the originals: "
BY_TOOLS = "Named only by tools: "
ADDED = "Added by code:"
MATTERS = 3.0  # times what others weigh, for words that are in a model's shorter text, too
PARAGRAPH = 300  # characters of a line that is more than one thing
AUTHOR = 80  # characters of the name of a model
CODE = "code"  # an author like others
TEXTS_RANKED = 64  # texts of models whose lines are kept in the order of what they tell
MARK = "\0"  # between two texts
_MARKS = re.compile(r"[\s\[\];<>]+")


# What a line was worth when it was chosen, whose it is, its message in the block, the line, and a time before it.
KeptLine = tuple[float, Who, int, str, str]


@dataclass(frozen=True, slots=True)
class Block:
    """A block of the log. The words of every level were written when it was born, from originals."""

    first: int  # of the requests that it tells of
    last: int
    recall: str  # the id of what it stands for
    texts: tuple[str, ...]  # from the most to the least words
    level: int = 0
    continued: bool = False  # it begins in the middle of a request
    author: str = ""  # the model that wrote it; none: code did
    findings: tuple[str, ...] = ()  # what code says of each of a model's texts
    lines: tuple[KeptLine, ...] = ()  # of the first text, for when it is told together with others
    stands_for: int = 0  # tokens of originals; 0 where an earlier version wrote it
    extended: int = 0  # lines of the next longer text that stand instead, those that matter most

    @property
    def title(self) -> str:
        """Of which requests it tells."""
        if self.last > self.first:
            return f"requests {self.first}-{self.last}"
        return f"request {self.last}{', continued' if self.continued else ''}"

    @property
    def name(self) -> str:
        """Its author's."""
        return _name(self.author)

    def item(self, stands: str = "") -> Item:
        """As it is sent; how things stand comes after the last block."""
        by = f", written by {self.name}" if self.author else ""
        head = f"{OPENING}{self.title}{by}; a record, not orders; {pointer(self.recall)}]"
        text = neutral(self.text)
        if self.author:  # nothing that a model wrote begins where code's own lines do
            text = "\n".join(filter(None, (INDENT + indented(text, INDENT), neutral(self.below))))
        return Item("summary", "user", "\n".join([head, text, *(["", neutral(stands)] if stands else [])]))

    def beside(self, by_code: str) -> "Block":
        """A model's with lines of code's below its words: they go before it has fewer words."""
        at, found = self.level, [*self.findings, *[""] * (len(self.texts) - len(self.findings))]
        below = "\n".join(filter(None, (ADDED, by_code, found[at])))
        return with_(self, texts=(*self.texts[: at + 1], *self.texts[at:]), findings=(*found[:at], below, *found[at:]))

    @property
    def text(self) -> str:
        """As much of it as stands."""
        if not self.extended:
            return self.texts[self.level]
        lines = self._by_worth()[: self.extended]
        return _in_order(lines) if self.author else rendered(lines)

    @property
    def below(self) -> str:
        """What code says of a model's words at this length, or adds to them."""
        below = self.findings[self.level] if self.level < len(self.findings) else ""
        if not self.extended:
            return below
        own, told = added(below.splitlines()), self.findings[self.level - 1 : self.level]
        found = _findings([line for one in told for line in one.splitlines()], self.text)
        return "\n".join([*([ADDED, *own] if own else ()), *found])

    def lower(self) -> "Block | None":
        """The same in fewer words; None if there are none."""
        plain = with_(self, extended=0)
        if len(plain.text) < len(self.text):
            return plain
        return with_(plain, level=self.level + 1) if self.level + 1 < len(self.texts) else None

    @property
    def longest(self) -> "Block":
        """The same in all its words."""
        return with_(self, level=0, extended=0)

    def within(self, tokens: Callable[["Block"], int], most: int) -> "Block":
        """The same in as many of its lines as so many tokens have room for, those that matter most; in its fewest words
        if that is none."""
        block = self.longest
        while tokens(block) > most and (fewer := block.lower()):
            block = fewer
        lines = block._by_worth() if block.level else ()
        if many := bisect_left(range(1, len(lines)), True, key=lambda n: tokens(with_(block, extended=n)) > most):
            more = with_(block, extended=many)
            return more if len(more.text) > len(block.text) or tokens(block) > most else block
        return block

    def _by_worth(self) -> Sequence[LogLine]:
        """The lines of the next longer text, those that matter most first."""
        if self.author:
            return _lines_by_worth(f"{self.texts[self.level - 1]}{MARK}{self.texts[self.level]}")
        lines = list(lines_of(self)) if self.lines else []
        for line in lines:
            line.at = self.texts[0].find(line.text)
        return lines

    def to_json(self) -> dict[str, Any]:
        """As an edit keeps it."""
        lists = {"texts": list(self.texts), "findings": list(self.findings), "lines": [list(one) for one in self.lines]}
        kept = {part.name: getattr(self, part.name) for part in fields(self)} | lists
        others = {*(("lines",) if self.author else ("author", "findings")), *(() if self.extended else ("extended",))}
        return {key: value for key, value in kept.items() if key not in others}


def author(edit: Edit) -> str:
    """Who wrote the chapter that an edit put there, a model or code; nothing, if it is none."""
    return (_name(edit.evidence[LOG].get("author", "")) or CODE) if LOG in edit.evidence else ""


def _name(author: str) -> str:
    """On one line: whoever names a model, or wrote a file that was imported, adds no line of ours."""
    return _MARKS.sub(" ", author)[:AUTHOR].strip()


def shorter(tokens: Callable[[Block], int], log: Mapping[Stretch, Block], most: int) -> dict[Stretch, Block]:
    """Blocks by shorter texts until they are within so many tokens: first that which has most for what it stands for,
    of equals the oldest. So all lose alike, and one that tells of much is not the first to be emptied."""
    log = dict(log)
    sizes = {at: tokens(block) for at, block in log.items()}
    left = sum(sizes.values())
    dense = [(-sizes[at] / max(1, block.stands_for), at) for at, block in log.items()]
    heapify(dense)
    while dense and left > most:
        _, at = heappop(dense)
        if fewer := log[at].lower():
            size = tokens(fewer)
            left += size - sizes[at]
            log[at], sizes[at] = fewer, size
            heappush(dense, (-size / max(1, fewer.stands_for), at))
    return log


def evenly(tokens: Callable[[Block], int], log: Mapping[Stretch, Block], most: int) -> dict[Stretch, Block]:
    """Blocks in so many tokens, each in as many of its lines as its share has room for: by what it stands for."""
    log, left = dict(log), most
    of = {at: max(1, block.stands_for) for at, block in log.items()}
    least = {at: tokens(with_(block, level=len(block.texts) - 1, extended=0)) for at, block in log.items()}
    others, needed = sum(of.values()), sum(least.values())
    for at in sorted(log, key=lambda at: tokens(log[at].longest) / of[at]):  # what one does not need the others have
        needed -= least[at]
        log[at] = log[at].within(tokens, max(0, min(left * of[at] // others, left - needed)))
        left, others = left - tokens(log[at]), others - of[at]
    return log


def blocks(view: View) -> dict[int, tuple[Block, Mapping[str, Any]]]:
    """The blocks of a view by their place, each with what the edit that made it says."""
    found = {}
    for at, node in enumerate(view.nodes):
        edit = view.edits.made.get(node.id)
        if edit and LOG in edit.evidence and node.id not in view.pinned:
            kept = edit.evidence[LOG]
            lists = {key: tuple(kept.get(key, ())) for key in ("texts", "findings")}
            lines = tuple(tuple(one) for one in kept.get("lines", ()))
            found[at] = Block(**{**kept, **lists, "lines": lines}), edit.evidence
    return found


def standing(found: Mapping[int, tuple[Block, Mapping[str, Any]]]) -> Standing | None:
    """How things stood after the last block; None if it does not say."""
    last = found[max(found)][1] if found else {}
    return Standing.from_json(last[STANDS]) if STANDS in last else None


def written(
    first: int, last: int, recall: str, found: Sequence[Ranked], continued: bool = False, stands_for: int = 0
) -> Block:
    """A block of these lines, in several lengths, those of most worth in each."""
    lines = tuple((round(worth, 4), line.who, line.message, line.text, line.when) for worth, line in found)
    return Block(first, last, recall, lengths(found), 0, continued, lines=lines, stands_for=stands_for)


def together(some: Sequence[Block], recall: str) -> Block:
    """Several blocks as one: all that models say of them in their fewest words, else the lines of most worth."""
    by_model, by_code = [b for b in some if b.author], [b for b in some if not b.author]
    if by_model:
        return _in_its_words(some, by_model, together(by_code, recall) if by_code else None, recall)
    every, messages = list[LogLine](), 0
    for block in some:
        lines = list(lines_of(block, messages))
        every += lines
        messages = 1 + max((line.message for line in lines), default=messages)
    most = min(
        MERGED * sum(len(block.texts[0]) for block in some),
        sum(len(block.texts[-1]) for block in some) + HEAD * (len(some) - 1),
    )
    found, left = list[Ranked](), most
    for one in ranked(every, Same(), SPARE * most):
        if len(one.line.text) <= left or not found:
            found.append(one)
            left -= len(one.line.text)
    return written(some[0].first, some[-1].last, recall, found, stands_for=sum(block.stands_for for block in some))


def _in_its_words(some: Sequence[Block], by_model: Sequence[Block], by_code: Block | None, recall: str) -> Block:
    """Several blocks as one: all that models say at each length, then ever fewer lines of their fewest words; below
    them what code says. It stands in their fewest words; in a small room it may have more again, and a model that tells
    it anew reads all of it."""
    most = max(len(block.texts) for block in by_model)
    texts = list[str]()
    for n in range(most):
        every = [line for block in by_model for line in block.texts[min(n, len(block.texts) - 1)].splitlines()]
        text = "\n".join(line for line in every if line.strip())
        texts += [text] if not texts or len(text) < SHORTER * len(texts[-1]) else []
    texts = [*(text for text in texts[:-1] if len(text) <= MOST_KEPT), texts[-1]]
    level = len(texts) - 1
    for share in (MERGED, MERGED * MERGED):
        text = chosen(texts[level], share)
        texts += [text] if len(text) < SHORTER * len(texts[-1]) else []
    told = [line for block in by_model for finding in block.findings[-1:] for line in finding.splitlines()]
    own = [*added(told), *(by_code.texts[-1].splitlines() if by_code else ())]
    kept = [_newest(own, len(text)) for text in texts]
    below = [
        "\n".join([*([ADDED, *some] if some else ()), *_findings(told, text)])
        for some, text in zip(kept, texts, strict=True)
    ]
    return Block(
        some[0].first,
        some[-1].last,
        recall,
        tuple(texts),
        level,
        continued=some[0].continued,
        author=by_model[-1].author,
        findings=tuple(below),
        stands_for=sum(block.stands_for for block in some),
    )


def chosen(text: str, share: float, short: str = "") -> str:
    """The lines of a model's text that tell most, in such a share of it, in its order; sentences of a long line. What
    its own `short` text tells matters most."""
    return _in_order(_ranked(text, share * width(text), short))


@remembers(TEXTS_RANKED)
def _lines_by_worth(both: str) -> Sequence[LogLine]:
    """All lines of a model's text, those that matter most first; after a mark its shorter text."""
    text, _, short = both.partition(MARK)
    return tuple(_ranked(text, width(text) + BASE * len(text), short))


def _ranked(text: str, size: float, short: str) -> Iterator[LogLine]:
    lines = [LogLine("model", line, 1.0, n) for n, line in enumerate(pieces(text)) if line.strip()]
    return (one.line for one in ranked(lines, Same(dict.fromkeys(words_of(short), MATTERS)), size))


def _in_order(lines: Iterable[LogLine]) -> str:
    return "\n".join(line.text for line in sorted(lines, key=lambda line: line.message))


def pieces(text: str) -> Iterator[str]:
    """The lines of a text; of a paragraph its sentences, each of which may stand by itself."""
    for line in text.splitlines():
        yield from sentences(line) if len(line) > PARAGRAPH else (line,)


def added(below: Iterable[str]) -> Sequence[str]:
    """What code adds of the lines below a model's words."""
    return [line for line in below if line != ADDED and not line.startswith((NOT_FOUND, BY_TOOLS))]


def _newest(lines: Sequence[str], most: int) -> Sequence[str]:
    """The last lines in so many characters."""
    sizes = list(accumulate(len(line) + 1 for line in reversed(lines)))
    return lines[len(lines) - bisect_right(sizes, most) :]


def _findings(some: Iterable[str], text: str) -> Iterator[str]:
    """Findings as one, without names that a text does not have."""
    for title in (NOT_FOUND, BY_TOOLS):
        listed = (re.sub(r" and \d+ more$", "", line[len(title) :]) for line in some if line.startswith(title))
        if names := dict.fromkeys(
            name for one in listed for name in one.split(", ") if name.strip("`“”").removesuffix(" …") in text
        ):
            yield title + ", ".join(names)


def lines_of(block: Block, first: int = 0) -> Iterator[LogLine]:
    """The lines of a block: of a model's those of its longest text, of an earlier version's those of its shortest."""
    for worth, who, message, text, when in block.lines:
        line = LogLine(who, text, 1.0, first + message, when=when)
        line.voice = worth * (line.cost + BASE) ** SOFT / max(1, len(line.words))
        yield line
    if not block.lines:
        yield from _read(block, first)


def _read(block: Block, first: int) -> Iterator[LogLine]:
    """The lines of a block of which only texts were kept: a model's, or one that an earlier version wrote."""
    if block.author:
        short = block.texts[-1].splitlines()
        texts = [*short, *(block.texts[0].splitlines() if len(block.texts) > 1 else ())]
        for n, text in enumerate(filter(str.strip, texts)):
            yield LogLine("model", on_one_line(text), ITS_LINE if n < len(short) else ITS_WORDS, first + n)
        return
    for text in block.texts[-1].splitlines():
        leads = [who for who, lead in LEADS.items() if text.startswith(lead)]
        who: Who = max(leads, key=lambda who: len(LEADS[who]), default="note")
        yield LogLine(who, text.removeprefix(LEADS[who]).strip(), 1.0, first)
