"""Strategies, one a file. Each is a `Step`: a function from view to view."""

from clew.step import Pipeline
from clew.steps.calls import ShrinkCalls
from clew.steps.clear import ClearResults
from clew.steps.dedupe import Dedupe
from clew.steps.offload import Offload
from clew.steps.reasoning import ClearReasoning
from clew.steps.repair import Repair, repair
from clew.steps.summarize import Summarize
from clew.steps.trim import Trim, over_budget

__all__ = [
    "ClearReasoning",
    "ClearResults",
    "Dedupe",
    "Offload",
    "Repair",
    "ShrinkCalls",
    "Summarize",
    "Trim",
    "default",
    "over_budget",
    "repair",
]


def default() -> Pipeline:
    """The plain set: cheapest first, and the last one always fits."""
    return Pipeline(Dedupe(), Offload(), ClearReasoning(), ClearResults(), ShrinkCalls(), Summarize(), Trim())
