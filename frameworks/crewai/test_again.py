"""Crews that run once more: replayed, from a checkpoint, or as copies."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crewai import Agent
from crewai.events import crewai_event_bus
from crewai.state.checkpoint_config import CheckpointConfig

from clew.adapters.crewai import Crew, Task, TaskOutput, hosted
from clew.testing import Answer, StrictProvider

LONG = "\n".join(f"Finding {n}: the ledger of store {n} is off by {n * 7} euros." for n in range(40))
SHORT = "Forty ledgers are off, by 7 to 273 euros."
Clerk = Callable[..., Agent]


def is_summary(body: dict[str, Any]) -> bool:
    """Whether a request asks for a summary of an output."""
    return "hands to the tasks that come after it" in str(body["messages"][0]["content"])


def work(body: dict[str, Any]) -> Answer:
    """Long outputs, short summaries."""
    part = str(body["messages"][-1]["content"]).partition("Do part ")[2][:1]
    return Answer(SHORT if is_summary(body) else f"Output {part}.\n{LONG}")


def asked(provider: StrictProvider, since: int = 0) -> list[str]:
    """What the tasks were asked, without the requests for summaries."""
    heard = [one.body for one in provider.heard[since:]]
    return [str(body["messages"][-1]["content"]) for body in heard if not is_summary(body)]


def summaries(provider: StrictProvider) -> int:
    return sum(is_summary(heard.body) for heard in provider.heard)


def parts(agent: Agent, count: int) -> list[Task]:
    return [Task(description=f"Do part {n}.", expected_output="All of it.", agent=agent) for n in range(count)]


def output(raw: str) -> TaskOutput:
    return TaskOutput(description="d", agent="a", raw=raw)


def test_a_replay_reuses_the_summary_also_in_new_objects(clerk: Clerk) -> None:
    with StrictProvider(work) as provider:
        agent = clerk(provider)
        tasks = parts(agent, 3)
        Crew(agents=[agent], tasks=tasks, context_strategy="summarized").kickoff()
        assert summaries(provider) == 2
        again = Crew(agents=[agent], tasks=parts(agent, 3), context_strategy="summarized")
        result = again.replay(str(tasks[2].id))
    assert summaries(provider) == 2
    assert asked(provider)[3] == asked(provider)[2]
    assert [one.context_summary for one in result.tasks_output] == [SHORT, SHORT, None]


def test_a_replay_makes_what_was_not_stored(clerk: Clerk) -> None:
    with StrictProvider(work) as provider:
        agent = clerk(provider)
        tasks = parts(agent, 2)
        Crew(agents=[agent], tasks=tasks).kickoff()
        Crew(agents=[agent], tasks=parts(agent, 2), context_strategy="summarized").replay(str(tasks[1].id))
    assert summaries(provider) == 1
    assert SHORT in asked(provider)[2]


@pytest.mark.parametrize("description", ["Other.", "Do part 0."], ids=["another task", "a task of the same words"])
def test_what_another_crew_stored_meanwhile_is_not_written_over(clerk: Clerk, description: str) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        if is_summary(body):
            while not crew._task_output_handler.load():
                time.sleep(0.01)
            crew._task_output_handler.reset()  # as another crew does when it begins
            other._store_execution_log(other.tasks[0], output("theirs"), 0)
        return work(body)

    with StrictProvider(answer) as provider:
        agent = clerk(provider)
        other = Crew(agents=[agent], tasks=[Task(description=description, expected_output="All of it.", agent=agent)])
        crew = Crew(agents=[agent], tasks=parts(agent, 2), context_strategy="summarized")
        assert crew.kickoff().tasks_output[0].context_summary == SHORT
    rows = crew._task_output_handler.load() or []
    (theirs,) = (row["output"] for row in rows if row["output"]["raw"] == "theirs")
    assert "context_summary" not in theirs


def test_a_crew_goes_on_from_a_checkpoint_as_it_was(
    clerk: Clerk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[str] = []

    def write_down(_: object) -> None:
        assert crewai_event_bus.runtime_state
        places.append(crewai_event_bus.runtime_state.checkpoint(str(tmp_path / "checkpoints")))

    with StrictProvider(work) as provider:
        monkeypatch.setenv("OPENAI_API_KEY", "none")  # crewAI writes none down
        agent = clerk(provider)
        tasks = parts(agent, 4)
        tasks[1].callback = write_down
        tasks[3].context_strategy = "full"
        crew = Crew(agents=[agent], tasks=tasks, context_strategy="summarized", context_size="a line")
        crew.kickoff()
        before = len(provider.heard)
        stored = CheckpointConfig(restore_from=places[0], location=str(tmp_path / "checkpoints"))
        result = crew.kickoff(from_checkpoint=stored)
        restored = Crew.from_checkpoint(stored)
    assert [one.context_summary for one in result.tasks_output] == [SHORT, SHORT, None, None]
    third, fourth = asked(provider, before)
    assert third.count(SHORT) == 2
    assert "Finding" not in third
    assert fourth.count("Finding 39") == 3
    assert len(provider.heard) - before == 3  # the summary of the first was written down
    assert (restored.context_strategy, restored.context_size) == ("summarized", "a line")
    assert [task.context_strategy for task in restored.tasks] == [None, None, None, "full"]


def test_copies_of_a_crew_do_as_it_does(clerk: Clerk) -> None:
    with StrictProvider(work) as provider:
        agent = clerk(provider)
        auxiliary = hosted(agent.llm)
        settings: dict[str, Any] = {
            "context_strategy": "summarized",
            "context_model": auxiliary,
            "context_size": "a line",
        }
        tasks = parts(agent, 2)
        tasks[1].context_strategy = "summarized"
        crew = Crew(agents=[agent], tasks=tasks, **settings)
        results = crew.kickoff_for_each([{}, {}])
    assert [one.tasks_output[0].context_summary for one in results] == [SHORT, SHORT]
    copied = crew.copy()
    assert (copied.context_model, copied.context_size) == (auxiliary, "a line")
    assert copied.tasks[1].context_strategy == "summarized"
