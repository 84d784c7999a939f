"""What results say: a few lines of each are worth telling, whatever tool they are of."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from math import log

from clew.core.bounds import TEXT_READ, ends
from clew.core.caches import per_object
from clew.core.items import Item, Node
from clew.facts.sheets import sheet
from clew.steps.shorten import parsed
from clew.steps.worklog.choosing import DIGIT, words_of
from clew.steps.worklog.results import WRAPPING
from clew.steps.worklog.wording import listed, on_one_line

LINES = 5  # of each result that may be told
LINES_READ = 2_000  # of each result
LEAST, LONGEST = 12, 300  # characters of a line that says something whole
ROWS = 4  # of a table at least
COLUMNS = 4  # with numbers, of which the extremes are told
NAMES = 160  # characters of the names of columns
RARE, COMMON = (
    3,
    0.5,
)  # so many lines of one shape are common; in a result of which so much is common, they tell nothing
TABLED = 3.0  # what it is worth to tell what a table has
ASKED, USED = 2.0, 4.0  # what a line has more for each word of the open request, and for what was used later
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?%?")
_VALUE = re.compile(r"\d(?:[\d.,:/-]*\d)?")
_NUMERAL = re.compile(r"\d+")
_DIVIDES = re.compile(r"[\s|:+=-]*")

ResultLine = tuple[float, int, str]  # what it is worth, its place, the line


class UsedLater:
    """Which facts of results were said by somebody later."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._place = {n.id: i for i, n in enumerate(nodes)}
        self._said: dict[str, int] = {}  # where each fact was last said by somebody
        for i, node in enumerate(nodes):
            if node.item.kind != "result":
                self._said.update(dict.fromkeys(sheet(node.item).facts, i))

    def facts(self, result: Node) -> AbstractSet[str]:
        """Those of a result that were said after it; none of one that is not looked at."""
        at = self._place.get(result.id)
        return set() if at is None else {key for key in sheet(result.item).facts if self._said.get(key, -1) > at}


@per_object
def _asked_of(result: Item) -> dict[str, list[ResultLine]]:
    """The lines of a result, by what was asked when it came."""
    return {}


def lines_of(result: Node, asked: str, used: AbstractSet[str]) -> list[str]:
    """The lines of a result that say most to whoever asked, in their order."""
    known = _asked_of(result.item)
    if asked not in known:
        known[asked] = list(_rated(result.item, asked))
    found = known[asked]
    if used:
        more = [
            (USED, n, line.text) for n, line in enumerate(sheet(result.item).lines) if not used.isdisjoint(line.keys)
        ]
        found = [*found, *more]
    best = sorted(found, key=lambda one: (-one[0], one[1]))
    texts = dict[str, int]()
    for _, n, text in best:
        if len(texts) < LINES and LEAST <= len(text) <= LONGEST:
            texts.setdefault(on_one_line(text), n)
    return sorted(texts, key=lambda text: texts[text])


def _rated(result: Item, asked: str) -> Iterator[ResultLine]:
    """The best lines of a result: of a table what it has, else what stands out, what was asked for, what has values."""
    text = ends(result.text, TEXT_READ)
    rows = list(_rows(text))
    if rows:
        yield from ((TABLED, n - 2, told) for n, told in enumerate(_table(rows)))
    lines = sheet(result).lines[:LINES_READ]
    shapes = [_NUMERAL.sub("0", line.text) for line in lines]
    count = Counter(shapes)
    common = sum(count[shape] >= RARE for shape in shapes) / max(1, len(lines))
    wanted = {word for word in words_of(asked) if len(word) > 3 or DIGIT.search(word)}
    seeks = re.compile("|".join(map(re.escape, sorted(wanted, key=len, reverse=True)))) if wanted else None
    rated = list[ResultLine]()
    for n, (line, shape) in enumerate(zip(lines, shapes, strict=True)):
        if not LEAST <= len(line.text) <= LONGEST or _DIVIDES.fullmatch(line.text) or WRAPPING.fullmatch(line.text):
            continue
        if count[shape] >= RARE and common > COMMON:
            continue  # of sixty lines of one shape those are told that have another, and how many there are
        rare = common * log(len(lines) / count[shape]) if count[shape] < RARE else 0.0
        hits = len(set(seeks.findall(line.text.lower()))) if seeks else 0
        rated.append((rare + ASKED * hits**0.5 + min(4, len(_VALUE.findall(line.text))), n, line.text))
    rated.sort(key=lambda one: (-one[0], one[1]))
    yield from rated[: 2 * LINES]


def _rows(text: str) -> Iterator[list[str]]:
    """The rows of a table, its head first; none if a text is no table."""
    if text[:1] in "[{" and isinstance(value := parsed(text), list | dict):
        yield from _records(value)
        return
    lines = [line.strip().strip("|") for line in text.splitlines()[:LINES_READ] if line.strip()]
    lines = [line for line in lines if not _DIVIDES.fullmatch(line)]
    if len(lines) <= ROWS:
        return
    for mark in ("|", "\t", ";", ","):
        width = lines[0].count(mark)
        if width and sum(line.count(mark) == width for line in lines) >= 0.8 * len(lines):
            rows = [[cell.strip() for cell in line.split(mark)] for line in lines if line.count(mark) == width]
            if any(_NUMBER.fullmatch(cell) for row in rows[1:] for cell in row):
                yield from rows
            return


def _records(value: object) -> Iterator[list[str]]:
    """Objects of one form as rows."""
    if isinstance(value, dict):
        value = next((v for v in value.values() if isinstance(v, list)), []) if len(value) <= 2 else []
    if not isinstance(value, list) or len(value) < ROWS or not all(isinstance(one, dict) for one in value):
        return
    names = [name for name, cell in value[0].items() if not isinstance(cell, dict | list)]
    yield names
    yield from ([str(one.get(name, "")) for name in names] for one in value)


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """What a table has: how many rows, which columns, and the extremes of those with numbers."""
    head, *body = rows
    yield f"{len(body):,} rows of {listed(head, NAMES)}"
    numbers = [n for n in range(len(head)) if _is_number(n, body)]
    label = next((n for n in range(len(head)) if n not in numbers), 0)
    told = list[str]()
    for n in [n for n in numbers if n != label][:COLUMNS]:
        column = [(float(row[n].rstrip("%").replace(",", "")), row) for row in body if _NUMBER.fullmatch(row[n])]
        (_, least), (_, most) = min(column, key=lambda c: c[0]), max(column, key=lambda c: c[0])
        if least[n] != most[n]:
            told.append(f"{head[n]} from {least[n]} ({least[label]}) to {most[n]} ({most[label]})")
    if told:
        yield "; ".join(told)


def _is_number(n: int, body: Sequence[Sequence[str]]) -> bool:
    return sum(_NUMBER.fullmatch(row[n]) is not None for row in body) >= 0.8 * len(body)
