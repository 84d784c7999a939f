"""What a view is made of: its nodes by kind, in tokens."""

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from clew.core.items import LOG, SHORT, Digests, Edit, Node
from clew.tokens.meter import Meter

SYSTEM_AND_TOOLS, SUMMARIES, OTHER_STAND_INS = "system and tools", "summaries", "other stand-ins"
SAID = {
    "call": "calls",
    "result": "results",
    "reasoning": "reasoning",
    "media": "media",
    "summary": SUMMARIES,  # of a provider, or one that came back with nothing of ours behind it
}
TEXTS = {"user": "user text", "assistant": "assistant text"}
PART_KINDS = (
    SYSTEM_AND_TOOLS,
    SUMMARIES,
    OTHER_STAND_INS,
    *TEXTS.values(),
    "calls",
    "results",
    "reasoning",
    "media",
    "other",
)


class Shown(NamedTuple):
    """A node in a view."""

    node: Node
    tokens: int
    by: str = ""  # the step that made it; nothing: it was said

    @property
    def kind(self) -> str:
        """Which of `KINDS` it is."""
        item = self.node.item
        if self.by and item.kind != "summary":
            return OTHER_STAND_INS
        return TEXTS.get(item.role, "other") if item.kind == "text" else SAID.get(item.kind, "other")


class CompositionPart(NamedTuple):
    """All of one kind."""

    kind: str
    items: int
    tokens: int


def recall_id(edit: Edit, digests: Digests) -> str:
    """The id by which what an edit replaced is recalled: that which its stand-in names, if it names one."""
    told = edit.evidence.get(LOG)
    return str(told["recall"]) if told else digests.handle(edit.old)[:SHORT]


def shown(nodes: Iterable[Node], edits: Iterable[Edit], meter: Meter) -> list[Shown]:
    """Nodes as they are seen, each with what made it."""
    by = {n.id: edit.by for edit in edits for n in edit.stand_ins}
    return [Shown(n, meter.node(n).tokens, by.get(n.id, "")) for n in nodes]


def parts(nodes: Iterable[Shown], frame: int = 0) -> list[CompositionPart]:
    """The kinds that there are, with so many tokens of the frame among them."""
    return parts_of(((node.kind, node.tokens) for node in nodes), frame)


def parts_of(some: Iterable[tuple[str, int]], frame: int = 0) -> list[CompositionPart]:
    """The same of kinds with tokens."""
    sizes: dict[str, list[int]] = {SYSTEM_AND_TOOLS: [frame]} if frame else {}
    for kind, tokens in some:
        sizes.setdefault(kind, []).append(tokens)
    return [CompositionPart(kind, len(sizes[kind]), sum(sizes[kind])) for kind in PART_KINDS if kind in sizes]


def adding_up(numbers: Sequence[int], whole: int) -> list[int]:
    """Numbers in the same proportions whose sum is another one."""
    own = sum(numbers) or 1
    ends = [round(before * whole / own) for before in accumulate(numbers, initial=0)]  # so that nothing is lost
    return [end - begin for begin, end in pairwise(ends)]
