"""Real agents of LangChain far past the window of their provider, which refuses what is too long or out of order."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from frameworks.langchain.talking import (
    ROWS,
    TURNS,
    WINDOW,
    awaited,
    blocking,
    contents,
    dump,
    named,
    read,
    reading,
    streamed,
)
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ModelRequest, SummarizationMiddleware, wrap_model_call
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel

from clew import Budget, Engine, Sessions, SQLite, run
from clew.adapters.langchain import ClewMiddleware
from clew.engine.settings import Settings
from clew.errors import SecretFound
from clew.events import Event, Observed
from clew.testing import Answer, Call

LOOKING = ["recall", "search_history"]


def offered(heard: Any) -> list[str]:
    return [tool["function"]["name"] for tool in heard.body.get("tools") or ()]


def said_in(engine: Engine, name: str) -> str:
    """All that was ever said in a conversation."""
    branch = run(engine.store.session("default", name))
    assert branch
    places = run(engine.store.load("default", branch)).said
    nodes = run(engine.store.nodes("default", [place.id for place in places]))
    return "\n".join(node.item.text for node in nodes.values())


@pytest.mark.parametrize("turn", [blocking, awaited, streamed])
def test_an_agent_far_past_the_window_fits(
    turn: Callable[..., Any], engine: Engine, provide: Any, chat: Any, heard: list[Event]
) -> None:
    provider = provide(reading())
    model = chat(provider, stream_usage=True)
    middleware = [ClewMiddleware(engine)]
    agent = create_agent(model, [read], system_prompt="You read.", middleware=middleware, checkpointer=InMemorySaver())
    for _ in range(TURNS):
        state = turn(agent, "Read the next two parts.", named("parts"))
    assert len(provider.heard) == 2 * TURNS  # none was refused
    assert len(state["messages"]) == 5 * TURNS  # the state has all of them
    assert contents("part_0.py") in str([m.content for m in state["messages"]]).replace("\\n", "\n")
    sent = provider.heard[-1].body["messages"]
    assert sent[0] == {"role": "system", "content": "You read."}
    assert len(sent) < 5 * TURNS
    assert offered(provider.heard[-1]) == ["read", *LOOKING]
    told = [event.input for event in heard if isinstance(event, Observed)]
    assert told == [one.spent.input for one in provider.heard]
    assert {session.name for session in run(Sessions(engine).all())} == {"parts"}
    everything = said_in(engine, "parts")
    assert contents("part_0.py") in everything
    assert everything.count("Both are read.") == TURNS  # the last answer, too


def test_what_fits_is_sent_as_without_clew(engine: Engine, provide: Any, chat: Any) -> None:
    bodies = []
    for middleware in ([], [ClewMiddleware(engine, offer=False)]):
        provider = provide(reading())
        agent = create_agent(chat(provider), [read], system_prompt="You read.", middleware=middleware)
        agent.invoke(
            {"messages": [HumanMessage([{"type": "text", "text": "Read."}]), AIMessage("?"), ("user", "Go on.")]}
        )
        bodies.append([one.body for one in provider.heard])
    assert json.dumps(bodies[0]).replace(" ", "") == json.dumps(bodies[1]).replace(" ", "")


def test_an_oversized_result_can_be_recalled(engine: Engine, provide: Any, chat: Any) -> None:
    def script(body: dict[str, Any]) -> Answer:
        last = str(body["messages"][-1]["content"])
        if "Dump it" in last:
            return Answer(calls=(Call("dump"),))
        if "out of view" in last:
            id = last.split("recall ")[1].split()[0].strip("];,")
            return Answer(calls=(Call("recall", {"id": id, "pattern": "row 3000 "}),))
        return Answer("It is 21000.")

    provider = provide(script)
    state = blocking(create_agent(chat(provider), [dump], middleware=[ClewMiddleware(engine)]), "Dump it.")
    assert len(provider.heard) == 3
    assert "row 3000 is 21000" not in str(provider.heard[1].body)
    assert "row 3000 is 21000" in str(provider.heard[2].body["messages"][-1])
    assert f"row {ROWS - 1} is" in state["messages"][2].content  # the state has all of it


async def test_conversations_without_names_are_told_apart(engine: Engine, provide: Any, chat: Any) -> None:
    def script(body: dict[str, Any]) -> Answer:
        if body["messages"][-1]["role"] == "tool":
            return Answer(body["messages"][-1]["content"])
        return Answer(calls=(Call("search_history", {"query": "password"}, id="same"),))

    agent = create_agent(chat(provide(script)), middleware=[ClewMiddleware(engine)])
    given = [f"Who am I? My password is {name}." for name in ("alpha", "beta", "gamma")]
    states = await asyncio.gather(*(agent.ainvoke({"messages": [("user", text)]}) for text in given))
    for state, name in zip(states, ("alpha", "beta", "gamma"), strict=True):
        found = state["messages"][-1].content
        assert name in found
        assert not any(other in found for other in {"alpha", "beta", "gamma"} - {name})


def test_what_was_too_long_is_sent_again_shorter(tmp_path: Path, provide: Any, chat: Any) -> None:
    provider = provide([Answer("Noted.")])
    clew = ClewMiddleware(tmp_path / "own.db")  # the window is not known: gpt-4o-mini has 128,000
    said = [(("user", "assistant")[n % 2], f"Page {n}. " + "word " * 700) for n in range(31)]
    state = create_agent(chat(provider), middleware=[clew]).invoke({"messages": said})
    assert state["messages"][-1].content == "Noted."
    assert len(provider.heard) == 2
    assert len(state["messages"]) == 32
    clew.close()


def test_a_profile_names_the_window(tmp_path: Path, provide: Any, chat: Any) -> None:
    provider = provide([Answer("Noted.")])
    model = chat(provider, model="of-our-own", profile={"max_input_tokens": WINDOW})
    said = [(("user", "assistant")[n % 2], f"Page {n}. " + "word " * 700) for n in range(31)]
    create_agent(model, middleware=[ClewMiddleware(tmp_path / "own.db")]).invoke({"messages": said})
    assert len(provider.heard) == 1


def test_other_errors_are_the_agents(engine: Engine, provide: Any, chat: Any) -> None:
    provider = provide([Answer(status=401)])
    with pytest.raises(Exception, match="401"):
        blocking(create_agent(chat(provider), middleware=[ClewMiddleware(engine)]), "Hello.")
    assert len(provider.heard) == 1


@pytest.mark.parametrize("turn", [blocking, awaited])
def test_where_clew_fails_the_agent_goes_on(
    turn: Callable[..., Any], tmp_path: Path, provide: Any, chat: Any, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broken.db").write_text("no store")
    provider = provide(reading())
    state = turn(create_agent(chat(provider), [read], middleware=[ClewMiddleware(tmp_path / "broken.db")]), "Read.")
    assert state["messages"][-1].content == "Both are read."
    assert len(provider.heard) == 2
    assert offered(provider.heard[0]) == ["read"]
    assert "the original request is sent unchanged" in caplog.text


def test_a_secret_is_not_sent(tmp_path: Path, provide: Any, chat: Any) -> None:
    engine = Engine(SQLite(tmp_path / "own.db"), Budget(window=WINDOW), Settings(secrets="refuse"))
    provider = provide([Answer("Noted.")])
    with pytest.raises(SecretFound):
        blocking(create_agent(chat(provider), middleware=[ClewMiddleware(engine)]), "The key is AKIAIOSFODNN7EXAMPLQ.")
    assert not provider.heard


def test_another_process_goes_on(tmp_path: Path, engine: Engine, provide: Any, chat: Any) -> None:
    provider, saved = provide(reading()), InMemorySaver()
    for _ in range(TURNS - 1):
        agent = create_agent(chat(provider), [read], middleware=[ClewMiddleware(engine)], checkpointer=saved)
        blocking(agent, "Read the next two parts.", named("parts"))
    before = provider.heard[-1].body["messages"]
    again = Engine(SQLite(tmp_path / "clew.db"), engine.budget, engine.settings)
    agent = create_agent(chat(provider), [read], middleware=[ClewMiddleware(again)], checkpointer=saved)
    blocking(agent, "Read the next two parts.", named("parts"))
    assert provider.heard[-2].body["messages"][: len(before)] == before


def test_a_call_that_was_approved_in_another_process_is_answered(
    tmp_path: Path, engine: Engine, provide: Any, chat: Any
) -> None:
    answers = [Answer(calls=(Call("search_history", {"query": "harbour"}),)), Answer("Found.")]
    provider, saved = provide(answers), InMemorySaver()

    def agent(engine: Engine) -> Any:
        asking = HumanInTheLoopMiddleware(interrupt_on={"search_history": True})
        return create_agent(chat(provider), middleware=[asking, ClewMiddleware(engine)], checkpointer=saved)

    assert "__interrupt__" in blocking(agent(engine), "The harbour is closed.", named("talk"))
    again = Engine(SQLite(tmp_path / "clew.db"), engine.budget, engine.settings)
    state = agent(again).invoke(Command(resume={"decisions": [{"type": "approve"}]}), named("talk"))
    assert "The harbour is closed." in state["messages"][-2].content
    assert state["messages"][-1].content == "Found."


def test_an_agent_that_decides_is_told_and_begins_a_new_session(engine: Engine, provide: Any, chat: Any) -> None:
    def script(body: dict[str, Any]) -> Answer:
        *_, before, last = body["messages"]
        told = json.loads(last["content"].split("<context_status>")[1].split("</context_status>")[0])
        if told["used_pct"] >= 50 and before["role"] == "user":
            return Answer(calls=(Call("new_session", {"summary": "Pages so far: all well."}),))
        return Answer("Noted.")

    provider = provide(script)
    agent = create_agent(
        chat(provider), middleware=[ClewMiddleware(engine, method="llm", when="50%")], checkpointer=InMemorySaver()
    )
    for n in range(10):
        blocking(agent, f"Page {n}. " + "word " * 700, named("pages"))
    assert offered(provider.heard[0])[0] == "new_session"
    assert "Pages so far: all well." in str(provider.heard[-1].body["messages"])
    assert max(one.spent.input for one in provider.heard) < WINDOW
    assert "handoff" in {session.cause for session in run(Sessions(engine).all())}


async def test_nothing_blocks_the_loop_of_an_agent(tmp_path: Path, provide: Any, chat: Any) -> None:
    """LangGraph's server refuses what would."""
    provider, clew = provide(reading()), ClewMiddleware(tmp_path / "own.db")
    agent = create_agent(chat(provider), [read], middleware=[clew], checkpointer=InMemorySaver())
    with blockbuster_ctx():
        for _ in range(2):
            await agent.ainvoke({"messages": [("user", "Read the next two parts.")]}, named("parts"))
    assert offered(provider.heard[-1]) == ["read", *LOOKING]
    await asyncio.to_thread(clew.close)


def test_a_request_that_another_middleware_made_by_hand(engine: Engine, provide: Any, chat: Any) -> None:
    @wrap_model_call
    def anew(request: ModelRequest, handler: Any) -> Any:
        return handler(ModelRequest(model=request.model, messages=request.messages, tools=request.tools))

    provider = provide([Answer("Noted.")])
    state = blocking(create_agent(chat(provider), middleware=[anew, ClewMiddleware(engine)]), "Hello.")
    assert state["messages"][-1].content == "Noted."


class Report(BaseModel):
    """What was found."""

    port: int


@pytest.mark.parametrize("form", [Report, ToolStrategy(Report)])
def test_structured_answers(form: Any, engine: Engine, provide: Any, chat: Any) -> None:
    def script(body: dict[str, Any]) -> Answer:
        if "Report" in offered_in(body):
            return Answer(calls=(Call("Report", {"port": 8443}),))
        return Answer('{"port": 8443}')

    provider = provide(script)
    agent = create_agent(
        chat(provider), middleware=[ClewMiddleware(engine)], response_format=form, checkpointer=InMemorySaver()
    )
    for n in range(12):
        state = blocking(agent, f"Page {n}. " + "word " * 700, named("pages"))
        assert state["structured_response"] == Report(port=8443)
    assert len(provider.heard) == 12


def offered_in(body: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools") or ()]


def test_a_tool_of_the_same_name_is_the_agents(engine: Engine, provide: Any, chat: Any) -> None:
    @tool
    def recall(id: str) -> str:
        """Call somebody again."""
        return f"{id} comes back."

    provider = provide([Answer(calls=(Call("recall", {"id": "Ada"}),)), Answer("Well.")])
    state = blocking(
        create_agent(chat(provider), [recall], middleware=[ClewMiddleware(engine, offer=False)]), "Call Ada."
    )
    assert state["messages"][-2].content == "Ada comes back."


def test_no_agent_has_two_that_summarise(engine: Engine, provide: Any, chat: Any) -> None:
    model = chat(provide([Answer("Noted.")]))
    with pytest.raises(AssertionError, match="duplicate middleware"):
        create_agent(model, middleware=[ClewMiddleware(engine), SummarizationMiddleware(model)])
