"""An agent of crewAI far past its window: its real loop, a provider that refuses what is too long."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from crewai import Agent, Crew, Process, Task
from crewai.tools import BaseTool

from clew import Engine, Sessions, run
from clew.adapters import crewai as adapted
from clew.adapters.crewai import ClewCrewCompaction, hosted
from clew.steps.chapters.by_model import ByModel
from clew.testing import Answer, Call, StrictProvider

WINDOW = 8_000
Clerk = Callable[..., Agent]
Engines = Callable[..., Engine]


def crew_of(agent: Agent) -> Crew:
    return Crew(agents=[agent], tasks=[Task(description="Audit the books.", expected_output="Words.", agent=agent)])


def reading(pages: int, then: Callable[[dict[str, Any]], Answer] | None = None, **given: Any) -> Callable[..., Answer]:
    """A script: so many pages are read, one after the other, then something else is said."""
    asked = iter(range(pages))

    def answer(body: dict[str, Any]) -> Answer:
        page = next(asked, None)
        if page is not None:
            return Answer(calls=(Call("read_page", {"path": f"ledger-{page}", **given}),))
        return then(body) if then else Answer("All is well.")

    return answer


def said(body: dict[str, Any]) -> str:
    return json.dumps(body["messages"], ensure_ascii=False)


def test_it_grows_past_its_window_and_forgets_nothing(clerk: Clerk, read_page: BaseTool, engine: Engines) -> None:
    kept = engine()
    with StrictProvider(reading(10), window=WINDOW) as provider:
        crew = crew_of(clerk(provider, tools=[read_page]))
        ClewCrewCompaction(kept).attach(crew)
        result = crew.kickoff()
    assert result.raw == "All is well."
    assert len(provider.heard) == 11  # none was refused, none was spent on a summary
    assert max(heard.spent.input for heard in provider.heard) < WINDOW
    last = provider.heard[-1].body
    assert "Audit the books." in said(last)
    assert "w3x599" not in said(last)
    ids = set(re.findall(r"recall (\w{6,})", said(last)))
    originals = [node.item.text for id in ids for node in run(kept.recall("default", id))]
    assert all(any(f"w{n}x599" in text for text in originals) for n in range(7))
    assert sum("tool_calls" in message for message in result.tasks_output[0].messages) == 10  # crewAI has all of it
    assert sum(session.input for session in run(Sessions(kept).all())) == sum(h.spent.input for h in provider.heard)


def test_the_agent_recalls_by_tools_of_its_own(clerk: Clerk, read_page: BaseTool, engine: Engines) -> None:
    def recall(body: dict[str, Any]) -> Answer:
        last = body["messages"][-1]
        if "[data:" in str(last["content"]):
            return Answer("Recalled.")
        id = re.findall(r"recall (\w{6,})", said(body))[0]
        return Answer(calls=(Call("recall", {"id": id, "pattern": "w3x299"}),))

    with StrictProvider(reading(5, recall), window=WINDOW) as provider:
        crew = crew_of(clerk(provider, tools=[read_page]))
        ClewCrewCompaction(engine()).attach(crew)
        assert crew.kickoff().raw == "Recalled."
    assert "w3x299" in provider.heard[-1].body["messages"][-1]["content"]


def test_an_oversized_result_becomes_a_preview_that_can_be_recalled(
    clerk: Clerk, read_page: BaseTool, engine: Engines
) -> None:
    kept = engine()
    with StrictProvider(reading(1, words=60_000), window=WINDOW) as provider:
        crew = crew_of(clerk(provider, tools=[read_page]))
        ClewCrewCompaction(kept).attach(crew)
        assert crew.kickoff().raw == "All is well."
    assert len(provider.heard) == 2
    result = provider.heard[1].body["messages"][-1]
    assert result["role"] == "tool"
    (id,) = set(re.findall(r"recall (\w{6,})", result["content"]))
    (node,) = run(kept.recall("default", id))
    assert node.item.text.endswith("w0x59999")


def test_parallel_calls_stay_with_their_results(clerk: Clerk, read_page: BaseTool, engine: Engines) -> None:
    rounds = iter(range(3))

    def three_at_once(_: dict[str, Any]) -> Answer:
        n = next(rounds, None)
        if n is None:
            return Answer("All is well.")
        return Answer(calls=tuple(Call("read_page", {"path": f"ledger-{n}{part}"}) for part in "abc"))

    with StrictProvider(three_at_once, window=WINDOW) as provider:  # which refuses a call without its result
        crew = crew_of(clerk(provider, tools=[read_page]))
        ClewCrewCompaction(engine()).attach(crew)
        assert crew.kickoff().raw == "All is well."
    assert len(provider.heard) == 4
    assert len(provider.heard[-1].body["messages"]) < 2 + 3 * 4


@pytest.mark.parametrize(
    "reply",
    [
        Answer(status=400, error="no"),
        Answer(""),
        Answer("lorem ipsum dolor\n" * 30),
        Answer("too late", seconds=60),
    ],
    ids=["error", "empty", "garbage", "slow"],
)
def test_a_model_that_writes_no_notes_costs_nothing(
    clerk: Clerk, read_page: BaseTool, engine: Engines, reply: Answer
) -> None:
    with StrictProvider([reply]) as broken, StrictProvider(reading(5), window=WINDOW) as provider:
        most = 3.0 if reply.seconds else 60.0  # long enough to be asked at all, on any machine
        writer = ByModel(hosted(clerk(broken).llm), seconds=most)
        kept = engine(author=writer, patience=most)
        crew = crew_of(clerk(provider, tools=[read_page]))
        ClewCrewCompaction(kept).attach(crew)
        assert crew.kickoff().raw == "All is well."
    assert broken.heard
    assert len(provider.heard) == 6
    assert "recall" in said(provider.heard[-1].body)


def test_the_agent_decides_and_its_new_session_begins_with_its_summary(
    clerk: Clerk, read_page: BaseTool, engine: Engines
) -> None:
    kept = engine()

    def begin(body: dict[str, Any]) -> Answer:
        if "Half of the books" in body["messages"][1]["content"]:
            return Answer("All is well.")
        return Answer(calls=(Call("new_session", {"summary": "Half of the books are audited; go on with ledger-9."}),))

    with StrictProvider(reading(2, begin), window=WINDOW) as provider:
        crew = crew_of(clerk(provider, tools=[read_page]))
        ClewCrewCompaction(kept, method="llm", when="60%").attach(crew)
        result = crew.kickoff()
    assert result.raw == "All is well."
    tools = {tool["function"]["name"]: tool["function"] for tool in provider.heard[0].body["tools"]}
    assert "used_pct >= 60" in tools["new_session"]["description"]
    for heard in provider.heard:  # one status in each request, at its end, and none in what crewAI keeps
        assert said(heard.body).count("<context_status>") == 1
        assert "<context_status>" in heard.body["messages"][-1]["content"]
    assert "context_status" not in json.dumps(result.tasks_output[0].messages)
    before, after = provider.heard[-2:]
    assert after.spent.input < before.spent.input / 2
    listed = run(Sessions(kept).all())
    assert "handoff" in [session.cause for session in listed]


def test_after_a_restart_a_conversation_goes_on_where_it_was(
    clerk: Clerk, read_page: BaseTool, engine: Engines
) -> None:
    with StrictProvider(reading(5), window=WINDOW) as provider:
        agent = clerk(provider, tools=[read_page])
        ClewCrewCompaction(engine()).attach(agent)
        first = agent.kickoff("Audit the books.")
    said_so_far = [message for message in first.messages if message["role"] != "system"]
    sent = provider.heard[-1].body
    with StrictProvider(reading(2), window=WINDOW) as provider:  # a new agent, a new engine, the same store
        agent = clerk(provider, tools=[read_page])
        ClewCrewCompaction(engine()).attach(agent)
        agent.kickoff([*said_so_far, {"role": "user", "content": "And the last two?"}])
    resumed = provider.heard[0].body
    assert resumed["messages"][1:3] == sent["messages"][1:3]  # the same stand-in, not made anew
    assert "And the last two?" in said(resumed)
    assert len(said(resumed)) < 4 * WINDOW


@pytest.mark.parametrize("process", Process)
def test_what_is_delegated_hangs_under_who_delegates(
    clerk: Clerk, read_page: BaseTool, engine: Engines, process: Process
) -> None:
    kept = engine()

    def work(body: dict[str, Any]) -> Answer:
        names = [tool["function"]["name"] for tool in body["tools"]]
        is_boss = "delegate_work_to_coworker" in names
        if body["messages"][-1]["role"] == "tool":
            return Answer("All is well." if is_boss else "Counted.")
        if not is_boss:
            return Answer(calls=(Call("read_page", {"path": "ledger-1"}),))
        given = {"task": "Count the books.", "context": "All of them.", "coworker": "Clerk"}
        return Answer(calls=(Call("delegate_work_to_coworker", given),))

    with StrictProvider(work, window=WINDOW) as provider:
        boss = clerk(provider, "Boss", allow_delegation=True)
        helper = clerk(provider, tools=[read_page])
        task = Task(description="Audit the books.", expected_output="Words.")
        if process is Process.hierarchical:
            crew = Crew(agents=[helper], tasks=[task], process=process, manager_agent=boss)
        else:
            task.agent = boss
            crew = Crew(agents=[boss, helper], tasks=[task])
        ClewCrewCompaction(kept).attach(crew)
        assert crew.kickoff().raw == "All is well."
    listed = run(Sessions(kept).all())
    children = [session for session in listed if session.cause == "subagent"]
    assert len(children) == 1
    assert children[0].parent in {session.id for session in listed if session.cause != "subagent"}


async def test_agents_on_a_loop_of_their_own(clerk: Clerk, read_page: BaseTool, engine: Engines) -> None:
    with StrictProvider(reading(5), window=WINDOW) as provider:
        crew = crew_of(clerk(provider, tools=[read_page]))
        ClewCrewCompaction(engine()).attach(crew)
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0)

        beating = asyncio.create_task(beat())
        result = await crew.akickoff()
        beating.cancel()
    assert result.raw == "All is well."
    assert beats > len(provider.heard)
    assert max(heard.spent.input for heard in provider.heard) < WINDOW


def test_an_llm_of_its_own_can_be_asked_directly_and_async(clerk: Clerk, engine: Engines) -> None:
    with StrictProvider([Answer("Yes.")], window=WINDOW) as provider:
        llm = ClewCrewCompaction(engine()).llm(clerk(provider).llm)
        talk = [{"role": role, "content": f"{n} " * 600} for n in range(12) for role in ("user", "assistant")]
        assert llm.call("Is it?") == "Yes."
        assert asyncio.run(llm.acall([*talk, {"role": "user", "content": "Is it?"}])) == "Yes."
    assert len(provider.heard) == 2


def test_requests_for_summaries_of_outputs_are_no_conversation(clerk: Clerk, engine: Engines) -> None:
    kept = engine()
    with StrictProvider(
        lambda body: Answer("A long line of findings.\n" * 3 + " ".join(map(str, range(400))))
    ) as provider:
        agent = clerk(provider)
        tasks = [adapted.Task(description=f"Do {n}.", expected_output="All.", agent=agent) for n in range(2)]
        crew = adapted.Crew(agents=[agent], tasks=tasks, context_strategy="summarized")
        ClewCrewCompaction(kept).attach(crew)
        crew.kickoff()
    assert len(provider.heard) == 3
    assert sum(session.calls for session in run(Sessions(kept).all())) == 2


def test_who_has_no_tools_is_shown_no_ids(engine: Engines, clerk: Clerk) -> None:
    with StrictProvider([Answer("Noted.")], window=WINDOW) as provider:
        llm = ClewCrewCompaction(engine()).llm(clerk(provider).llm)
        said_so_far: list[dict[str, str]] = []
        for n in range(12):
            said_so_far.append({"role": "user", "content": f"Page {n}: " + " ".join(f"w{n}x{k}" for k in range(300))})
            said_so_far.append({"role": "assistant", "content": str(llm.call(said_so_far))})
    sent = said(provider.heard[-1].body)
    assert "w0x299" not in sent
    assert not re.search(r"recall [0-9a-f]{10}", sent)
