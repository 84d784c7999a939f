"""Which lines are told: one objective for everybody's, in any kind of work.

A line is worth the words that nothing else tells: rare ones, and those that come up again, weigh more. It is worth less
where its stretch of time or its message has had its share already, and where it is long.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from math import log
from typing import Literal, NamedTuple

from clew.core.caches import remembers
from clew.text.words import CHUNK, JOINT, SIGNS, width

Who = Literal["user", "said", "act", "sent", "result", "note", "model"]

TALK = ("user", "said")
SPOKEN = (*TALK, "sent")  # by somebody, to somebody
TEXTS = 1 << 15  # of lines whose words are kept: a fold is tried with several sizes
TOLD = 0.12  # of its weight, for a word that is told already: a second line may still say what is new of it
COMMON = 8  # a word that an eighth of all messages have tells little, in every language
USE = 0.5  # more, for each time (by its logarithm) that somebody said a word: what matters comes up again
# For a word that no other message has, unless somebody said it and it is a name: what matters comes up again.
ALONE = 0.5
SHARED = 1.5  # for one that the user and somebody else have: it was taken up
VALUE = 2.0  # for a number, a name or a title: they cannot be guessed from what stands around them
# Characters from which a word of letters and digits, or any, weighs nothing unless it comes again.
OPAQUE, LONG = 16, 48
PAIR = 2  # signs that stand for a word where no spaces stand between words
BASE, SOFT = 24, 0.8  # what a line costs beside its characters; by less than its length, for a long one says more
EVEN = 1e-9  # what is hardly worth less than before is worth the same
STRETCHES = 24  # of time, at most, that have a share each; a stretch has at least MESSAGES of these
MESSAGES = 4
ROOM = 300  # characters of a share at least: of a few lines, so that the best of them have it
MESSAGE_SHARE = 3.0  # times what a message would have if all had the same: some say more than an "ok"
STEEP = 4  # the power with which a message that had its share gives way
DIGIT = re.compile(r"\d")
_NAMED = re.compile(r"(?<=[^\s.!?:]\s)([A-Z][^\W\d_]+)|[\"“«「『《]([^\"”»」』》\n]{2,60})[\"”»」』》]")
_OPAQUE = re.compile(r"(?=.*\d)(?=.*[a-z])[0-9a-z]+\Z")


@dataclass(slots=True, eq=False)
class LogLine:
    """A line that somebody could read."""

    who: Who
    text: str
    voice: float  # how much such a line is worth beside others with the same words
    message: int  # lines of one stand in one paragraph
    needs: "LogLine | None" = None  # without which it says nothing: what it answers, the call that it came from
    follow: "LogLine | None" = None  # what takes it back or corrects it
    words: AbstractSet[str] = frozenset()
    cost: float = 0
    times: int = 1  # that such a line was said
    alike: AbstractSet[str] = frozenset()  # the words that each of them had
    when: str = ""  # a time that stood before its message, or before one that came earlier
    at: int = field(default=-1)  # its place among all

    def __post_init__(self) -> None:
        self.words = self.words or words_of(self.text)
        self.cost = width(self.text)


class Ranked(NamedTuple):
    """A line with what it was worth when it was chosen."""

    worth: float
    line: LogLine


@remembers(TEXTS)
def words_of(text: str) -> AbstractSet[str]:
    """The words of a text: names also by their last part, pairs of signs where no spaces stand between words."""
    found = set[str]()
    for chunk in CHUNK.findall(text.lower()):
        if chunk.isascii() or not (runs := SIGNS.findall(chunk)):
            found.add(chunk)
            if not chunk.isalnum():
                found.add(JOINT.split(chunk)[-1])
        else:
            for run in runs:
                found.update(run[i : i + PAIR] for i in range(max(1, len(run) - 1)))
            found.update(part for part in SIGNS.split(chunk) if part)
    found.discard("")
    return frozenset(found)


@remembers(TEXTS)
def names_in(text: str) -> AbstractSet[str]:
    """The words of a text that begin with a capital in the middle of a sentence, or stand in quotation marks."""
    if sum(map(str.isupper, text)) > sum(map(str.islower, text)):
        return frozenset()  # what is shouted, or a title, names nothing by its capitals
    return frozenset(word.lower() for found in _NAMED.findall(text) for word in CHUNK.findall("".join(found)))


class Weights(dict[str, float]):
    """What each word of some lines weighs, by how rare it is among their messages, and by who used it."""

    def __init__(self, lines: Iterable[LogLine], before: Iterable[LogLine] = ()) -> None:
        """`before` are lines that were told of what came earlier: what they say is nothing rare."""
        super().__init__()
        said: dict[tuple[int, Who], set[str]] = {}
        self._having, self._spoken, self._names = Counter[str](), Counter[str](), set[str]()
        by_user, by_others, acted = set[str](), set[str](), set[str]()
        for line in lines:
            said.setdefault((line.message, line.who), set()).update(line.words)
            self._names |= names_in(line.text)
            for word in line.alike:
                self._having[word] += line.times - 1
        for (_, who), words in said.items():
            self._having.update(words)
            (by_user if who == "user" else by_others).update(words)
            if who in SPOKEN:
                self._spoken.update(words)
            elif who == "act":
                acted |= words
        self._messages = max(2, len(said))
        for line in before:
            self._having.update(line.words)
            self._messages += 1
        self._shared, self._acted = by_user & by_others, acted

    def __missing__(self, word: str) -> float:
        self[word] = weight = self._of(word)
        return weight

    def _of(self, word: str) -> float:
        having = max(1, self._having[word])
        rare = log(1 + self._messages / (COMMON * having))
        weight = rare * rare * (1 + USE * log(1 + self._spoken[word]))
        if len(word) == PAIR and SIGNS.fullmatch(word):
            if having == 1:
                return 0.0  # mostly the end of a word and the beginning of another
            weight /= PAIR  # each sign stands in two pairs
        if having == 1 and (len(word) > LONG or (len(word) >= OPAQUE and _OPAQUE.match(word))):
            return 0.0
        named = word in self._names or DIGIT.search(word) is not None
        if having == 1 and word not in self._acted and not (named and self._spoken[word]):
            weight *= ALONE
        weight *= SHARED if word in self._shared else 1
        return weight * VALUE if named else weight


class Same(dict[str, float]):
    """All words weigh the same: those of lines that were chosen before, whose worth is known."""

    def __missing__(self, word: str) -> float:
        return 1.0


def ranked(
    lines: Sequence[LogLine], weights: dict[str, float], size: float, told: AbstractSet[str] = frozenset()
) -> Iterator[Ranked]:
    """The lines in the order of what each adds to those before it, until they have filled so many characters."""
    choice = _Choice(lines, weights, size, told)
    heap = [(-choice.worth(n), n) for n in range(len(lines))]
    heapify(heap)
    while heap and choice.used < size:
        before, n = heap[0]
        now = -choice.worth(n)
        if n in choice.chosen or now <= before + EVEN:
            heappop(heap)
            for line in filter(None, (lines[n].needs, lines[n], lines[n].follow) if n not in choice.chosen else ()):
                if choice.takes(line):
                    yield Ranked(-now, line)
        else:
            heapreplace(heap, (now, n))  # others were chosen since: what it adds is less


class _Choice:
    """What was chosen of some lines, and what each of the others would add."""

    def __init__(
        self, lines: Sequence[LogLine], weights: dict[str, float], size: float, told: AbstractSet[str]
    ) -> None:
        self.lines, self.weights = lines, weights
        order = {message: n for n, message in enumerate(dict.fromkeys(line.message for line in lines))}
        count = max(1, len(order))
        stretches = max(1, min(STRETCHES, count // MESSAGES, int(size) // ROOM))
        self._in_stretch, self._in_message = [0.0] * stretches, [0.0] * count
        self._message = [order[line.message] for line in lines]
        self._stretch = [message * stretches // count for message in self._message]
        talk = len({line.message for line in lines if line.who in TALK})
        even, spoken = (max(ROOM, MESSAGE_SHARE * size / max(1, n)) for n in (count, talk))
        self._share = [spoken if line.who in TALK else even / 2 for line in lines]
        self._having: dict[str, list[int]] = {}  # the lines with each word that is not told yet
        for n, line in enumerate(lines):
            line.at = n
            for word in line.words - told:
                self._having.setdefault(word, []).append(n)
        self._new = [TOLD * sum([weights[word] for word in line.words & told]) for line in lines]
        for word, found in self._having.items():
            weight = weights[word]
            for n in found:
                self._new[n] += weight
        self._stretch_share = size / stretches
        self.chosen, self.used = set[int](), 0.0

    def worth(self, n: int) -> float:
        """What a line would add, for what it takes."""
        line, new, taken = self.lines[n], self._new[n], self.lines[n].cost
        if (needs := line.needs) is not None and needs.at >= 0 and needs.at not in self.chosen:
            new, taken = new + self._new[needs.at], taken + needs.cost
        crowd = 1 + self._in_stretch[self._stretch[n]] / self._stretch_share
        crowd *= 1 + (self._in_message[self._message[n]] / self._share[n]) ** STEEP
        return float(line.voice * new / crowd / (taken + BASE) ** SOFT)

    def takes(self, line: LogLine) -> bool:
        """Choose a line, unless it is chosen, or none of these."""
        if line.at < 0 or line.at in self.chosen:
            return False
        self.chosen.add(line.at)
        taken = line.cost + BASE / 4
        self._in_stretch[self._stretch[line.at]] += taken
        self._in_message[self._message[line.at]] += line.cost
        self.used += taken
        for word in line.words:
            less = (1 - TOLD) * self.weights[word]
            for other in self._having.pop(word, ()):
                self._new[other] -= less
        return True


# --- sentences of one form about different things -------------------------------------------------------------------

FAMILY = 2  # lines of one form that are told as one: what a person wants is told in their words
MEMBERS = 24  # of them in one line
TOLD_AS_ONE = 400  # characters of it
_SLOT = re.compile(
    r"“[^”“]*”|`[^`]*`|\"[^\"\n]{1,80}\"|(?<![^\s,;:()\[\]])[^\s\d,;:()\[\]]{0,80}\d[^\s,;()\[\]]*|\d[^\s,;()\[\]]*"
)
_BETWEEN = re.compile(r": |, ")  # an act's arguments, and what came of it
_TIMED = re.compile(r"\W{0,2}\d\S*\W")  # such a line says when, in its place


@remembers(TEXTS)
def form(text: str) -> str:
    """The words of a line without the names, numbers and quoted code that it is about."""
    return _SLOT.sub("§", text)


@remembers(TEXTS)
def _parts(text: str) -> Sequence[tuple[str, str]]:
    """What an act was given and what came of it, each by its name; nothing of a line that is no list of these."""
    parts = [part.partition(" ")[::2] for part in _BETWEEN.split(text)]
    named = all(value and not DIGIT.search(name) for name, value in parts[1:])
    return parts if len(parts) > 1 and "`" not in text and named else ()


def _shape(line: LogLine) -> str:
    """What lines of one form have alike."""
    if line.who == "act" and (parts := _parts(line.text)):
        return "§ ".join(name for name, _ in parts)
    shape = form(line.text)
    return shape if 2 * shape.count("§") <= len(shape.split()) else ""


def merged(lines: Sequence[LogLine]) -> list[LogLine]:
    """The lines, with those of one form as one that tells what differs."""
    families: dict[tuple[Who, float, str], list[LogLine]] = {}
    needed = {id(line.needs) for line in lines if line.needs}
    for line in lines:
        whole = line.who in ("note", "model") or (line.who == "user" and not line.text.endswith("?"))
        if whole or line.needs or id(line) in needed:
            continue
        if (line.who == "result" or not _TIMED.match(line.text)) and (shape := _shape(line)):
            families.setdefault((line.who, line.voice, shape), []).append(line)
    told: dict[int, LogLine | None] = {}
    for family in families.values():
        for some in _few(family) if len(family) >= FAMILY else ():
            told |= dict.fromkeys(map(id, some))
            told[id(some[0])] = _together(some) if len(some) > 1 else some[0]
    return [one for line in lines if (one := told.get(id(line), line)) is not None]


def _few(family: Sequence[LogLine]) -> Iterator[Sequence[LogLine]]:
    """A family in parts of which each has room in a small log."""
    some, taken = list[LogLine](), 0
    for line in family:
        taken += len(line.text) if not some else len(line.text) - len(_shape(line))
        if some and (len(some) == MEMBERS or taken > TOLD_AS_ONE):
            yield some
            some, taken = [], len(line.text)
        some.append(line)
    yield some


def _together(family: Sequence[LogLine]) -> LogLine:
    first = family[0]
    if first.who == "act" and _parts(first.text):
        slots, between = [[value for _, value in _parts(line.text)] for line in family], ", "
    else:
        slots, between = [[value.rstrip(".:") for value in _SLOT.findall(line.text)] for line in family], " "
    differ = [n for n in range(len(slots[0])) if len({values[n] for values in slots}) > 1]
    others = Counter(between.join(values[n] for n in differ) for values in slots[1:])
    if not differ:
        text = f"{first.text} ({len(family)} times)"
    else:
        others.pop(between.join(slots[0][n] for n in differ), None)
        text = f"{first.text} [the same of: {'; '.join(others)}]"
    alike = frozenset.intersection(*(frozenset(line.words) for line in family))
    return LogLine(first.who, text, first.voice, first.message, times=len(family), alike=alike, when=first.when)
