"""The log of a stretch of history: the lines of it that tell most, as many as there is room for."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby

from clew.core.bounds import FOLD_READ, ITEMS_READ, MESSAGES_TOLD, newest, reach
from clew.core.items import Node
from clew.steps.worklog.choosing import DIGIT, LogLine, Ranked, Weights, Who, merged, names_in, ranked, words_of
from clew.steps.worklog.contents import UsedLater
from clew.steps.worklog.lines import Telling, corrected
from clew.steps.worklog.requests import WorkRequest, common_root, newest_requests, requests
from clew.steps.worklog.standing import Standing
from clew.text.quoting import speaks_for_user, unvoiced

SILENT = "(nothing was said)"  # of a block in which nobody but a program spoke
SPARE = 1.3  # times the room that a log is aimed at: a part may have no room for its lines
LENGTHS = (0.4,)  # of its first length, for a block that gets older
SHORTER = 0.8  # of the length before, at most: else a length is skipped
LEADS: dict[Who, str] = {
    "user": "The user: ",
    "said": "- ",
    "act": "  * ",
    "sent": "  > ",
    "result": "  > ",
    "note": "- (a program reported: ",
    "model": "- (a model wrote: ",
}
NEXT = " / "  # between messages of the user's with nothing told between them
INNER = "    "  # before further lines of one that was told


class BlockPart:
    """What a block is made of."""

    def __init__(self, nodes: Sequence[Node], number: int, read: int | None = None) -> None:
        self.requests = requests(nodes, read)
        self.continued = not (self.requests and self.requests[0].ask)
        self.first = max(1, number + (not self.continued))
        self.last = max(1, number + sum(bool(r.ask) for r in self.requests))
        self.lines: list[LogLine] = []


class Log:
    """What was said in consecutive parts of a history, read once, told in any size."""

    def __init__(
        self,
        parts: Sequence[Sequence[Node]],
        since: Standing | None = None,
        between: Sequence[Sequence[WorkRequest]] = (),
        written: Mapping[int, str] | None = None,
        told: str = "",
        before: Sequence[LogLine] = (),
    ) -> None:
        """`written` is what a model has told of some parts: of these only lines count that are mostly new beside it;
        `told` is what a reader is told anyway, `before` lines of what came earlier."""
        self.standing = Standing.from_json(since.to_json()) if since else Standing()
        self.parts = list[BlockPart]()
        read = reach(len(n.item.text) for nodes in parts for n in nodes)
        for n, nodes in enumerate(parts):
            self.standing.take(staying=between[n] if between else ())
            self.parts.append(BlockPart(nodes, self.standing.count, read))
            self.standing.take(self.parts[-1].requests)
        every = [r for part in self.parts for r in part.requests]
        self.standing.root = self.standing.root or common_root(every)
        if sum(1 + len(r.steps) for r in every) > MESSAGES_TOLD:
            for part in self.parts:
                part.requests = newest_requests(part.requests, MESSAGES_TOLD // len(parts))
        looked_at = [n for nodes in parts for n in newest(nodes, ITEMS_READ // len(parts), FOLD_READ // len(parts))]
        telling = Telling(UsedLater(looked_at), self.standing.root)
        for part in self.parts:
            found = [line for request in part.requests for line in telling.lines(request)]
            part.lines = merged(found)
        self._lines = [line for part in self.parts for line in part.lines]
        corrected(self._lines)
        self._of = {id(line): n for n, part in enumerate(self.parts) for line in part.lines}
        self._told = words_of(told) | {word for rule in self.standing.held() for word in words_of(rule)}
        self._weights = Weights(self._lines, before)
        self._written = {n: words_of(text) for n, text in (written or {}).items()}
        for n, words in self._written.items():
            self.parts[n].lines = [line for line in self.parts[n].lines if self._is_new(line, words)]
        self._lines = [line for part in self.parts for line in part.lines]
        self._told |= {word for words in self._written.values() for word in words}
        self._ranked, self._size = list[Ranked](), 0.0
        self.is_all = False  # what was told last is no less than can be told in more room

    def _is_new(self, line: LogLine, told: AbstractSet[str]) -> bool:
        """Whether what cannot be guessed in a line is mostly untold; of a line without any, all that it says."""
        exact = {word for word in line.words if DIGIT.search(word)} | names_in(line.text)
        if exact:
            return 2 * len(exact - told) > len(exact)
        new, old = (sum(self._weights[word] for word in some) for some in (line.words - told, line.words & told))
        return new > SPARE * old

    def told(self, size: int, most: Sequence[int] = ()) -> list[list[Ranked]]:
        """The lines of each part in about so many characters together, those of most worth first; of each part at most
        so many."""
        if size > self._size:
            self._size = size * SPARE
            self._ranked = list(ranked(self._lines, self._weights, self._size, self._told))
        found: list[list[Ranked]] = [[] for _ in self.parts]
        taken, left = [0] * len(self.parts), size
        has_all, is_short = [len(self._ranked) == len(self._lines)] * len(self.parts), False
        for one in self._ranked:
            n, cost = self._of[id(one.line)], len(one.line.text) + len(INNER)
            if most and (found[n] or n in self._written) and taken[n] + cost > most[n]:
                has_all[n] = True
            elif cost <= left:
                found[n].append(one)
                taken[n] += cost
                left -= cost
            else:
                is_short = True
        self.is_all = all(has_all) and not is_short
        told = {id(one.line) for chosen in found for one in chosen}
        for n, (part, chosen) in enumerate(zip(self.parts, found, strict=True)):  # no old value without the new one
            chosen[:] = [one for one in chosen if one.line.follow is None or id(one.line.follow) in told]
            if not chosen and part.lines and n not in self._written:  # no block is a mere heading
                holds = [line for line in part.lines if line.follow is None] or part.lines
                chosen.append(Ranked(0.0, min(holds, key=lambda line: line.cost / line.voice)))
        return found

    def texts(self, size: int) -> list[str]:
        """Each part in words, in about so many characters together."""
        return [rendered([one.line for one in found]) or SILENT for found in self.told(size)]

    def stands(self, size: int, shown: str = "", newest: bool = True) -> str:
        """How things stand at the end of it; `shown` is what stands in the log already."""
        return self.standing.told(size, shown, newest)


def lengths(found: Sequence[Ranked]) -> tuple[str, ...]:
    """A block as it is told, and by fewer of its lines, those of most worth."""
    told = [rendered([one.line for one in found]) or SILENT]
    for share in LENGTHS:
        kept, left = list[LogLine](), share * len(told[0])
        for one in found:
            if not kept or len(one.line.text) <= left:
                kept.append(one.line)
                left -= len(one.line.text) + len(INNER)
        text = rendered(kept)
        if text and len(text) < SHORTER * len(told[-1]):
            told.append(text)
    return tuple(told)


def rendered(lines: Sequence[LogLine]) -> str:
    """Lines in the order in which they were said, those of one message as one paragraph."""
    return "\n".join(_paragraphs(sorted(lines, key=lambda line: (line.message, line.at))))


def _paragraphs(lines: Sequence[LogLine]) -> Iterator[str]:
    when = ""
    for who, group in groupby(lines, key=lambda line: line.who):
        messages = list[str]()
        for _, said in groupby(group, key=lambda line: line.message):
            some = list(said)
            texts = [line.text for line in some]
            if some[0].when != when:
                when = some[0].when
                texts[0] = f"[{when}] {texts[0]}"
            match who:
                case "sent" | "result":
                    messages += texts
                case "act":
                    messages.append("; ".join(texts))
                case "note" | "model":
                    messages.append(f"{unvoiced(joined(texts))})")
                case "said" if speaks_for_user(text := joined(texts)):
                    messages.append(f"The assistant: {unvoiced(text)}")
                case _:
                    messages.append(joined(texts))
        if who == "user":  # what was said one after the other stands under one heading
            messages = [NEXT.join(messages)]
        yield from (LEADS[who] + text for text in messages)


def joined(sentences: Sequence[str]) -> str:
    """Sentences on one line; entries of a list, which end without a stop, are kept apart."""
    return "".join(
        text + ("" if n == len(sentences) - 1 else "; " if text[-1:].isalnum() or text[-1:] in ')`”"' else " ")
        for n, text in enumerate(sentences)
    )
