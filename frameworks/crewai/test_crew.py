"""What tasks of a crew tell each other: the eleven behaviours that were asked for, and what they left open."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import crewai
import pytest
from crewai import Agent, Process
from crewai.events import crewai_event_bus
from crewai.tasks.conditional_task import ConditionalTask

from clew.adapters.crewai import (
    ContextSummarizedEvent,
    ContextSummaryFailedEvent,
    Crew,
    Task,
    TaskOutput,
    aggregate_summarized_outputs_from_task_outputs,
)
from clew.testing import Answer, Call, ScriptedModel, StrictProvider

LONG = "\n".join(f"Finding {n}: the ledger of store {n} is off by {n * 7} euros." for n in range(40))
SHORT = "Forty ledgers are off, by 7 to 273 euros."
Clerk = Callable[..., Agent]


def is_summary(body: dict[str, Any]) -> bool:
    """Whether a request asks for a summary of an output."""
    return "hands to the tasks that come after it" in str(body["messages"][0]["content"])


def work(body: dict[str, Any]) -> Answer:
    """Long outputs, short summaries."""
    if is_summary(body):
        return Answer(SHORT, output=10)
    part = str(body["messages"][-1]["content"]).partition("Do part ")[2][:1]
    return Answer(f"Output {part}.\n{LONG}")


def asked(provider: StrictProvider) -> list[str]:
    """What the tasks were asked, without the requests for summaries."""
    return [str(heard.body["messages"][-1]["content"]) for heard in provider.heard if not is_summary(heard.body)]


def summaries(provider: StrictProvider) -> int:
    return sum(is_summary(heard.body) for heard in provider.heard)


def parts(agent: Agent | None, count: int, **given: Any) -> list[Task]:
    return [Task(description=f"Do part {n}.", expected_output="All of it.", agent=agent, **given) for n in range(count)]


def output(raw: str, summary: str | None = None) -> TaskOutput:
    return TaskOutput(description="d", agent="a", raw=raw, context_summary=summary)


def test_1_aggregate_uses_the_summary_or_else_all() -> None:
    plain = crewai.TaskOutput(description="d", agent="a", raw="three")
    text = aggregate_summarized_outputs_from_task_outputs([output("one", "1"), output("two"), plain])
    assert text == "1\n\n----------\n\ntwo\n\n----------\n\nthree"


def test_2_3_4_defaults(clerk: Clerk) -> None:
    with StrictProvider([]) as provider:
        agent = clerk(provider)
        (task,) = parts(agent, 1)
        assert TaskOutput(description="d", agent="a").context_summary is None
        assert Crew(agents=[agent], tasks=[task]).context_strategy == "full"
        assert task.context_strategy is None


def test_5_11_a_task_reads_summaries_made_once_and_none_is_made_of_what_nobody_reads(clerk: Clerk) -> None:
    with StrictProvider(work) as provider:
        agent = clerk(provider)
        result = Crew(agents=[agent], tasks=parts(agent, 3), context_strategy="summarized").kickoff()
    assert [one.context_summary for one in result.tasks_output] == [SHORT, SHORT, None]
    assert summaries(provider) == 2
    first, second, third = asked(provider)
    assert SHORT not in first
    assert (second.count(SHORT), third.count(SHORT)) == (1, 2)
    assert "Finding" not in first + second + third
    assert f"{SHORT}\n\n----------\n\n{SHORT}" in third
    assert all("Finding 39" in one.raw for one in result.tasks_output)


@pytest.mark.parametrize("reply", ["", "  \n ", LONG * 2], ids=["empty", "blank", "longer"])
def test_6_replies_that_are_no_summary_are_ignored(clerk: Clerk, reply: str) -> None:
    with StrictProvider(lambda body: Answer(reply) if is_summary(body) else work(body)) as provider:
        agent = clerk(provider)
        result = Crew(agents=[agent], tasks=parts(agent, 2), context_strategy="summarized").kickoff()
    assert result.tasks_output[0].context_summary is None
    assert "Finding 39" in asked(provider)[1]


def test_7_a_model_that_fails_never_stops_a_crew_and_is_told_of(
    clerk: Clerk, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[ContextSummaryFailedEvent] = []
    with crewai_event_bus.scoped_handlers(), StrictProvider(lambda body: error(body) or work(body)) as provider:
        crewai_event_bus.on(ContextSummaryFailedEvent)(lambda source, event: told.append(event))
        agent = clerk(provider)
        agent.llm.max_retries = 0
        tasks = parts(agent, 2)
        tasks[0].name = "audit"
        result = Crew(agents=[agent], tasks=tasks, context_strategy="summarized").kickoff()
        crewai_event_bus.flush()
    assert "Finding 39" in asked(provider)[1]
    assert result.tasks_output[0].context_summary is None
    assert [(event.task_name, event.fault, event.model) for event in told] == [("audit", "refused", "gpt-4o")]
    assert "pairing mismatch" not in capsys.readouterr().out  # crewAI's event bus is not disturbed by it


def error(body: dict[str, Any]) -> Answer | None:
    return Answer(status=400, error="no") if is_summary(body) else None


def test_8_without_agent_and_model_there_is_no_summary(clerk: Clerk) -> None:
    with StrictProvider([]) as provider:
        agent = clerk(provider)
        task = Task(description="d", expected_output="e", output=output(LONG))
        reader = crewai.Task(description="r", expected_output="e", context=[task])
        given: dict[str, Any] = {"process": Process.hierarchical, "manager_llm": agent.llm}
        crew = Crew(agents=[agent], tasks=[task, reader], context_strategy="summarized", **given)
        assert crew._get_context(reader, []) == LONG
    assert isinstance(task.output, TaskOutput)
    assert task.output.context_summary is None


def test_9_none_is_made_under_full(clerk: Clerk) -> None:
    with StrictProvider(work) as provider:
        agent = clerk(provider)
        Crew(agents=[agent], tasks=parts(agent, 3)).kickoff()
        assert summaries(provider) == 0
        Crew(agents=[agent], tasks=parts(agent, 2, context_strategy="full"), context_strategy="summarized").kickoff()
        assert summaries(provider) == 0


def test_10_the_reader_decides_whatever_its_crew_does(clerk: Clerk) -> None:
    with StrictProvider(work) as provider:
        agent = clerk(provider)
        tasks = parts(agent, 3)
        tasks[1].context_strategy = "summarized"
        result = Crew(agents=[agent], tasks=tasks).kickoff()
    _, second, third = asked(provider)
    assert SHORT in second
    assert "Finding" not in second
    assert SHORT not in third
    assert third.count("Finding 39") == 2
    assert [one.context_summary for one in result.tasks_output] == [SHORT, None, None]


def test_a_summary_is_begun_when_its_task_is_done_and_a_later_one_will_read_it(clerk: Clerk) -> None:
    begun = threading.Event()
    waited: list[bool] = []

    def answer(body: dict[str, Any]) -> Answer:
        if is_summary(body):
            begun.set()
        elif "Do part 1." in str(body["messages"][-1]["content"]):
            waited.append(begun.wait(20))  # it reads nothing itself
        return work(body)

    with StrictProvider(answer) as provider:
        agent = clerk(provider)
        tasks = parts(agent, 3)
        tasks[1].context, tasks[2].context = [], [tasks[0]]
        Crew(agents=[agent], tasks=tasks, context_strategy="summarized").kickoff()
    assert waited == [True]
    assert summaries(provider) == 1


def test_an_explicit_context_is_read_as_the_default_is(clerk: Clerk) -> None:
    with StrictProvider(work) as provider:
        agent = clerk(provider)
        tasks = parts(agent, 3)
        tasks[2].context = [tasks[0]]
        tasks[1].context = []
        result = Crew(agents=[agent], tasks=tasks, context_strategy="summarized").kickoff()
    assert [one.context_summary for one in result.tasks_output] == [SHORT, None, None]
    assert asked(provider)[2].count(SHORT) == 1


def test_a_task_of_another_crew_is_summarised_when_it_is_read(clerk: Clerk) -> None:
    with StrictProvider(work) as provider:
        agent = clerk(provider)
        before = crewai.Task(description="Do part 0.", expected_output="All.", agent=agent)
        crewai.Crew(agents=[agent], tasks=[before]).kickoff()
        after = Task(description="Do part 1.", expected_output="All.", agent=agent, context=[before])
        Crew(agents=[agent], tasks=[after], context_strategy="summarized").kickoff()
    assert SHORT in asked(provider)[1]
    assert isinstance(before.output, TaskOutput)
    assert before.output.context_summary == SHORT


def test_tasks_of_crewais_own_read_as_the_crew_does(clerk: Clerk) -> None:
    with StrictProvider(work) as provider:
        agent = clerk(provider)
        tasks = [crewai.Task(description=f"Do part {n}.", expected_output="All.", agent=agent) for n in range(2)]
        Crew(agents=[agent], tasks=tasks, context_strategy="summarized").kickoff()
    assert SHORT in asked(provider)[1]
    assert "Finding" not in asked(provider)[1]


@pytest.mark.parametrize("strategy", ["summarized", None, "full"])
async def test_a_task_in_a_crew_of_crewais_own_says_what_is_missing(
    clerk: Clerk, strategy: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with StrictProvider(work) as provider:
        agent = clerk(provider)
        tasks = parts(agent, 2, context_strategy=strategy)
        given: dict[str, Any] = {"agents": [agent], "tasks": tasks, "context_strategy": "summarized"}
        crew = crewai.Crew(**given)
        await crew.akickoff()
        await crew.kickoff_async()
        assert "Finding 39" in asked(provider)[1]
        assert caplog.text.count("import Crew from clew.adapters.crewai") == (strategy != "full")
        caplog.clear()
        await Crew(**given).akickoff()
        assert "clew.adapters.crewai" not in caplog.text


def test_a_task_that_may_be_skipped_costs_no_summary_until_it_reads(clerk: Clerk) -> None:
    with StrictProvider(work) as provider:
        agent = clerk(provider)
        for holds, count in ((False, 0), (True, 1)):
            given = {"description": "Do part 9.", "expected_output": "All.", "agent": agent}
            doubtful = ConditionalTask(condition=lambda _, holds=holds: holds, **given)
            Crew(agents=[agent], tasks=[*parts(agent, 1), doubtful], context_strategy="summarized").kickoff()
            assert summaries(provider) == count


def test_with_full_prompts_are_those_of_crewai_to_the_byte(clerk: Clerk) -> None:
    heard = []
    for crew, task in ((crewai.Crew, crewai.Task), (Crew, Task)):
        with StrictProvider(work) as provider:
            agent = clerk(provider)
            tasks: list[Any] = [
                task(description=f"Do part {n}.", expected_output="All.", agent=agent) for n in range(3)
            ]
            crew(agents=[agent], tasks=tasks).kickoff()
        heard.append([one.raw for one in provider.heard])
    assert len(heard[0]) == 3
    assert heard[0] == heard[1]


def test_the_auxiliary_model_prompt_size_and_least_are_settings_of_the_crew(clerk: Clerk) -> None:
    auxiliary = ScriptedModel(lambda _: "By the auxiliary.")
    with StrictProvider(work) as provider:
        agent = clerk(provider)
        settings: dict[str, Any] = {"context_strategy": "summarized", "context_model": auxiliary}
        prompt = {"context_prompt": "Say it in {size}.", "context_size": "ten words"}
        Crew(agents=[agent], tasks=parts(agent, 2), **settings, **prompt).kickoff()
        assert auxiliary.prompts[0].system == "Say it in ten words."
        Crew(agents=[agent], tasks=parts(agent, 2), context_least=100_000, **settings).kickoff()
        settings["context_model"] = clerk(provider, model="gpt-4o-mini").llm
        Crew(agents=[agent], tasks=parts(agent, 2), **settings).kickoff()
    assert len(auxiliary.prompts) == 1
    assert "By the auxiliary." in asked(provider)[1]
    assert "Finding 39" in asked(provider)[3]
    assert [h.body["model"] for h in provider.heard if is_summary(h.body)] == ["gpt-4o-mini"]


def test_events_tell_what_a_summary_took(clerk: Clerk) -> None:
    told: list[ContextSummarizedEvent] = []
    with crewai_event_bus.scoped_handlers(), StrictProvider(work) as provider:
        crewai_event_bus.on(ContextSummarizedEvent)(lambda source, event: told.append(event))
        agent = clerk(provider)
        Crew(agents=[agent], tasks=parts(agent, 2), context_strategy="summarized").kickoff()
        crewai_event_bus.flush()
    (event,) = told
    (heard,) = (h for h in provider.heard if is_summary(h.body))
    assert (event.task_name, event.model) == ("task 1", "gpt-4o")
    assert event.tokens_after < event.tokens_before
    assert event.spent == heard.spent.input + 10
    assert event.cost
    assert SHORT not in event.model_dump_json()


@pytest.mark.parametrize("concurrent", [False, True], ids=["one by one", "async_execution"])
async def test_a_loop_is_not_blocked_while_a_summary_is_made(clerk: Clerk, concurrent: bool) -> None:
    begun, alive = threading.Event(), threading.Event()
    lived: list[bool] = []

    def slowly(body: dict[str, Any]) -> Answer:
        if is_summary(body):
            begun.set()
            lived.append(alive.wait(20))  # answers when the loop has shown that it runs
        return work(body)

    async def live() -> None:
        while not begun.is_set():
            await asyncio.sleep(0.01)
        alive.set()

    with StrictProvider(slowly) as provider:
        agent = clerk(provider)
        tasks = parts(agent, 2)
        if concurrent:
            tasks[1].async_execution, tasks[1].context = True, [tasks[0]]
        crew = Crew(agents=[agent], tasks=tasks, context_strategy="summarized")
        result, _ = await asyncio.gather(crew.akickoff(), live())
    assert lived == [True]
    assert SHORT in asked(provider)[1]
    assert result.tasks_output[0].context_summary == SHORT


async def test_kickoff_async_and_tasks_on_threads(clerk: Clerk) -> None:
    with StrictProvider(work) as provider:
        agents = [clerk(provider, role) for role in ("Clerk", "Second", "Third")]
        first, *rest = (parts(agent, 3)[n] for n, agent in enumerate(agents))
        for task in rest:
            task.async_execution, task.context = True, [first]
        last = Task(description="Do part 3.", expected_output="All.", agent=agents[0], context=rest)
        crew = Crew(agents=agents, tasks=[first, *rest, last], context_strategy="summarized")
        result = await crew.kickoff_async()
    assert [one.context_summary for one in result.tasks_output] == [SHORT, SHORT, SHORT, None]
    assert summaries(provider) == 3
    assert asked(provider)[-1].count(SHORT) == 2


def test_a_manager_reads_summaries_too(clerk: Clerk) -> None:
    def manage(body: dict[str, Any]) -> Answer:
        if is_summary(body):
            return Answer(SHORT)
        names = [tool["function"]["name"] for tool in body.get("tools", ())]
        said = body["messages"]
        if "delegate_work_to_coworker" in names and said[-1]["role"] != "tool":
            given = {"task": "Do it.", "context": "All of it.", "coworker": "Clerk"}
            return Answer(calls=(Call("delegate_work_to_coworker", given),))
        return Answer(LONG)

    with StrictProvider(manage) as provider:
        agent = clerk(provider)
        tasks = parts(None, 2)
        crew = Crew(
            agents=[agent],
            tasks=tasks,
            process=Process.hierarchical,
            manager_llm=clerk(provider).llm,
            context_strategy="summarized",
        )
        result = crew.kickoff()
    assert result.tasks_output[0].context_summary == SHORT
    managed = [text for text in asked(provider) if "Do part 1." in text]
    assert SHORT in managed[0]
    assert "Finding" not in managed[0]
