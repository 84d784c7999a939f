"""Each thing that the plugin does, in the loop of ADK."""

import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from frameworks.adk.talking import runner, say, talk
from frameworks.reading import TURNS, read, reading
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from google.genai.errors import ClientError
from pydantic import BaseModel

from clew import Engine, Sessions, SQLite
from clew.adapters.adk import ClewPlugin
from clew.engine.settings import Settings
from clew.errors import SecretFound
from clew.events import Event, Observed
from clew.testing import Answer, Call, StrictProvider

Make = Callable[..., Any]
NAME = "reading/me/port"
LONG = "word " * 300


def texts(body: dict[str, Any]) -> str:
    return json.dumps(body["contents"])


@pytest.mark.parametrize("mode", [StreamingMode.NONE, StreamingMode.SSE])
async def test_a_long_session_fits_and_its_events_stay_whole(
    engine: Engine, heard: list[Event], provide: Make, agent: Make, mode: StreamingMode
) -> None:
    said = reading()
    provider: StrictProvider = provide(lambda _: next(said))
    running = runner(agent(provider, tools=[read]), ClewPlugin(engine))
    await talk(running, config=RunConfig(streaming_mode=mode))
    assert len(provider.heard) == 2 * TURNS
    session = await running.session_service.get_session(app_name="reading", user_id="me", session_id="port")
    assert session
    assert len([event for event in session.events if event.content]) == 4 * TURNS
    assert len(provider.heard[-1].body["contents"]) < 4 * TURNS
    assert "You read." in json.dumps(provider.heard[-1].body["systemInstruction"])
    chain = await Sessions(engine).lineage(NAME)
    assert [one.cause for one in chain[:2]] == ["start", "compaction"]
    counted = [event for event in heard if isinstance(event, Observed)]
    assert len(counted) == 2 * TURNS
    assert counted[-1].input == provider.heard[-1].spent.input
    branch = await engine.store.session("default", NAME)
    found = await engine.search("default", f"Read parts {2 * TURNS - 2}", branch)
    assert any(f"Read parts {2 * TURNS - 2}" in node.item.text for node in found)


async def test_what_fits_goes_out_as_without_clew(engine: Engine, provide: Make, agent: Make) -> None:
    bodies = []
    for plugins in ([], [ClewPlugin(engine, offer=False)]):
        said = reading(2)
        provider = provide(lambda _, said=said: next(said))
        await talk(runner(agent(provider, tools=[read]), *plugins), 2)
        bodies.append([one.raw for one in provider.heard])
    assert bodies[0] == bodies[1]


async def test_a_result_larger_than_the_window_is_a_preview_that_can_be_recalled(
    engine: Engine, provide: Make, agent: Make
) -> None:
    def script(body: dict[str, Any]) -> Answer:
        last = json.dumps(body["contents"][-1])
        if "KEY = 4711" in last:
            return Answer("The key is 4711.")
        if "functionResponse" not in last:
            return Answer(calls=(Call("dump"),))
        found = re.search(r"recall (\w{8,})", last)
        return Answer(calls=(Call("recall", {"id": found[1], "pattern": "KEY"}),)) if found else Answer("Nothing.")

    def dump() -> str:
        """Everything."""
        return "\n".join([*(f"line {n}" for n in range(5000)), "KEY = 4711", *(f"line {n}" for n in range(5000))])

    provider = provide(script)
    running = runner(agent(provider, tools=[dump]), ClewPlugin(engine))
    assert await say(running, "Dump it.") == "The key is 4711."
    assert len(provider.heard) == 3


@pytest.mark.parametrize("mode", [StreamingMode.NONE, StreamingMode.SSE])
async def test_a_refused_request_is_sent_again_and_fits(
    tmp_path: Path, provide: Make, agent: Make, mode: StreamingMode
) -> None:
    provider = provide()  # Gemini has a million, but here less
    config = RunConfig(streaming_mode=mode)
    alone = runner(agent(provider))

    async def pages(running: Any) -> None:
        for n in range(30):
            assert await say(running, f"Page {n}. {LONG}", config=config) == "Understood."

    with pytest.raises(ClientError):
        await pages(alone)
    running = runner(agent(provider), ClewPlugin(tmp_path / "clew.db"))
    before = len(provider.heard)
    await pages(running)
    assert len(provider.heard) == before + 31


async def test_another_process_goes_on(tmp_path: Path, engine: Engine, provide: Make, agent: Make) -> None:
    said = reading()
    provider = provide(lambda _: next(said))
    path = str(tmp_path / "sessions.db")
    await talk(
        runner(agent(provider, tools=[read]), ClewPlugin(engine), sessions=SqliteSessionService(path)), TURNS - 1
    )
    before = provider.heard[-1].body["contents"]
    again = Engine(SQLite(tmp_path / "clew.db"), engine.budget, engine.settings)
    await talk(runner(agent(provider, tools=[read]), ClewPlugin(again), sessions=SqliteSessionService(path)), 1)
    assert provider.heard[-2].body["contents"][: len(before)] == before
    assert len({s.branch for s in await Sessions(again).all()}) == 1


async def test_an_answer_with_a_schema_fits_and_gets_no_tools(engine: Engine, provide: Make, agent: Make) -> None:
    class Count(BaseModel):
        pages: int

    provider = provide(lambda _: Answer('{"pages": 7}'))
    running = runner(agent(provider, output_schema=Count), ClewPlugin(engine))
    for n in range(30):
        assert await say(running, f"Page {n}. {LONG}") == '{"pages": 7}'
    assert "tools" not in provider.heard[-1].body
    assert len(provider.heard[-1].body["contents"]) < 59


async def test_agents_that_others_ask_or_hand_over_to_are_in_the_lineage(
    engine: Engine, provide: Make, agent: Make
) -> None:
    def script(body: dict[str, Any]) -> Answer:
        last, system = json.dumps(body["contents"][-1]), json.dumps(body["systemInstruction"])
        if "You find." in system:
            return Answer("8080")
        if "You write." in system:
            return Answer("Written.")
        if "functionResponse" not in last:
            return Answer(calls=(Call("finder", {"request": "Find the port."}),))
        return Answer(calls=(Call("transfer_to_agent", {"agent_name": "writer"}),))

    provider = provide(script)
    finder = agent(provider, name="finder", description="Finds.", instruction="You find.")
    writer = agent(provider, name="writer", description="Writes.", instruction="You write.")
    asking = agent(provider, tools=[AgentTool(finder)], sub_agents=[writer])
    assert await say(runner(asking, ClewPlugin(engine)), "Start.") == "Written."
    every = await Sessions(engine).all()
    (root,) = (s for s in every if s.cause == "start")
    causes = {s.cause: s for s in every if s is not root}
    assert causes.keys() == {"subagent", "handoff"}
    assert {s.parent for s in causes.values()} == {root.id}
    assert causes["handoff"].name == f"{NAME}/writer"


async def test_an_agent_that_decides_is_told_and_begins_anew(engine: Engine, provide: Make, agent: Make) -> None:
    def script(body: dict[str, Any]) -> Answer:
        if "used_pct" in texts(body) and "Page 5" in texts(body) and "port is 8080" not in texts(body):
            return Answer(calls=(Call("new_session", {"summary": "The port is 8080."}),))
        return Answer("Read.")

    provider = provide(script)
    plugin = ClewPlugin(engine)
    await plugin.switch(NAME, "llm")
    running = runner(agent(provider), plugin)
    for n in range(7):
        await say(running, f"Page {n}. {LONG}")
    names = [one["name"] for one in provider.heard[0].body["tools"][0]["functionDeclarations"]]
    assert "new_session" in names
    last = texts(provider.heard[-1].body)
    assert "The port is 8080." in last
    assert "Page 2" not in last
    assert last.count("context_status") == 2  # the one of this call, opened and closed


async def test_signatures_and_pictures_come_back_as_they_were(engine: Engine, provide: Make, agent: Make) -> None:
    said = reading()

    def script(_: dict[str, Any]) -> Answer:
        one = next(said)
        return Answer(one.text, one.calls, reasoning="Let me think about this.")

    provider = provide(script)
    running = runner(agent(provider, tools=[read]), ClewPlugin(engine))
    await talk(running, TURNS - 1)
    picture = types.Part(inline_data=types.Blob(data=b"\x89PNG\r\n\x1a\n\xff\xfe", mime_type="image/png"))
    message = types.Content(role="user", parts=[types.Part(text="What is this?"), picture])
    async for _ in running.run_async(user_id="me", session_id="port", new_message=message):
        pass
    assert len(provider.heard) == 2 * TURNS
    last = texts(provider.heard[-1].body)
    assert "iVBORw0KGgr" in last
    assert "thoughtSignature" in last


async def test_where_clew_fails_the_agent_goes_on(
    tmp_path: Path, provide: Make, agent: Make, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broken.db").write_text("no store")
    provider = provide()
    with caplog.at_level(logging.WARNING, "clew"):
        assert await say(runner(agent(provider), ClewPlugin(tmp_path / "broken.db")), "Hi.") == "Understood."
    assert "the original request is sent unchanged" in caplog.text


async def test_a_secret_that_must_not_be_sent_ends_the_run(tmp_path: Path, provide: Make, agent: Make) -> None:
    engine = Engine(SQLite(tmp_path / "clew.db"), settings=Settings(secrets="refuse"))
    provider = provide()
    with pytest.raises(RuntimeError) as raised:  # ADK raises this for whatever a plugin raises
        await say(runner(agent(provider), ClewPlugin(engine)), "The key is sk-proj-" + "aB3" * 16)
    assert isinstance(raised.value.__cause__, SecretFound)
    assert not provider.heard


def test_blocking_runs_fit(engine: Engine, provide: Make, agent: Make) -> None:
    provider = provide()
    running = runner(agent(provider), ClewPlugin(engine))
    for n in range(20):
        said = types.Content(role="user", parts=[types.Part(text=f"Page {n}. {LONG}")])
        list(running.run(user_id="me", session_id="port", new_message=said))
    assert len(provider.heard) == 20
    assert len(provider.heard[-1].body["contents"]) < 39
