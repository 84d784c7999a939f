"""The log of a stretch of history: one block a request or a few short ones, told as fully as there is room for."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from clew.core.bounds import FOLD_READ, ITEMS_READ, MESSAGES_TOLD, newest, reach
from clew.core.items import Node
from clew.steps.worklog.news import Rarity
from clew.steps.worklog.requests import WorkRequest, common_root, newest_requests, requests
from clew.steps.worklog.standing import Standing
from clew.steps.worklog.telling import LogLine, Teller, ask, by_assistant
from clew.steps.worklog.used import UsedValues
from clew.steps.worklog.wording import ENOUGH, below, gist, listed, on_one_line, unannounced, words

SILENT = "(nothing was said)"  # of a block in which nobody but a program spoke
ASKS = 0.4  # of the room, for what the user said
CAPS = (400, 300, 200, 140, 90)  # characters of each ask that comes first, then the longer ones get more
LONG_ASK = 6_000  # characters of one at most
OLDEST_WORTH = 0.5  # what the oldest line is worth beside the same one today
SHARED = 60  # characters that are the same for a line that says nothing: dear short lines win, but not by length alone
SOFT = 0.6
LAST_WORDS_SHARE = 0.6  # of the room, at most, for the last words of every request in short
LEVEL_SHARE = 0.8  # of the level above, at most: else a level is skipped
BRIEF_ASK = 200  # characters of an ask in a block of one line
COARSE = 0.3  # of its first size, for a block at its second level


class BlockPart:
    """What a block is made of."""

    def __init__(self, nodes: Sequence[Node], number: int, read: int | None = None) -> None:
        self.requests = requests(nodes, read)
        self.continued = not (self.requests and self.requests[0].ask)
        self.first = max(1, number + (not self.continued))
        self.last = max(1, number + sum(bool(r.ask) for r in self.requests))
        self.lines: list[tuple[WorkRequest, list[LogLine]]] = []


class Log:
    """What was said in consecutive parts of a history, read once, told in any size."""

    def __init__(
        self,
        parts: Sequence[Sequence[Node]],
        since: Standing | None = None,
        following: str = "",
        between: Sequence[Sequence[WorkRequest]] = (),
        written: AbstractSet[int] = frozenset(),
    ) -> None:
        """`written` are the parts that a model has told of: only how things stand after them is read there."""
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
            every = [r for part in self.parts for r in part.requests]
        self._rarity = Rarity(r.ask for r in every)
        nexts = [r.ask for r in every[1:]] + [following]
        used = UsedValues(
            [n for nodes in parts for n in newest(nodes, ITEMS_READ // len(parts), FOLD_READ // len(parts))]
        )
        teller = Teller(every, used.lines, self._rel)
        answers = iter(nexts)
        for n, part in enumerate(self.parts):
            for request, answered in zip(part.requests, answers, strict=False):
                if n not in written:
                    part.lines.append((request, list(teller.lines(request, answered))))

    def _rel(self, text: str) -> str:
        return below(self.standing.root, text)

    def told(self, size: int, most: Sequence[int] = ()) -> list[str]:
        """The blocks in about so many characters together, each with at most so many."""
        caps = self._caps(int(ASKS * size))
        left = size - sum(caps.values()) - 12 * len(caps) - 80 * len(self.parts)
        lines = [entry for part in self.parts for _, found in part.lines for entry in found]
        chosen = _chosen(lines, left)
        out, at = [], 0
        for number, part in enumerate(self.parts):
            n = sum(len(found) for _, found in part.lines)
            full = self._text(part, caps, {i - at: text for i, text in chosen.items() if at <= i < at + n})
            if most and len(full) > most[number]:
                full = self._within(part, most[number])
            at += n
            out.append(full or self._briefly(part))
        return out

    def _briefly(self, part: BlockPart) -> str:
        """The least that there is to say, where nothing has room: no block is a mere heading."""
        texts = [entry.texts[0] for _, found in part.lines for entry in found]
        return self._rel(words(min(texts, key=len), BRIEF_ASK)) if texts else SILENT

    def _within(self, part: BlockPart, most: int) -> str:
        """The block in so many characters, where there is room for so few."""
        asks = [r for r, _ in part.lines if r.ask]
        caps = {id(r): min(len(r.ask), max(ENOUGH, most // (2 * len(asks)))) for r in asks}
        own = [entry for _, found in part.lines for entry in found]
        return self._text(part, caps, _chosen(own, most - sum(caps.values()) - 12 * len(caps)))

    def _caps(self, room: int) -> dict[int, int]:
        """Characters of each ask: a short one is told whole, then the newest and the first have what is left."""
        asks = [r for part in self.parts for r, _ in part.lines if r.ask]
        least = next((c for c in CAPS if sum(min(len(r.ask), c) for r in asks) <= room), CAPS[-1])
        caps, left = dict[int, int](), room
        order = [*asks[:1], *asks[:0:-1]]
        if sum(min(len(r.ask), least) for r in asks) > room:
            # Those are left out that say what the user says again and again, oldest first.
            order[1:] = sorted(order[1:], key=lambda r: -round(self._rarity.best(r.ask), 2))
        for request in order:
            caps[id(request)] = min(len(request.ask), least) if left > 0 else 0
            left -= caps[id(request)]
        room -= sum(caps.values())
        for request in (*asks[-1:], *asks[:1], *reversed(asks[1:-1])):
            more = min(len(request.ask), LONG_ASK, caps[id(request)] + room // 2) - caps[id(request)]
            if caps[id(request)] and 0 < more <= room:
                caps[id(request)] += more
                room -= more
        return caps

    def levels(self, part: BlockPart, full: str) -> tuple[str, ...]:
        """A block as it is told, and in fewer words, twice."""
        own = [entry for _, found in part.lines for entry in found]
        asks = [r for r, _ in part.lines if r.ask]
        caps = {id(r): min(len(r.ask), 2 * BRIEF_ASK) for r in asks}
        room = int(COARSE * len(full)) - sum(caps.values())
        brief = self._text(part, caps, _chosen(own, room))
        said = (unannounced(step.say) for r, _ in reversed(part.lines) for step in reversed(r.steps))
        changed = dict.fromkeys(c.path for r, _ in part.lines for step in r.steps for a in step.acts for c in a.changes)
        closing = gist(next(filter(None, said), ""), BRIEF_ASK) or (
            f"changed {listed(changed, BRIEF_ASK)}" if changed else ""
        )
        asked = " / ".join(f"“{words(r.ask, BRIEF_ASK)}”" for r in asks[-4:])
        lines = (
            on_one_line(f"The user: {asked}") if asked else "",
            f"- {by_assistant(on_one_line(closing))}" if closing else "",
        )
        one = self._rel("\n".join(filter(None, lines)))
        levels = [full]
        for text in (brief, one):
            if text and len(text) < LEVEL_SHARE * len(levels[-1]):
                levels.append(text)
        return tuple(levels)

    def _text(self, part: BlockPart, caps: Mapping[int, int], chosen: Mapping[int, str]) -> str:
        out, at, silent = list[str](), 0, 0
        for request, found in part.lines:
            most = caps.get(id(request), 0)
            silent += bool(request.ask and not most)
            if most and silent:
                out.append(f"({silent} message{'s' if silent > 1 else ''} of the user not shown)")
                silent = 0
            if asked := ask(request, most, self._rarity) if most else "":
                out.append(asked)
            out += [chosen[i] for i in range(at, at + len(found)) if i in chosen]
            at += len(found)
        if silent:
            out.append(f"({silent} message{'s' if silent > 1 else ''} of the user not shown)")
        return "\n".join(out)

    def stands(self, size: int, shown: str = "", newest: bool = True) -> str:
        """How things stand at the end of it; `shown` is what stands in the log already."""
        return self.standing.told(size, shown, newest)


def _chosen(found: Sequence[LogLine], room: int) -> dict[int, str]:
    """Which lines to tell, and how: the last words of each request in short, then what is worth most for what it takes.

    Newer lines come before older ones.
    """
    kept, left = dict[int, int](), int(LAST_WORDS_SHARE * room)
    for i in range(len(found) - 1, -1, -1):
        if found[i].needed and (cost := len(found[i].texts[0]) + 1) <= left:
            kept[i] = 0
            left -= cost
            room -= cost
    for _, i, level in sorted(_steps(found), reverse=True):
        before = len(found[i].texts[kept[i]]) if i in kept else -1
        if kept.get(i, -1) == level - 1 and (cost := len(found[i].texts[level]) - before) <= room:
            kept[i] = level
            room -= cost
    return {i: found[i].texts[level] for i, level in kept.items()}


def _steps(found: Sequence[LogLine]) -> Iterator[tuple[float, int, int]]:
    """What each length of each line is worth for what it takes beyond the one before it, and never more than that."""
    count = max(1, len(found))
    for i, entry in enumerate(found):
        age, best, before = OLDEST_WORTH + (1 - OLDEST_WORTH) * (i + 1) / count, float("inf"), 0
        for level, (text, worth) in enumerate(zip(entry.texts, entry.worths, strict=True)):
            cost: float = (SHARED + max(0, len(text) - before)) ** SOFT
            best, before = min(best, worth * age / cost), len(text)
            yield best, i, level
