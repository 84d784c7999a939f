"""What results say: a few lines of each are worth telling, whatever tool they are of."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, islice
from math import log

from clew.clients.voices import passed_on
from clew.core.bounds import TEXT_READ, ends
from clew.core.caches import per_object
from clew.core.items import Item, Node
from clew.facts.sheets import sheet
from clew.steps.worklog.choosing import DIGIT, words_of
from clew.steps.worklog.results import WRAPPING
from clew.steps.worklog.tables import tabled
from clew.steps.worklog.wording import once

LINES = 5  # of each result that may be told
LINES_READ = 2_000  # of each result
LEAST, LONGEST = 12, 300  # characters of a line that says something whole
# So many lines of one shape are common; in a result of which so much is common, they tell nothing.
RARE, COMMON = 3, 0.5
TABLED = 3.0  # what it is worth to tell what a table has
ASKED, USED = 2.0, 4.0  # what a line has more for each word of the open request, and for what was used later
_VALUE = re.compile(r"\d(?:[\d.,:/-]*\d)?")
_NUMERAL = re.compile(r"\d+")

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


def lines_of(result: Node, asked: str, used: AbstractSet[str], telling: bool = False) -> list[str]:
    """The lines of a result that say most to whoever asked, the best of them first.

    `telling`: only those with something that was asked for, that is used later, or that stands out.
    """
    known = _asked_of(result.item)
    if asked not in known:
        known[asked] = list(_rated(result.item, asked))
    found = known[asked]
    if used:
        more = [
            (USED, n, line.text) for n, line in enumerate(sheet(result.item).lines) if not used.isdisjoint(line.facts)
        ]
        found = [*found, *more]
    best = sorted((one for one in found if one[0] > 0 or not telling), key=lambda one: (-one[0], one[1]))
    texts = dict.fromkeys(once(text) for _, _, text in best[: 2 * LINES] if LEAST <= len(text) <= LONGEST)
    return list(texts)[:LINES]


def _rated(result: Item, asked: str) -> Iterator[ResultLine]:
    """The best lines of a result: of a table what it has, else what stands out, what was asked for, what has values."""
    text = ends(passed_on(result), TEXT_READ)
    table = tabled(text)
    if table:
        yield TABLED, -1, table
    lines = [line.text for line in sheet(result).lines[:LINES_READ]]
    all_lines = "\n".join(lines)
    whole = all_lines.lower()
    # All at once: there may be thousands, and no line has a line end in it.
    shapes, lower = (text.split("\n") if lines else [] for text in (_NUMERAL.sub("0", all_lines), whole))
    count = Counter(shapes)
    common = sum([count[shape] >= RARE for shape in shapes]) / max(1, len(lines))
    words = [line.split() for line in lower]
    having = Counter(chain.from_iterable(map(set, words)))
    once_only = {word for word, n in having.items() if n == 1}
    repeats = 1 - len(once_only) / max(1, len(having))  # in prose hardly any, in a log nearly all
    wanted = [word for word in words_of(asked) if (len(word) > 3 or DIGIT.search(word)) and word in whole]
    rated = list[ResultLine]()
    for n, (line, low, shape, said) in enumerate(zip(lines, lower, shapes, words, strict=True)):
        if not LEAST <= len(line) <= LONGEST or (count[shape] >= RARE and common > COMMON):
            continue  # of sixty lines of one shape those are told that have another, and how many there are
        hits = sum([word in low for word in wanted])
        if table and not hits:
            continue
        rare = common * log(len(lines) / count[shape]) if count[shape] < RARE else 0.0
        alone = repeats * sum(map(once_only.__contains__, said))
        rated.append((rare + ASKED * hits**0.5 + min(4, len(_VALUE.findall(line)) + alone), n, line))
    rated.sort(key=lambda one: (-one[0], one[1]))
    says = (one for one in rated if not WRAPPING.fullmatch(one[2]))
    yield from islice(says, 2 * LINES)
