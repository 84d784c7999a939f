"""CompactBench with any model that clew can ask, or with a script: its templates, questions and scores are its own."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from compactbench.compactors import Compactor, get_built_in
from compactbench.contracts import CaseResult, CycleResult, GeneratedCase
from compactbench.dsl import DifficultyLevel, load_suite, validate_template
from compactbench.engine import derive_case_seed, generate_case
from compactbench.providers import CompletionRequest, CompletionResponse, Provider
from compactbench.runner.cycle import execute_cycle
from compactbench.runner.persistence import aggregate_run_metrics
from compactbench.scoring import drift_resistance

from clew.errors import NotFound
from clew.llm import named
from clew.steps.chapters.model import Model, Prompt
from livetasks.compactor import ClewCompactor

Heard = Callable[[str, int, int], None]


class Asked(Provider):
    """A model of clew's as a provider of CompactBench's."""

    key: ClassVar[str] = "clew"

    def __init__(self, model: Model) -> None:
        self._model = model

    async def complete(self, request: CompletionRequest) -> CompletionResponse:
        reply = await self._model(Prompt(request.prompt, request.max_tokens, request.system or ""))
        return CompletionResponse(reply.text, reply.spent.input, reply.spent.output, self._model.name)


class Repeating(Provider):
    """The script: asked a question, it repeats all that it was shown; asked to go on, it goes on.

    What a method kept is then always found, and what must not be said is said: no model answers like this.
    """

    key: ClassVar[str] = "scripted"

    async def complete(self, request: CompletionRequest) -> CompletionResponse:
        text = "Let us take the next step." if request.prompt.endswith("ASSISTANT:") else request.prompt
        return CompletionResponse(text, len(request.prompt) // 4, len(text) // 4, request.model)


def provider_of(model: str) -> Provider:
    """Who is asked."""
    return Repeating() if model == "scripted" else Asked(named(model))


def cases(templates: Path, suite: str, count: int, difficulty: str) -> list[GeneratedCase]:
    """The conversations: so many of each template, by CompactBench's own seeds."""
    folder = templates / suite
    if not folder.is_dir():
        raise NotFound(f"{folder}: no templates there; they are in benchmarks/public of CompactBench's repository")
    found = load_suite(folder)
    for template in found:
        validate_template(template)
    versions = {template.version for template in found}
    version = versions.pop() if len(versions) == 1 else "mixed"
    seeds = [derive_case_seed(f"{suite}@{version}", "default", slot) for slot in range(count)]
    return [generate_case(template, seed, DifficultyLevel(difficulty)) for template in found for seed in seeds]


async def run_method(
    method: str, provider: Provider, model: str, given: list[GeneratedCase], cycles: int, heard: Heard
) -> dict[str, float]:
    """What CompactBench's own measures say of a method."""
    kind: type[Compactor] = ClewCompactor if method == "clew" else get_built_in(method)
    results = []
    for n, case in enumerate(given):
        heard(f"{method}, {case.case_id}", n, len(given))
        results.append(await _case(kind(provider, model), provider, model, case, cycles))
    return aggregate_run_metrics(results)


async def _case(compactor: Compactor, provider: Provider, model: str, case: GeneratedCase, cycles: int) -> CaseResult:
    """One conversation, compacted, gone on with and compacted again."""
    transcript, artifact = case.transcript, None
    done: list[CycleResult] = []
    for n in range(cycles + 1):
        result = await execute_cycle(
            case=case,
            transcript=transcript,
            cycle_number=n,
            previous_artifact=artifact,
            compactor=compactor,
            provider=provider,
            model=model,
            case_seed=case.seed,
        )
        done.append(CycleResult(cycle_number=n, scorecard=result.scorecard, latency_ms=result.latency_ms))
        transcript, artifact = result.extended_transcript, result.artifact
    scores = [cycle.scorecard.penalized_cycle_score for cycle in done]
    return CaseResult(
        case_id=case.case_id,
        template_key=case.template_key,
        seed=case.seed,
        cycles=done,
        case_score=sum(scores) / len(scores),
        drift_resistance=drift_resistance(scores),
    )
