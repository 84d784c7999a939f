"""What tasks put out, and how the next one reads it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

Strategy = Literal["full", "summarized"]

DIVIDER = "\n\n----------\n\n"


class Told(Protocol):
    """What came of a task, as frameworks have it; the summary is for the tasks that come after."""

    @property
    def raw(self) -> str: ...

    context_summary: str | None


@dataclass(slots=True)
class Output:
    """What came of a task, for those who use no framework."""

    raw: str
    context_summary: str | None = None


def effective(task: Strategy | None, team: Strategy = "full") -> Strategy:
    """How a task reads those before it: its own way, or else its team's."""
    return task or team


def aggregate(outputs: Iterable[Told]) -> str:
    """All that they wrote."""
    return DIVIDER.join(output.raw for output in outputs)


def aggregate_summarized(outputs: Iterable[Told]) -> str:
    """The summary of each, and all of those that have none."""
    return DIVIDER.join(output.context_summary or output.raw for output in outputs)
