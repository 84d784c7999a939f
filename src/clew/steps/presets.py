"""Strategies by name: which steps make a history fit, and in what order."""

from collections.abc import Callable, Mapping

from clew.core.extensions import STEPS, brought, is_brought
from clew.core.view import View
from clew.errors import BadRequest
from clew.steps import PRESET_NAMES
from clew.steps.calls import ShrinkCalls
from clew.steps.clear import ClearBeside, ClearResults
from clew.steps.dedupe import Dedupe
from clew.steps.offload import Offload
from clew.steps.protocol import Pipeline, Step, ToLimit, When
from clew.steps.reasoning import ClearReasoning
from clew.steps.summarize import MOST, Summarize
from clew.steps.trim import Trim
from clew.tokens.target import Target

ROOMY = 300  # tokens of room: with less, nothing can be told but what is out of view


def _has_room(view: View, target: Target) -> bool:
    return target.room >= ROOMY


def _roomy(*steps: Step) -> Pipeline:
    """These steps where there is room for what they write; the last one always fits."""
    return Pipeline(When(_has_room, Pipeline(*steps)), ToLimit(Trim()))


def default(summary: int = MOST) -> Pipeline:
    """What is said twice, what is too large to be read, then a summary of all that is old; the last one always fits."""
    return _roomy(Dedupe(), Offload(), ClearReasoning(), ClearBeside(), Summarize(summary))


def clearing() -> Pipeline:
    """Every call stays in sight as long as it can: old results become lines before anything is summed up."""
    cheap = Dedupe(), Offload(), ClearReasoning(), ClearResults(), ShrinkCalls()
    return _roomy(*cheap, Summarize())


def summarizing() -> Pipeline:
    """A summary of all but head, newest turn, tail and pins."""
    return _roomy(Summarize())


def sliding() -> Pipeline:
    """The newest part, after the head; one line says what is out of view."""
    return Pipeline(Trim())


def null() -> Pipeline:
    """Nothing: what does not fit is an error."""
    return Pipeline()


PRESETS: Mapping[str, Callable[[], Pipeline]] = dict(
    zip(PRESET_NAMES, (default, clearing, summarizing, sliding, null), strict=True)
)


def preset(name: str) -> Step:
    """A strategy by its name: one of `PRESETS`, or what makes a step and is an installed package's entry point."""
    if name not in PRESETS and not is_brought(STEPS, name):
        others = f"or an entry point of an installed package in {STEPS}"
        raise BadRequest(f"preset: unknown {name!r}; use one of {', '.join(PRESETS)}, {others}")
    if name in PRESETS:
        return PRESETS[name]()
    made: Step = brought(STEPS, name)
    if not callable(made):
        raise BadRequest(f"preset: the entry point {name!r} in {STEPS} makes no step")
    return made
