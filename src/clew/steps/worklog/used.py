"""Which values of results were used later: the lines that showed them are worth telling."""

from collections.abc import Sequence

from clew.core.items import Node
from clew.facts.sheets import sheet
from clew.steps.worklog.wording import words

USED_LINE = 200  # characters of a line of a result
USED_LINES = 2  # of them
VALUES = frozenset({"id", "sha", "url", "amount", "email", "version", "date", "number", "error", "const"})


class UsedValues:
    """Which values of results were used later."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._place = {n.id: i for i, n in enumerate(nodes)}
        self._said: dict[str, int] = {}  # where each value was first said by somebody
        for i, node in enumerate(nodes):
            if node.item.kind != "result":
                for key in sheet(node.item).facts:
                    self._said.setdefault(key, i)

    def lines(self, result: Node) -> list[str]:
        """The lines of a result that first showed a value which was used later."""
        at, found = self._place.get(result.id), list[tuple[int, int, str]]()
        if at is None:  # too long ago to be looked at
            return []
        for n, shown in enumerate(sheet(result.item).lines):
            new = {m.key for m in shown.mentions if m.kind in VALUES and self._said.get(m.key, -1) > at}
            if new:
                found.append((-len(new), n, shown.text))
        best = sorted(sorted(found)[:USED_LINES], key=lambda f: f[1])
        return [words(text, USED_LINE) for _, _, text in best]
