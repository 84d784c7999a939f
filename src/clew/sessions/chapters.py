"""Who wrote what stands in for a history: each chapter in view, what its model was asked and answered, what it cost."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from clew.core.items import SHORT
from clew.core.view import View, originals
from clew.facts.chapters import Chapter
from clew.steps.worklog.blocks import CODE, blocks
from clew.tokens.meter import Meter

ChapterState = Literal["in view", "waiting", "not used"]


class ToldChapter(NamedTuple):
    """A chapter, and who wrote it."""

    id: str  # by which what it stands for is recalled; of one that never stood in view, what it was written of
    title: str
    author: str  # the model; else code
    state: ChapterState
    tokens: int  # that it takes in view, or would take
    text: str
    asked: Sequence[Chapter] = ()  # the questions it comes from, with their answers and costs
    node: str = ""  # its stand-in

    @property
    def cost(self) -> float | None:
        """Dollars, where all of them are known."""
        costs = [one.cost for one in self.asked]
        return None if not costs or None in costs else sum(cost or 0.0 for cost in costs)

    @property
    def spent(self) -> int:
        """Tokens of the questions and answers."""
        return sum(one.spent for one in self.asked)


def chapters_in(view: View, made: Sequence[Chapter], meter: Meter) -> list[ToldChapter]:
    """The chapters of a view in their order, then those that a model has written and are not there; `made` are all
    that models wrote of its branch."""
    found, used, newest = list[ToldChapter](), set[int](), {one.ids: one for one in made if one.ids}
    for at, (block, _) in sorted(blocks(view).items()):
        node = view.nodes[at]
        ids = set(originals([node.id], view.edits.made))
        behind = [one for one in newest.values() if block.author and one.texts and ids.issuperset(one.ids)]
        used.update(map(id, behind))
        size, text = meter.node(node).tokens, node.item.text
        found.append(ToldChapter(block.recall, block.title, block.name or CODE, "in view", size, text, behind, node.id))
    shown = {node.id for node in view.nodes}
    for one in made:
        if id(one) not in used:
            waits = bool(one.texts) and one is newest.get(one.ids) and shown.issuperset(one.ids)
            text = one.texts[0] if one.texts else one.answer
            state: ChapterState = "waiting" if waits else "not used"
            first = one.ids[0][:SHORT] if one.ids else ""
            found.append(ToldChapter(first, "", one.author, state, meter.counter.text(text), text, (one,)))
    return found
