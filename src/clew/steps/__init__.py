"""Strategies, one a file. Each is a `Step`: a function from view to view."""

from typing import TYPE_CHECKING

from clew.core.lazy import loader

if TYPE_CHECKING:
    from clew.steps.calls import ShrinkCalls
    from clew.steps.clear import ClearBeside, ClearResults
    from clew.steps.dedupe import Dedupe
    from clew.steps.offload import Arrivals, Offload
    from clew.steps.presets import PRESETS, clearing, default, null, preset, sliding, summarizing
    from clew.steps.protocol import Pipeline
    from clew.steps.reasoning import ClearReasoning
    from clew.steps.repair import Repair, repair
    from clew.steps.summarize import Summarize
    from clew.steps.trim import Cut, Trim, over_budget

__all__ = [
    "PRESETS",
    "PRESET_NAMES",
    "Arrivals",
    "ClearBeside",
    "ClearReasoning",
    "ClearResults",
    "Cut",
    "Dedupe",
    "Offload",
    "Pipeline",
    "Repair",
    "ShrinkCalls",
    "Summarize",
    "Trim",
    "clearing",
    "default",
    "null",
    "over_budget",
    "preset",
    "repair",
    "sliding",
    "summarizing",
]

PRESET_NAMES = ("default", "clearing", "summarizing", "sliding", "null")

# Loaded when first used: who only lists conversations need not wait for it.
_HOMES = {
    "calls": "ShrinkCalls",
    "clear": "ClearBeside ClearResults",
    "dedupe": "Dedupe",
    "offload": "Arrivals Offload",
    "presets": "PRESETS clearing default null preset sliding summarizing",
    "protocol": "Pipeline",
    "reasoning": "ClearReasoning",
    "repair": "Repair repair",
    "summarize": "Summarize",
    "trim": "Cut Trim over_budget",
}
__getattr__ = loader(__name__, _HOMES)
