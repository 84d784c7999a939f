"""An agent that was given a backend and nothing else, and the agents that its tools ask."""

import json
from pathlib import Path
from typing import Any

import pytest
from praisonaiagents import Agent
from praisonaiagents.context.manager import ContextManager

from clew import Budget, Engine, Sessions, SQLite, run
from clew.adapters.praisonai import ClewBackend
from clew.testing import Answer, Call, StrictProvider

Body = dict[str, Any]

WINDOW = 8_000
REPORT = "\n".join(f"line {n}: the port is {8000 + n}, says a.conf" for n in range(100))


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(SQLite(tmp_path / "clew.db"), Budget(window=WINDOW))


def dump(path: str) -> str:
    """Read a very large file."""
    return "\n".join(f"{path} line {n}: row {n * 13}" for n in range(5_000))


def read(path: str) -> str:
    """Read a file."""
    return "\n".join(f"{path} line {n}: setting_{n} = {n * 7}" for n in range(60))


def results(body: Body) -> list[str]:
    return [m["content"] for m in body["messages"] if m["role"] == "tool"]


def test_a_large_result_is_whole_in_the_log_and_praisons_own_management_is_off(engine: Engine) -> None:
    script = [Answer(calls=(Call("dump", {"path": "big.csv"}),)), Answer("Seen.")]
    with StrictProvider(script, window=WINDOW) as provider:
        backend = ClewBackend("gpt-4o-mini", engine, base_url=f"{provider.url}/v1")
        worker = Agent(instructions="Look.", model=backend, tools=[dump], output="silent")
        assert type(worker.context_manager) is ContextManager  # which PraisonAI gives to every agent with tools
        assert worker.chat("What is in row 4320?") == "Seen."
    assert worker.context_manager is None
    found = run(backend.conversation.thread.answer("search_history", {"query": "big.csv line 4320"})).text
    assert "big.csv line 4320: row 56160" in found


def test_a_history_that_was_brought_along_is_not_cut_before_clew_sees_it(engine: Engine) -> None:
    with StrictProvider([Answer("Going on.")], window=WINDOW) as provider:
        backend = ClewBackend("gpt-4o-mini", engine, session="work", base_url=f"{provider.url}/v1")
        worker = Agent(instructions="Look.", model=backend, tools=[read], output="silent")
        for n in range(400):  # twice what PraisonAI leaves of it for this model
            worker.chat_history += [
                {"role": "user", "content": f"Question {n}. " + f"The key of part {n} is {n * 4711}. " * 40},
                {"role": "assistant", "content": f"Answer {n}."},
            ]
        assert worker.chat("Go on.") == "Going on."
    assert provider.heard[-1].spent.input < WINDOW
    for n in (0, 3, 200, 399):
        found = run(backend.conversation.thread.answer("search_history", {"query": f"key of part {n} is"})).text
        assert f"The key of part {n} is {n * 4711}." in found


def test_somebodys_own_context_manager_is_left_alone(engine: Engine) -> None:
    class Own(ContextManager):  # type: ignore[misc]
        pass

    own = Own("gpt-4o-mini")
    with StrictProvider([Answer("Hello.")], window=WINDOW) as provider:
        backend = ClewBackend("gpt-4o-mini", engine, base_url=f"{provider.url}/v1")
        worker = Agent(instructions="Look.", model=backend, tools=[read], context=own, output="silent")
        worker.chat("Hello.")
    assert worker.context_manager is own


async def test_an_answer_is_in_the_log_before_anybody_asks_again(engine: Engine) -> None:
    with StrictProvider([Answer("The key is 4711.")], window=WINDOW) as provider:
        backend = ClewBackend("gpt-4o-mini", engine, session="work", base_url=f"{provider.url}/v1")
        worker = Agent(instructions="Look.", model=backend, output="silent")
        await worker.achat("What is the key?")
        await worker.achat("Thanks.")
    thread = backend.conversation.thread
    assert "The key is 4711." in (await thread.answer("search_history", {"query": "key"})).text
    assert len(await Sessions(engine).all()) == 1


def asking(body: Body) -> Answer:
    """A lead who has one question answered, a finder who answers it at length, and a summariser."""
    said = json.dumps(body["messages"])
    if "hands to the tasks that come after it" in said:
        return Answer("The port is 8080.")
    if "Find." in str(body["messages"][0]):
        return Answer(REPORT)
    tools = [tool["function"]["name"] for tool in body.get("tools") or ()]
    wanted = next((name for name in tools if name in ("find", "transfer_to_finder")), "")
    if results(body) or not wanted:
        return Answer("It is 8080.")
    key = "question" if wanted == "find" else "message"
    return Answer(calls=(Call(wanted, {key: "Look in a.conf."}),))


@pytest.mark.parametrize("shared", [True, False], ids=["one backend", "a backend each"])
@pytest.mark.parametrize("awaits", [True, False], ids=["async tool", "blocking tool"])
@pytest.mark.parametrize("name", ["finder", None], ids=["named", "unnamed"])
def test_an_agent_that_a_tool_asks_is_a_child_and_its_report_is_summed_up(
    engine: Engine, shared: bool, awaits: bool, name: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    with StrictProvider(asking, window=WINDOW) as provider:
        served = {"base_url": f"{provider.url}/v1", "reports": "summarized"}
        backend = ClewBackend("gpt-4o-mini", engine, session="work", **served)

        def finder() -> Agent:
            own = backend if shared else ClewBackend("gpt-4o-mini", engine, **served)
            return Agent(name=name, instructions="Find.", model=own, output="silent")

        def blocking(question: str) -> str:
            """Delegate a question to a finder."""
            return str(finder().chat(question))

        async def awaited(question: str) -> str:
            """Delegate a question to a finder."""
            return str(await finder().achat(question))

        find = awaited if awaits else blocking
        find.__name__ = "find"
        lead = Agent(name="lead", instructions="Lead.", model=backend, tools=[find], output="silent")
        for _ in range(2):
            assert lead.chat("Which port is it?") == "It is 8080."
    every = run(Sessions(engine).all())
    (own,) = (s for s in every if s.name == "work")
    children = [s for s in every if s.cause == "subagent"]
    assert [child.parent for child in children] == [own.id]  # the second question was answered from what was known
    child = children[0].name
    told = f"The port is 8080.\n\n[a summary; the whole report is in session {child}]"
    assert results(provider.heard[-1].body) == [told]
    assert str(child).startswith(f"work-{name or 'agent'}-")
    assert "belongs to the first agent" not in caplog.text


def test_an_agent_that_work_is_handed_to_is_a_child_too(engine: Engine) -> None:
    with StrictProvider(asking, window=WINDOW) as provider:
        backend = ClewBackend("gpt-4o-mini", engine, session="work", base_url=f"{provider.url}/v1")
        finder = Agent(name="finder", instructions="Find.", model=backend, output="silent")
        lead = Agent(name="lead", instructions="Lead.", model=backend, handoffs=[finder], output="silent")
        assert lead.chat("Which port is it?") == "It is 8080."
    assert REPORT in results(provider.heard[-1].body)[0]
    every = run(Sessions(engine).all())
    assert sorted(str(s.cause) for s in every) == ["start", "subagent"]


def test_where_no_summary_can_be_had_the_report_is_read_whole(engine: Engine) -> None:
    def script(body: Body) -> Answer:
        return Answer("") if "hands to the tasks that come after it" in json.dumps(body) else asking(body)

    with StrictProvider(script, window=WINDOW) as provider:
        backend = ClewBackend("gpt-4o-mini", engine, base_url=f"{provider.url}/v1", reports="summarized")

        def find(question: str) -> str:
            """Delegate a question to a finder."""
            return str(Agent(name="finder", instructions="Find.", model=backend, output="silent").chat(question))

        lead = Agent(name="lead", instructions="Lead.", model=backend, tools=[find], output="silent")
        assert lead.chat("Which port is it?") == "It is 8080."
    assert results(provider.heard[-1].body) == [REPORT]
