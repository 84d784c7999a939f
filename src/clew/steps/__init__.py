"""Strategies, one a file. Each is a `Step`: a function from view to view."""

from clew.step import Pipeline
from clew.steps.clear import ClearResults
from clew.steps.offload import Offload
from clew.steps.repair import Repair, repair
from clew.steps.trim import Trim, over_budget

__all__ = ["ClearResults", "Offload", "Repair", "Trim", "default", "over_budget", "repair"]


def default() -> Pipeline:
    """The plain set: cheapest first, and the last one always fits."""
    return Pipeline(Offload(), ClearResults(), Trim())
