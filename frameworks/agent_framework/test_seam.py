"""Each thing that the provider does, in the loop of Agent Framework."""

import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_framework import AgentSession, Content, Message
from agent_framework.exceptions import ChatClientException
from agent_framework.openai import OpenAIChatClient
from frameworks.agent_framework.talking import talk
from frameworks.reading import TURNS, read, reading
from pydantic import BaseModel

from clew import Engine, Sessions, SQLite
from clew.adapters.agent_framework import ClewProvider
from clew.engine.settings import Settings
from clew.errors import SecretFound
from clew.events import Event, Observed
from clew.testing import Answer, Call, StrictProvider

Make = Callable[..., Any]
LONG = "word " * 300


def grown(turns: int) -> list[Message]:
    return [
        message
        for n in range(turns)
        for message in (Message("user", [f"Page {n}. {LONG}"]), Message("assistant", [f"Read page {n}."]))
    ]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_long_session_fits_and_its_history_stays_whole(
    engine: Engine, heard: list[Event], provide: Make, agent: Make, stream: bool
) -> None:
    said = reading()
    provider: StrictProvider = provide(lambda _: next(said))
    asking, session = agent(provider, ClewProvider(engine), tools=[read]), AgentSession(session_id="port")
    await talk(asking, session, stream=stream)
    assert len(provider.heard) == 2 * TURNS
    kept = [state["messages"] for state in session.state.values() if "messages" in state]
    assert len(kept[0]) == 4 * TURNS
    last = provider.heard[-1].body["messages"]
    assert len(last) < 4 * TURNS
    assert last[0] == {"role": "system", "content": "You read."}
    chain = await Sessions(engine).lineage("port")
    assert [one.cause for one in chain[:2]] == ["start", "compaction"]
    counted = [event for event in heard if isinstance(event, Observed)]
    assert len(counted) == 2 * TURNS
    assert counted[-1].input == provider.heard[-1].spent.input
    branch = await engine.store.session("default", "port")
    found = await engine.search("default", f"Read parts {2 * TURNS - 2}", branch)
    assert any(f"Read parts {2 * TURNS - 2}" in node.item.text for node in found)


async def test_what_fits_goes_out_as_without_clew(engine: Engine, provide: Make, agent: Make) -> None:
    bodies = []
    for providers in ([], [ClewProvider(engine, offer=False)]):
        said = reading(2)
        provider = provide(lambda _, said=said: next(said))
        await talk(agent(provider, *providers, tools=[read]), AgentSession(), 2)
        bodies.append([re.sub(r"call_\w+", "call", one.raw.decode()) for one in provider.heard])
    assert bodies[0] == bodies[1]


async def test_a_result_larger_than_the_window_is_a_preview_that_can_be_recalled(
    engine: Engine, provide: Make, agent: Make
) -> None:
    def script(body: dict[str, Any]) -> Answer:
        last = json.dumps(body["messages"][-1])
        if "KEY = 4711" in last:
            return Answer("The key is 4711.")
        if body["messages"][-1]["role"] != "tool":
            return Answer(calls=(Call("dump"),))
        found = re.search(r"recall (\w{8,})", last)
        return Answer(calls=(Call("recall", {"id": found[1], "pattern": "KEY"}),)) if found else Answer("Nothing.")

    def dump() -> str:
        """Everything."""
        return "\n".join([*(f"line {n}" for n in range(5000)), "KEY = 4711", *(f"line {n}" for n in range(5000))])

    provider = provide(script)
    answer = await agent(provider, ClewProvider(engine), tools=[dump]).run("Dump it.")
    assert answer.text == "The key is 4711."
    assert len(provider.heard) == 3


async def test_a_refused_request_is_sent_again_and_fits(tmp_path: Path, provide: Make, agent: Make) -> None:
    provider = provide()  # gpt-4o has 128,000, but here less
    said = [*grown(40), Message("user", ["Go on."])]
    with pytest.raises(ChatClientException):
        await agent(provider).run(said)
    for name in ("whole", "streamed"):
        asking, before = agent(provider, ClewProvider(tmp_path / f"{name}.db")), len(provider.heard)
        if name == "whole":
            answer = await asking.run(said)
        else:
            stream = asking.run(said, stream=True)
            assert "".join([update.text async for update in stream]) == "Understood."
            answer = await stream.get_final_response()
        assert answer.text == "Understood."
        assert len(provider.heard) == before + 2


async def test_another_process_goes_on(tmp_path: Path, engine: Engine, provide: Make, agent: Make) -> None:
    said = reading()
    provider = provide(lambda _: next(said))
    session = AgentSession(session_id="port")
    await talk(agent(provider, ClewProvider(engine), tools=[read]), session, TURNS - 1)
    before = provider.heard[-1].body["messages"]
    loaded = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
    again = Engine(SQLite(tmp_path / "clew.db"), engine.budget, engine.settings)
    await talk(agent(provider, ClewProvider(again), tools=[read]), loaded, 1)
    # Agent Framework itself names the author of an answer only when its run has ended.
    after = [{k: v for k, v in one.items() if k != "name"} for one in provider.heard[-2].body["messages"]]
    assert after[: len(before)] == [{k: v for k, v in one.items() if k != "name"} for one in before]
    assert len({s.branch for s in await Sessions(again).all()}) == 1


async def test_an_answer_with_a_schema_fits(engine: Engine, provide: Make, agent: Make) -> None:
    class Count(BaseModel):
        pages: int

    provider = provide(lambda _: Answer('{"pages": 7}'))
    said = [*grown(40), Message("user", ["How many?"])]
    answer = await agent(provider, ClewProvider(engine)).run(said, options={"response_format": Count})
    assert answer.value == Count(pages=7)
    assert len(provider.heard) == 1


async def test_an_agent_that_is_a_tool_is_a_child(engine: Engine, provide: Make, agent: Make) -> None:
    def script(body: dict[str, Any]) -> Answer:
        last = body["messages"][-1]
        return Answer(calls=(Call("finder", {"task": "Find it."}),)) if last["content"] == "Start." else Answer("8080")

    provider = provide(script)
    clew = ClewProvider(engine)
    finder = agent(provider, clew, name="finder", description="Finds.")
    asking = agent(provider, clew, tools=[finder.as_tool()])
    await asking.run("Start.", session=AgentSession(session_id="root"))
    every = await Sessions(engine).all()
    (child,) = (s for s in every if s.cause == "subagent")
    assert child.parent in {s.id for s in every if s.name == "root"}


async def test_an_agent_that_decides_is_told_and_begins_anew(engine: Engine, provide: Make, agent: Make) -> None:
    def script(body: dict[str, Any]) -> Answer:
        texts = json.dumps(body["messages"])
        if "used_pct" in texts and "Page 5" in texts and "port is 8080" not in texts:
            return Answer(calls=(Call("new_session", {"summary": "The port is 8080."}),))
        return Answer("Read.")

    provider = provide(script)
    clew = ClewProvider(engine)
    await clew.switch("port", "llm")
    asking, session = agent(provider, clew), AgentSession(session_id="port")
    for n in range(7):
        await asking.run(f"Page {n}. {LONG}", session=session)
    assert "new_session" in [tool["function"]["name"] for tool in provider.heard[0].body["tools"]]
    last = json.dumps(provider.heard[-1].body["messages"])
    assert "The port is 8080." in last
    assert "Page 2" not in last
    assert "context_status" not in json.dumps(session.to_dict())


async def test_openai_reasoning_goes_with_what_it_came_with(
    engine: Engine, provide: Make, agent: Make, client: Make
) -> None:
    said = reading()

    def script(_: dict[str, Any]) -> Answer:
        one = next(said)
        return Answer(one.text, one.calls, reasoning="Let me think about this.")

    provider = provide(script)
    served = client(provider, OpenAIChatClient, "gpt-5")
    options = {"store": False, "include": ["reasoning.encrypted_content"]}
    asking = agent(provider, ClewProvider(engine), client=served, tools=[read], default_options=options)
    await talk(asking, AgentSession(session_id="port"))
    assert len(provider.heard) == 2 * TURNS
    assert len(provider.heard[-1].body["input"]) < 5 * TURNS


async def test_pictures_come_back_as_they_were(engine: Engine, provide: Make, agent: Make) -> None:
    provider = provide()
    picture = Content.from_data(b"\x89PNG\r\n\x1a\n\xff\xfe", media_type="image/png")
    await agent(provider, ClewProvider(engine)).run([*grown(40), Message("user", ["What is this?", picture])])
    (last,) = provider.heard
    assert picture.uri in json.dumps(last.body["messages"][-1])
    assert len(last.body["messages"]) < 80


async def test_where_clew_fails_the_agent_goes_on(
    tmp_path: Path, provide: Make, agent: Make, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broken.db").write_text("no store")
    provider = provide()
    with caplog.at_level(logging.WARNING, "clew"):
        answer = await agent(provider, ClewProvider(tmp_path / "broken.db")).run("Hi.")
    assert answer.text == "Understood."
    assert "the original request is sent unchanged" in caplog.text


async def test_a_secret_that_must_not_be_sent_ends_the_run(tmp_path: Path, provide: Make, agent: Make) -> None:
    engine = Engine(SQLite(tmp_path / "clew.db"), settings=Settings(secrets="refuse"))
    provider = provide()
    with pytest.raises(SecretFound):
        await agent(provider, ClewProvider(engine)).run("The key is sk-proj-" + "aB3" * 16)
    assert not provider.heard
