"""Clew in crewAI: what tasks tell each other here; what fits the window of one agent in `agents.py`.

`Crew` and `Task` are crewAI's own with a `context_strategy`. `ClewCrewCompaction` keeps the conversations of agents
within their models' windows, and forgets nothing.
"""

import asyncio
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property
from typing import Any, Literal, TypeVar, cast
from weakref import WeakValueDictionary

from clew.errors import MissingExtra

try:
    import crewai
except ImportError:
    raise MissingExtra("clew.adapters.crewai needs crewAI", "crewai") from None

from crewai.events import crewai_event_bus
from crewai.events.base_events import BaseEvent
from crewai.hooks.contexts import StepContext
from crewai.hooks.dispatch import InterceptionPoint, get_scoped_hooks, scoped_hooks
from crewai.llms.base_llm import BaseLLM
from crewai.state.checkpoint_config import CheckpointConfig
from crewai.state.provider.utils import detect_provider
from crewai.tasks.conditional_task import ConditionalTask
from crewai.utilities.constants import NOT_SPECIFIED
from pydantic import BaseModel, Field, PrivateAttr, SerializeAsAny

from clew.adapters.crewai.agents import ClewCrewCompaction
from clew.adapters.crewai.llm import hosted
from clew.adapters.host import renamed
from clew.agent.tasks import Output, Strategy, Summaries, aggregate_summarized, effective
from clew.agent.tasks.summaries import LEAST_OUTPUT_TOKENS, SUMMARY_SIZE
from clew.core.bridge import begin
from clew.events import Condensed, Event, LeftWhole
from clew.exchange.thread import best
from clew.steps.chapters.model import Model

__all__ = [
    "ClewCrewCompaction",
    "ContextSummarizedEvent",
    "ContextSummaryFailedEvent",
    "Crew",
    "Task",
    "TaskOutput",
    "aggregate_summarized_outputs_from_task_outputs",
    "hosted",
]

__getattr__ = renamed(__name__, Compaction="ClewCrewCompaction")

M = TypeVar("M", bound=BaseModel)

_LOGGER = logging.getLogger("clew")
_TOLD: WeakValueDictionary[int, Any] = WeakValueDictionary()  # crews of which a warning told


class ContextSummarizedEvent(BaseEvent):
    """The output of a task got a summary for the tasks that come after it."""

    type: Literal["context_summarized"] = "context_summarized"
    model: str
    tokens_before: int
    tokens_after: int
    spent: int  # tokens
    cost: float | None  # in US dollars; None: the price is not known


class ContextSummaryFailedEvent(BaseEvent):
    """The output of a task should have got a summary and did not; it is read whole."""

    type: Literal["context_summary_failed"] = "context_summary_failed"
    model: str
    fault: str
    tokens: int
    spent: int
    cost: float | None


class TaskOutput(crewai.TaskOutput):
    """What came of a task, with a summary for the tasks that come after it."""

    context_summary: str | None = None

    @classmethod
    def of(cls, output: crewai.TaskOutput, summary: str | None = None) -> "TaskOutput":
        """An output of crewAI's own as one that can have a summary."""
        return output if isinstance(output, cls) else cls.model_construct(**dict(output), context_summary=summary)


def aggregate_summarized_outputs_from_task_outputs(task_outputs: Sequence[crewai.TaskOutput]) -> str:
    """The summary of each output, and all of those that have none."""
    return aggregate_summarized(Output(one.raw, getattr(one, "context_summary", None)) for one in task_outputs)


class Task(crewai.Task):
    """A task that may read those before it in a way of its own."""

    context_strategy: Strategy | None = None  # None: as its crew does
    output: SerializeAsAny[crewai.TaskOutput] | None = None  # written down with its summary
    _coming: Future[str] | None = PrivateAttr(default=None)

    def _execute_core(self, agent: Any, context: str | None, tools: Any) -> crewai.TaskOutput:
        self._tell_if_ignored(agent)
        coming, self._coming = self._coming, None
        return super()._execute_core(agent, coming.result() if coming else context, tools)

    async def _aexecute_core(self, agent: Any, context: str | None, tools: Any) -> crewai.TaskOutput:
        self._tell_if_ignored(agent)
        coming, self._coming = self._coming, None
        if coming is not None:
            context = await asyncio.wrap_future(coming)
        return await super()._aexecute_core(agent, context, tools)

    def _tell_if_ignored(self, agent: Any) -> None:
        """Warn, once for a crew, that it is crewAI's own and has all tasks read all of those before them."""
        crew = getattr(agent or self.agent, "crew", None)
        if crew is None or isinstance(crew, Crew) or self.context_strategy == "full" or id(crew) in _TOLD:
            return
        _TOLD[id(crew)] = crew
        _LOGGER.warning("crewAI's own Crew ignores context_strategy: import Crew from clew.adapters.crewai")


class Crew(crewai.Crew):
    """A crew whose tasks may read summaries of those before them."""

    tasks: list[SerializeAsAny[crewai.Task]] = Field(default_factory=list)  # written down with what is added to them
    context_strategy: Strategy = "full"
    context_model: Any = Field(default=None, exclude=True)  # an LLM, its name or a clew model; else the agent's own
    context_prompt: str = ""  # instead of the one that ships; {size} stands for the size
    context_size: str = SUMMARY_SIZE
    context_least: int = LEAST_OUTPUT_TOKENS  # tokens of an output that is worth a summary

    @cached_property
    def _summaries(self) -> Summaries:
        named = isinstance(self.context_model, str | BaseLLM)
        model = hosted(self.context_model) if named else self.context_model
        settings = self.context_prompt, self.context_size, self.context_least
        return Summaries(model, *settings, listeners=[self._announce])

    def copy(self) -> "Crew":  # type: ignore[override]
        """A crew like this one; crewAI's own makes a plain one."""
        plain = super().copy()
        own = _added(type(self))
        given = {name: getattr(plain, name) for name in plain.model_fields_set - own}
        return type(self)(**given, **{name: getattr(self, name) for name in own})

    @classmethod
    def from_checkpoint(cls, config: CheckpointConfig) -> "Crew":
        """A crew as it was written down, but for its `context_model`; crewAI's own makes a plain one."""
        crew = crewai.Crew.from_checkpoint(config)
        place = str(config.restore_from)
        entities = json.loads(detect_provider(place).from_checkpoint(place))["entities"]
        stored = next(one for one in entities if one["entity_type"] == "crew")
        for task, was in zip(crew.tasks, stored["tasks"], strict=True):
            if was.keys() >= _added(Task):
                _become(Task, task, was)._coming = None
            if task.output is not None:
                task.output = TaskOutput.of(task.output, was["output"].get("context_summary"))
        return _become(cls, crew, stored)

    def _execute_tasks(self, tasks: Any, start_index: int | None = 0, was_replayed: bool = False) -> Any:
        if was_replayed:
            self._restore(tasks[:start_index])
        with _outputs_for_summaries():
            return super()._execute_tasks(tasks, start_index, was_replayed)

    async def _aexecute_tasks(self, tasks: Any, start_index: int | None = 0, was_replayed: bool = False) -> Any:
        with _outputs_for_summaries():
            return await super()._aexecute_tasks(tasks, start_index, was_replayed)

    def _get_context(self, task: Any, task_outputs: list[Any]) -> str:  # type: ignore[override]
        whole = super()._get_context(task, task_outputs)
        if not whole or self._strategy(task) == "full":
            return whole
        makers, outputs = self.tasks, task_outputs
        if task.context is not NOT_SPECIFIED:
            makers = [one for one in task.context if one.output is not None]
            for one in makers:  # of another crew, perhaps
                one.output = TaskOutput.of(cast(crewai.TaskOutput, one.output))
            outputs = [one.output for one in makers]
        coming = begin(best(self._context([TaskOutput.of(output) for output in outputs], makers), whole))
        if isinstance(task, Task):  # it waits by itself, where it runs
            task._coming = coming
            return whole
        return coming.result()

    async def _context(self, outputs: Sequence[TaskOutput], tasks: Sequence[Any]) -> str:
        """What a task is told of these outputs, in short; they are of some of these tasks."""
        maker = {id(task.output): task for task in tasks}
        context = await self._summaries.context(
            outputs,
            "summarized",
            lambda output: _model_of(maker.get(id(output))),
            lambda output: self._name_of(maker.get(id(output))),
        )
        await best(asyncio.to_thread(self._keep), None)
        return context

    def _process_task_result(self, task: Any, output: Any) -> None:
        super()._process_task_result(task, output)
        if self._has_reader(task):
            begin(best(self._summaries.summarize(output, _model_of(task), self._name_of(task)), None))

    def _strategy(self, task: Any) -> Strategy:
        return effective(getattr(task, "context_strategy", None), self.context_strategy)

    def _has_reader(self, task: Any) -> bool:
        """Whether a later task will read a summary of this one."""
        return any(self._strategy(one) == "summarized" and _reads(one, task) for one in self.tasks[self._at(task) :])

    def _at(self, task: Any) -> int:
        """The place after a task."""
        return next((n for n, one in enumerate(self.tasks, 1) if one is task), 0)

    def _name_of(self, task: Any) -> str:
        return getattr(task, "name", None) or f"task {self._at(task)}"

    def _announce(self, event: Event) -> None:
        assert isinstance(event, Condensed | LeftWhole)
        kind = ContextSummarizedEvent if isinstance(event, Condensed) else ContextSummaryFailedEvent
        crewai_event_bus.emit(self, kind(task_name=event.task, **asdict(event)))

    def _keep(self) -> None:
        """Write summaries beside the outputs that crewAI stores for a replay."""
        rows = self._task_output_handler.load() or []
        for n, output in enumerate(task.output for task in self.tasks):
            if not isinstance(output, TaskOutput) or not output.context_summary:
                continue
            stored = [row["output"] for row in rows if row["task_index"] == n]
            # crewAI finds a row by its number alone: of two crews at a time, neither may write over the other's.
            if [one["raw"] for one in stored] == [output.raw]:
                kept = {**stored[0], "context_summary": output.context_summary}
                if kept != stored[0]:
                    self._task_output_handler.storage.update(n, output=kept)

    def _restore(self, tasks: Sequence[Any]) -> None:
        """Give outputs that crewAI took from its store their summaries."""
        for task, row in zip(tasks, self._task_output_handler.load() or (), strict=False):
            if task.output is not None:
                task.output = TaskOutput.of(task.output, row["output"].get("context_summary"))


@contextmanager
def _outputs_for_summaries() -> Iterator[None]:
    """While a crew works, its tasks put out what can have a summary."""

    def replace(step: StepContext) -> TaskOutput | None:
        return TaskOutput.of(step.payload) if isinstance(step.payload, crewai.TaskOutput) else None

    hooks = {point: get_scoped_hooks(point) for point in InterceptionPoint}  # those of whoever runs the crew stay
    hooks[InterceptionPoint.POST_STEP].append(replace)
    with scoped_hooks(hooks):
        yield


def _added(kind: type[BaseModel]) -> set[str]:
    """The fields that a crew or a task has more than crewAI's own."""
    return set(kind.model_fields) - set((crewai.Crew if issubclass(kind, crewai.Crew) else crewai.Task).model_fields)


def _become(kind: type[M], made: Any, stored: Mapping[str, Any]) -> M:
    """Make of crewAI's own what it was; it stays the same object, which others know."""
    made.__class__ = kind
    for name in _added(kind):
        setattr(made, name, stored.get(name, kind.model_fields[name].default))
    return cast(M, made)


def _reads(reader: Any, task: Any) -> bool:
    """Whether it is certain that one task will read another."""
    if isinstance(reader, ConditionalTask):
        return False
    if reader.context is NOT_SPECIFIED:
        return not reader.async_execution  # such a task is told nothing unless it asks
    return any(one is task for one in reader.context or ())


def _model_of(task: Any) -> Model | None:
    llm = getattr(getattr(task, "agent", None), "llm", None)
    return hosted(llm) if isinstance(llm, BaseLLM) else None
