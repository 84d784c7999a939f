"""What is left of the things an agent needs, after a method made its history smaller."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from clew.tokens import counter_for

Messages = Sequence[Mapping[str, Any]]
Recall = Callable[[str], str]
Shrunk = Messages | str
Method = Callable[[Messages, int], Shrunk | tuple[Shrunk, Recall]]  # messages and a size, to what the model sees
Heard = Callable[[str, int, int], None]  # what is run now, how many runs are done, of how many

MODEL = "gpt-4o"  # whose vocabulary counts
RECALLED = 8_000  # characters that one recall may bring back
NEAR = 200  # characters around a string in which a word gives it its meaning
FAR = 2_000  # tokens from the last mention of a string to its reuse: what nobody remembers by chance
SLACK = 1.02, 200  # a result larger than its size times this plus that scores nothing


@dataclass(frozen=True)
class Need:
    """A string the agent will need, and how it would be asked for."""

    text: str
    cue: str
    anchors: frozenset[str] = frozenset()
    distance: int = FAR


class Judge(Protocol):
    """Decides what is still there; a corpus brings its own."""

    def measure(self, text: str) -> int: ...
    def text_of(self, result: Any) -> str: ...
    def kept(self, text: str, need: Any) -> bool: ...
    def bound(self, text: str, need: Any) -> bool: ...


@dataclass(frozen=True)
class Cut:
    """A history up to where it is made smaller, the size to aim for, and what is needed after it."""

    name: str
    messages: Messages
    size: int  # as the judge measures
    whole: int  # how large it is now, by the same measure
    needs: Sequence[Any]
    summary: str = ""  # what a product wrote here


@dataclass(frozen=True)
class Row:
    """How a method did over some cuts; the shares are of all needs, `bound` of the far ones."""

    method: str
    target: float  # the share, or the tokens, it was to leave
    size: float  # what is left of the whole, as a share
    tokens: int  # of what is left
    kept: float
    bound: float
    one_call: float
    cpu: float
    over: int = 0  # cuts at which the result was too large


@dataclass(frozen=True)
class Curve:
    """Rows of all methods over one material, at several sizes."""

    name: str
    needs: int
    far: int  # how many of them were last seen long before
    rows: tuple[Row, ...]

    def sizes(self) -> list[float]:
        """The sizes aimed for, smallest first."""
        return sorted({row.target for row in self.rows})


class Words:
    """The judge of material that brings none: a string must stand whole, and near a word that stood near it."""

    def __init__(self, measure: Callable[[str], int] = len) -> None:
        self.measure = measure

    def text_of(self, result: Any) -> str:
        return result if isinstance(result, str) else shown(result)

    def kept(self, text: str, need: Need) -> bool:
        return any(True for _ in _places(text, need.text))

    def bound(self, text: str, need: Need) -> bool:
        return any(
            need.anchors & set(re.findall(r"[a-z]{4,}", _around(text, start, need.text).lower()))
            for start in _places(text, need.text)
        )


def _around(text: str, start: int, found: str) -> str:
    stop = start + len(found)
    return f"{text[max(0, start - NEAR) : start]} {text[stop : stop + NEAR]}"


def _places(text: str, found: str) -> Iterator[int]:
    """Where a string stands as a whole name, not inside a longer one."""
    start = text.find(found)
    while start >= 0:
        before, after = text[start - 1 : start], text[start + len(found) : start + len(found) + 1]
        if not (_word(before) and _word(found[0])) and not (_word(after) and _word(found[-1])):
            yield start
        start = text.find(found, start + 1)


def _word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


def shown(messages: Messages) -> str:
    """The text a model reads in messages of OpenAI's format, the arguments of calls without their JSON."""
    lines = []
    for message in messages:
        lines.append(f"{message['role']}: {' '.join(strings(message.get('content') or ''))}")
        made = [call["function"] for call in message.get("tool_calls") or ()]
        lines += [f"[call {call['name']} {arguments(call.get('arguments') or '{}')}]" for call in made]
    return "\n".join(lines)


def arguments(text: str) -> str:
    """What the arguments of a call say."""
    try:
        return "\n".join(strings(json.loads(text)))
    except ValueError:
        return text


def strings(value: Any) -> Iterator[str]:
    """Every string and number in a JSON value."""
    match value:
        case str():
            yield value
        case bool() | None:
            return
        case int() | float():
            yield str(value)
        case Mapping():
            for inner in value.values():
                yield from strings(inner)
        case list() | tuple():
            for inner in value:
                yield from strings(inner)


def read(found: Any, judge: Judge) -> tuple[str, Recall | None]:
    """The text that a method left, and its recall if it has one."""
    result, recall = found if isinstance(found, tuple) else (found, None)
    return judge.text_of(result), recall


def too_large(size: int, asked: int) -> bool:
    """Whether a result is so much larger than asked for that it counts as nothing."""
    return size > asked * SLACK[0] + SLACK[1]


def far(need: Any) -> bool:
    """Whether a string was last said so long before that nobody remembers it by chance."""
    distance = need["distance_tokens"] if isinstance(need, Mapping) else need.distance
    return bool(distance >= FAR)


class Tally:
    """Adds up how one method does, cut by cut."""

    def __init__(self, method: str, judge: Judge, count: Callable[[str], int]) -> None:
        self.method = method
        self.asked = self.far = 0
        self._judge, self._count = judge, count
        self._kept = self._bound = self._called = self._over = 0
        self._used = self._tokens = self._whole = 0
        self._cpu = 0.0

    def add(self, cut: Cut, method: Method | None) -> None:
        """Run a method at a cut and judge what it left; without one, judge the product's own summary."""
        begin = time.process_time()
        found = method(cut.messages, cut.size) if method else cut.summary
        self._cpu += time.process_time() - begin
        text, recall = read(found, self._judge)
        size = self._judge.measure(text)
        if too_large(size, cut.size):
            self._over += 1
            text, size, recall = "", 0, None
        self._used += size
        self._tokens += self._count(text)
        self._whole += cut.whole
        for need in cut.needs:
            self._ask(need, text, recall)

    def _ask(self, need: Any, text: str, recall: Recall | None) -> None:
        cue = need["cue"] if isinstance(need, Mapping) else need.cue
        kept = self._judge.kept(text, need)
        self.asked += 1
        self._kept += kept
        self._called += kept or bool(recall and self._judge.kept(recall(cue)[:RECALLED], need))
        if far(need):
            self.far += 1
            self._bound += self._judge.bound(text, need)

    def row(self, target: float) -> Row:
        """What it came to."""
        asked, far = max(1, self.asked), max(1, self.far)
        return Row(
            self.method,
            target,
            self._used / max(1, self._whole),
            self._tokens,
            self._kept / asked,
            self._bound / far,
            self._called / asked,
            self._cpu,
            self._over,
        )


def judge_all(
    name: str,
    material: Mapping[float, Sequence[Cut]],
    methods: Mapping[str, Method | None],
    judge: Judge,
    heard: Heard,
) -> Curve:
    """Every method at every cut, for each size aimed for."""
    count = counter_for(MODEL).text
    rows = []
    tally = Tally("", judge, count)
    done, whole = 0, sum(map(len, material.values())) * len(methods)
    for target, cuts in material.items():
        for method, act in methods.items():
            tally = Tally(method, judge, count)
            for cut in cuts:
                heard(f"{cut.name}, {method}", done, whole)
                tally.add(cut, act)
                done += 1
            rows.append(tally.row(target))
    return Curve(name, tally.asked, tally.far, tuple(rows))
