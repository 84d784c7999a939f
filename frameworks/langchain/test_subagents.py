"""Agents that tools ask, that are nodes of a larger graph, and those of deepagents: each in the lineage."""

import asyncio
from typing import Any

import pytest
from deepagents import create_deep_agent
from frameworks.langchain.talking import WINDOW, awaited, blocking, named, read
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from clew import Engine, Sessions, run
from clew.adapters.langchain import ClewMiddleware
from clew.testing import Answer, Call

FILES = 24


def names(body: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools") or ()]


def finding(body: dict[str, Any]) -> Answer:
    """A model that asks two agents at once, which read; then it says what they said."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return Answer(f"They say: {last['content']}" if "find" in names(body) else "All is well.")
    if "find" in names(body):
        return Answer(calls=tuple(Call("find", {"question": f"Look at {n}."}) for n in (1, 2)))
    return Answer(calls=(Call("read", {"path": "part_1.py"}),))


@pytest.mark.parametrize("turn", [blocking, awaited])
@pytest.mark.parametrize("thread", [None, "main"])
def test_an_agent_that_a_tool_asks_is_a_child(
    turn: Any, thread: str | None, engine: Engine, provide: Any, chat: Any
) -> None:
    provider, clew = provide(finding), ClewMiddleware(engine)
    other = create_agent(chat(provider), [read], middleware=[clew], name="finder")

    @tool
    def find(question: str) -> str:
        """Have somebody find out."""
        found: str = other.invoke({"messages": [("user", question)]})["messages"][-1].content
        return found

    saved = InMemorySaver() if thread else None
    agent = create_agent(chat(provider), [find], middleware=[clew], checkpointer=saved)
    for _ in range(2):
        turn(agent, "What is there?", named(thread) if thread else None)
    every = run(Sessions(engine).all())
    children = [session for session in every if session.cause == "subagent"]
    assert len({child.branch for child in children}) == 4
    assert {child.parent for child in children} <= {session.id for session in every if session.cause != "subagent"}
    assert all("-finder-" in str(child.name) for child in children)
    assert len(provider.heard) == 2 * (2 + 4)


def test_agents_that_are_nodes_have_conversations_of_their_own(engine: Engine, provide: Any, chat: Any) -> None:
    provider, clew = provide([Answer("Noted.")]), ClewMiddleware(engine)
    graph = StateGraph(MessagesState)
    for name, prompt in (("writer", "You write."), ("critic", "You judge.")):
        graph.add_node(name, create_agent(chat(provider), middleware=[clew], system_prompt=prompt))
    graph.add_edge(START, "writer")
    graph.add_edge("writer", "critic")
    compiled: Any = graph.compile(checkpointer=InMemorySaver())
    for n in range(8):
        state = blocking(compiled, f"Page {n}. " + "word " * 700, named("book"))
    assert len(state["messages"]) == 3 * 8
    assert len(provider.heard) == 2 * 8
    every = run(Sessions(engine).all())
    assert {session.name for session in every} == {"book/writer", "book/critic"}
    assert len({session.branch for session in every}) == 2


def deep(body: dict[str, Any]) -> Answer:
    """A model of deepagents: it has a part of the work done, and who does it reads many files."""
    messages = body["messages"]
    if "task" in names(body):
        if messages[-1]["role"] == "tool":
            return Answer("The work is done.")
        return Answer(calls=(Call("task", {"description": "Read all.", "subagent_type": "general-purpose"}),))
    done = sum("part_" in str(message.get("tool_calls")) for message in messages)
    logged = str(messages).count("looked at part_")
    if done + logged > 8 and messages[-1]["role"] == "tool":
        return Answer("All is read.")
    return Answer(calls=(Call("read", {"path": f"part_{done}.py"}), Call("read", {"path": f"part_{done + 50}.py"})))


@pytest.mark.parametrize("turn", [blocking, awaited])
def test_deepagents_has_it_instead_of_its_own(turn: Any, provide: Any, chat: Any, tmp_path: Any) -> None:
    provider = provide(deep, window=20_000)
    clew = ClewMiddleware(tmp_path / "deep.db")
    model = chat(provider, profile={"max_input_tokens": 16_000})
    agent = create_deep_agent(model, [read], middleware=[clew], checkpointer=InMemorySaver())
    state = turn(agent, "Have it read.", named("deep"))
    assert state["messages"][-1].content == "The work is done."
    assert all({"recall", "search_history"} <= set(names(one.body)) for one in provider.heard)
    every = run(Sessions(clew.engine).all())
    assert {session.name for session in every if session.cause == "start"} == {"deep"}
    (child,) = {session.branch for session in every if session.cause == "subagent"}
    assert "compaction" in {session.cause for session in every if session.branch == child}
    clew.close()


def test_growth_in_deepagents(provide: Any, chat: Any, tmp_path: Any) -> None:
    """Its own tools and prompts take more than half of this window."""
    provider = provide([Answer("Noted.")], window=2 * WINDOW)
    clew = ClewMiddleware(tmp_path / "deep.db")
    model = chat(provider, profile={"max_input_tokens": 2 * WINDOW})
    agent = create_deep_agent(model, [read], middleware=[clew], checkpointer=InMemorySaver())
    for n in range(16):
        state = asyncio.run(agent.ainvoke({"messages": [("user", f"Page {n}. " + "word " * 700)]}, named("deep")))
    assert len(state["messages"]) == 32
    assert len(provider.heard) == 16
    clew.close()
