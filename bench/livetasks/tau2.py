"""tau2 in Inspect, with an agent whose history is compacted: tasks, loop and scores are those of inspect-evals."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from inspect_ai import Task, task_with
from inspect_ai import eval as evaluate
from inspect_ai.agent import as_solver
from inspect_ai.log import EvalLog
from inspect_ai.model import (
    CompactionAuto,
    CompactionEdit,
    CompactionStrategy,
    CompactionSummary,
    CompactionTrim,
    Model,
)
from inspect_evals.tau2 import tau2_airline, tau2_retail
from inspect_evals.tau2.common.agents import CustomerServiceAgentConfig, get_user_simulator_agent

from clew.adapters.inspect_ai import ClewCompaction
from livetasks.compacting import CompactingModel

DOMAINS = {"airline": tau2_airline, "retail": tau2_retail}
COMPACTIONS: dict[str, Any] = {
    "clew": ClewCompaction,
    "auto": CompactionAuto,
    "summary": CompactionSummary,
    "edit": CompactionEdit,
    "trim": CompactionTrim,
    "none": None,
}


@dataclass(frozen=True)
class Ran:
    """What came of one sample."""

    sample: str
    score: str
    requests: int
    compactions: int
    before: int  # tokens before the compactions, together
    after: int
    recalls: int  # look-ups of what had left
    error: str


def strategy_of(name: str, threshold: float, folder: Path) -> CompactionStrategy | None:
    """The strategy of this name; a threshold above 1 is tokens."""
    kind = COMPACTIONS[name]
    if kind is None:
        return None
    limit = int(threshold) if threshold > 1 else threshold
    return kind(folder / "live.db", threshold=limit) if name == "clew" else kind(threshold=limit)  # type: ignore[no-any-return]


def run_tau2(
    domain: str, model: Model, user: Model, strategy: CompactionStrategy | None, folder: Path, **options: Any
) -> EvalLog:
    """The task with this strategy; `user` plays the customer, whose history is left alone."""
    agent = CompactingModel(model, strategy) if strategy else model
    (log,) = evaluate(
        _task(domain, getattr(strategy, "tools", ())),
        agent,
        model_roles={"user": user},
        log_dir=str(folder / "logs"),
        display="none",
        **options,
    )
    return log


def _task(domain: str, tools: Sequence[Any]) -> Task:
    """inspect-evals' task, whose agent has these tools besides its own."""
    agents = import_module(f"inspect_evals.tau2.{domain}.agents")
    own = getattr(import_module(f"inspect_evals.tau2.{domain}.tools"), f"all_{domain}_tools")
    service = CustomerServiceAgentConfig(
        get_domain_policy=agents.get_domain_policy,
        tools=[*(tool() for tool in own), *tools],
        instance=f"{domain.capitalize()}Agent",
    )
    return task_with(DOMAINS[domain](shuffle=False), solver=as_solver(get_user_simulator_agent(service)))


def told(log: EvalLog) -> list[Ran]:
    """What Inspect's log says, sample by sample."""
    found = []
    for sample in log.samples or ():
        compactions = [event for event in sample.events if event.event == "compaction"]
        calls = [event for event in sample.events if event.event == "tool"]
        scores = [str(score.value) for score in (sample.scores or {}).values()]
        found.append(
            Ran(
                str(sample.id),
                " ".join(scores),
                sum(event.event == "model" for event in sample.events),
                len(compactions),
                sum(event.tokens_before or 0 for event in compactions),
                sum(event.tokens_after or 0 for event in compactions),
                sum(e.function in ("recall", "search_history") and e.error is None for e in calls),
                sample.error.message if sample.error else "",
            )
        )
    return found
