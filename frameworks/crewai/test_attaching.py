"""What is attached to crews and agents, and taken off again; and what goes on when clew cannot."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crewai import Agent, Crew, Process, Task
from crewai.tools import BaseTool

from clew import Engine, run
from clew.adapters.crewai import ClewCrewCompaction
from clew.errors import SecretFound
from clew.testing import Answer, Call, StrictProvider

WINDOW = 8_000
SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
Clerk = Callable[..., Agent]
Engines = Callable[..., Engine]


def crew_of(agent: Agent) -> Crew:
    return Crew(agents=[agent], tasks=[Task(description="Audit the books.", expected_output="Words.", agent=agent)])


def reading(pages: int) -> list[Answer]:
    """A script: so many pages are read, one after the other."""
    calls = [Answer(calls=(Call("read_page", {"path": f"ledger-{page}"}),)) for page in range(pages)]
    return [*calls, Answer("All is well.")]


def said(body: dict[str, Any]) -> str:
    return json.dumps(body["messages"], ensure_ascii=False)


def test_whatever_is_wrong_with_clew_the_crew_goes_on(
    clerk: Clerk, read_page: BaseTool, engine: Engines, caplog: pytest.LogCaptureFixture
) -> None:
    kept = engine()
    with StrictProvider(reading(3)) as provider:
        crew = crew_of(clerk(provider, tools=[read_page]))
        ClewCrewCompaction(kept).attach(crew)
        run(kept.store.close())
        assert crew.kickoff().raw == "All is well."
    assert len(provider.heard[-1].body["messages"]) == 2 + 3 * 2
    assert "the original request is sent unchanged" in caplog.text
    assert "Audit the books." not in caplog.text


def test_what_holds_a_secret_is_not_sent_where_the_policy_is_to_refuse_it(clerk: Clerk, engine: Engines) -> None:
    with StrictProvider([Answer("All is well.")]) as provider:
        crew = crew_of(clerk(provider))
        crew.tasks[0].description += f" The key is {SECRET}."
        ClewCrewCompaction(engine(secrets="refuse")).attach(crew)
        with pytest.raises(SecretFound):
            crew.kickoff()
        assert provider.heard == []
        ClewCrewCompaction(engine(secrets="redact")).attach(crew)
        assert crew.kickoff().raw == "All is well."
    assert SECRET in said(provider.heard[0].body)  # the model is sent what the crew sends it; the log has none of it
    assert all(SECRET.encode() not in file.read_bytes() for file in Path(engine().store.place).parent.glob("clew.db*"))


def test_an_agent_that_only_a_task_names_is_looked_after(clerk: Clerk, read_page: BaseTool, engine: Engines) -> None:
    with StrictProvider(reading(10), window=WINDOW) as provider:
        crew = crew_of(clerk(provider, tools=[read_page]))
        crew.agents = [clerk(provider, "Somebody else")]
        compaction = ClewCrewCompaction(engine())
        compaction.attach(crew)
        assert crew.kickoff().raw == "All is well."
        compaction.detach(crew)
    assert len(provider.heard) == 11  # none was refused
    assert crew.tasks[0].tools == [read_page]


def test_a_manager_that_was_named_is_named_again(clerk: Clerk, engine: Engines) -> None:
    with StrictProvider([]) as provider:
        given: dict[str, Any] = {"process": Process.hierarchical, "manager_llm": "openai/gpt-4o"}
        task = Task(description="Audit the books.", expected_output="Words.")
        crew = Crew(agents=[clerk(provider)], tasks=[task], **given)
        compaction = ClewCrewCompaction(engine())
        compaction.attach(crew)
        assert crew.manager_llm != "openai/gpt-4o"
        compaction.detach(crew)
    assert crew.manager_llm == "openai/gpt-4o"


def test_a_crew_is_as_it_was_after_what_was_attached_is_taken_off(
    clerk: Clerk, read_page: BaseTool, engine: Engines
) -> None:
    with StrictProvider([Answer("All is well.")]) as provider:
        crew = crew_of(clerk(provider, tools=[read_page]))
        compaction = ClewCrewCompaction(engine(), method="llm")
        crew.kickoff()
        compaction.attach(crew)
        crew.kickoff()
        compaction.detach(crew)
        crew.kickoff()
    before, between, after = (heard.raw for heard in provider.heard)
    assert b"context_status" in between
    assert before == after


def test_copies_of_a_crew_are_looked_after_too(clerk: Clerk, read_page: BaseTool, engine: Engines) -> None:
    said_so_far = iter(range(12))

    def answer(_: dict[str, Any]) -> Answer:
        n = next(said_so_far)
        return Answer("All is well.") if n % 6 == 5 else Answer(calls=(Call("read_page", {"path": f"ledger-{n}"}),))

    with StrictProvider(answer, window=WINDOW) as provider:
        crew = crew_of(clerk(provider, tools=[read_page]))
        ClewCrewCompaction(engine()).attach(crew)
        results = crew.kickoff_for_each([{}, {}])
    assert [result.raw for result in results] == ["All is well."] * 2
    assert len(provider.heard) == 12
    assert "recall" in said(provider.heard[-1].body)


def test_what_was_attached_can_be_taken_off(clerk: Clerk, read_page: BaseTool, engine: Engines) -> None:
    with StrictProvider(reading(1)) as provider:
        agent = clerk(provider, tools=[read_page])
        crew = crew_of(agent)
        llm = agent.llm
        compaction = ClewCrewCompaction(engine(), method="llm")
        compaction.attach(crew)
        compaction.attach(crew)  # once more is as once
        assert len(agent.tools or ()) == 1 + 6
        compaction.detach(crew)
        assert agent.llm is llm
        assert agent.tools == crew.tasks[0].tools == [read_page]
        crew.kickoff()
    assert "context_status" not in said(provider.heard[-1].body)
