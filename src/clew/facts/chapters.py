"""A chapter: a stretch of history in the words of a model, as code vouches for them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chapter:
    """What a model wrote of some nodes. A finished one is an event of its branch, and every fold reads it there."""

    ids: tuple[str, ...]  # of the nodes that it stands for, in their order
    texts: tuple[str, ...]  # from the most to the fewest words; none: code tells of these nodes
    author: str  # the model
    findings: tuple[str, ...] = ()  # what code says of its words, a line each
    asked: str = ""  # what the model was told to do
    answer: str = ""  # all that it wrote
    spent: int = 0  # tokens
    cost: float | None = None  # US dollars


@dataclass(frozen=True, slots=True)
class Written:
    """What came of asking a model."""

    chapters: tuple[Chapter, ...] = ()
    unused: tuple[Chapter, ...] = ()  # without texts: answers that are no chapters, which cost as much
    model: str = ""
    spent: int = 0  # tokens, also of answers that are not used
    cost: float | None = 0.0  # US dollars
    left_out: tuple[tuple[str, str], ...] = ()  # lines that stand nowhere: why, and what they say
    faults: tuple[str, ...] = ()  # why an answer is not used, or nobody was asked
