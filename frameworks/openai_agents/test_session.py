"""Real runs of the Agents SDK far past the window of their provider, which refuses what is too long or out of order."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, ModelSettings, OpenAIProvider, RunConfig, Runner, SQLiteSession
from agents.memory import Session
from frameworks.openai_agents.talking import (
    ROWS,
    TURNS,
    awaited,
    dump,
    is_result,
    names,
    read,
    reading,
    said,
    streamed,
)
from frameworks.reading import WINDOW, contents
from pydantic import BaseModel

from clew import Budget, Engine, Sessions, SQLite, run
from clew.adapters.openai_agents import ClewSession
from clew.engine.settings import Settings
from clew.errors import SecretFound
from clew.events import Event, Observed
from clew.testing import Answer, Call

LOOKING = ["recall", "search_history"]


def said_in(engine: Engine, name: str) -> str:
    """All that was ever said in a conversation."""
    branch = run(engine.store.session("default", name))
    assert branch
    places = run(engine.store.load("default", branch)).said
    nodes = run(engine.store.nodes("default", [place.id for place in places]))
    return "\n".join(node.item.text for node in nodes.values())


def reader(session: ClewSession, **given: Any) -> Agent[Any]:
    return Agent("Reader", instructions="You read.", model="gpt-4o-mini", tools=[read, *session.tools], **given)


@pytest.mark.parametrize("turn", [awaited, streamed])
@pytest.mark.parametrize("responses", [True, False])
async def test_an_agent_far_past_the_window_fits(
    turn: Callable[..., Any], responses: bool, engine: Engine, provide: Any, config: Any, heard: list[Event]
) -> None:
    provider = provide(reading())
    session = ClewSession(SQLiteSession("parts"), engine)
    assert isinstance(session, Session)
    agent = reader(session, model_settings=ModelSettings(include_usage=True))
    for _ in range(TURNS):
        output = await turn(agent, "Read the next two parts.", session, session.run_config(config(provider, responses)))
        assert output == "Both are read."
    assert len(provider.heard) == 2 * TURNS  # none was refused
    items = await session.get_items()
    assert len(items) == 6 * TURNS  # the SDK's session has all of them
    assert contents("part_0.py", 110) in str([item.get("output") for item in items]).replace("\\n", "\n")
    assert len(said(provider.heard[-1].body)) < 6 * TURNS
    assert names(provider.heard[-1].body) == ["read", *LOOKING]
    told = [event.input for event in heard if isinstance(event, Observed)]
    assert told == [one.spent.input for one in provider.heard]
    every = run(Sessions(engine).all())
    assert {session.name for session in every} == {"parts"}
    assert len({session.branch for session in every}) == 1
    everything = said_in(engine, "parts")
    assert contents("part_0.py", 110) in everything
    assert everything.count("Both are read.") == TURNS  # the last answer, too


def test_a_run_that_is_not_awaited(engine: Engine, provide: Any, config: Any) -> None:
    provider = provide([Answer("Noted.")])
    session = ClewSession(SQLiteSession("pages"), engine)
    for n in range(14):
        text = f"Page {n}. " + "word " * 700
        made = session.run_config(config(provider))
        Runner.run_sync(Agent("Reader", model="gpt-4o-mini"), text, session=session, run_config=made)
    assert len(provider.heard) == 14
    assert len(provider.heard[-1].body["input"]) < 27


async def test_what_fits_is_sent_as_without_clew(engine: Engine, provide: Any, config: Any) -> None:
    bodies = []
    for mine in (False, True):
        provider, made = provide(reading("Hm.")), SQLiteSession("same")
        session = ClewSession(made, engine) if mine else made
        given = config(provider)
        agent: Agent[Any] = Agent("Reader", instructions="You read.", model="gpt-4o-mini", tools=[read])
        for _ in range(2):
            await awaited(agent, "Read.", session, session.run_config(given) if mine else given)
        bodies.append([one.body for one in provider.heard])
    assert bodies[0] == bodies[1]


async def test_reasoning_stays_with_what_it_belongs_to(engine: Engine, provide: Any, config: Any) -> None:
    provider = provide(reading("Which are next?"))
    session = ClewSession(SQLiteSession("thinking"), engine)
    agent = reader(session)
    for _ in range(TURNS):
        await awaited(agent, "Read the next two parts.", session, session.run_config(config(provider)))
    assert len(provider.heard) == 2 * TURNS
    assert "reasoning" in {item.get("type") for item in provider.heard[-1].body["input"]}


async def test_an_oversized_result_can_be_recalled(engine: Engine, provide: Any, config: Any) -> None:
    def script(body: dict[str, Any]) -> Answer:
        last = str(body["input"][-1])
        if "Dump it" in last:
            return Answer(calls=(Call("dump"),))
        if "out of view" in last:
            id = last.split("recall ")[1].split()[0].strip("];,'")
            return Answer(calls=(Call("recall", {"id": id, "pattern": "row 3000 "}),))
        return Answer("It is 21000.")

    provider = provide(script)
    session = ClewSession(SQLiteSession("dump"), engine)
    agent: Agent[Any] = Agent("Dumper", model="gpt-4o-mini", tools=[dump, *session.tools])
    await awaited(agent, "Dump it.", session, session.run_config(config(provider)))
    assert len(provider.heard) == 3
    assert "row 3000 is 21000" not in str(provider.heard[1].body)
    assert "row 3000 is 21000" in str(provider.heard[2].body["input"][-1])
    assert f"row {ROWS - 1} is" in str(await session.get_items())


@pytest.mark.parametrize("turn", [awaited, streamed])
@pytest.mark.parametrize("responses", [True, False])
async def test_what_was_too_long_is_sent_again_shorter(
    turn: Callable[..., Any], responses: bool, tmp_path: Path, provide: Any, config: Any
) -> None:
    provider = provide([Answer("Noted.")])
    session = ClewSession(SQLiteSession("long"), tmp_path / "own.db")  # not known: gpt-4o-mini has 128,000
    pages = [{"role": ("user", "assistant")[n % 2], "content": f"Page {n}. " + "word " * 700} for n in range(30)]
    await session.add_items(pages)  # type: ignore[arg-type]
    made = session.run_config(config(provider, responses))
    assert await turn(Agent("Reader", model="gpt-4o-mini"), "Go on.", session, made) == "Noted."
    assert len(provider.heard) <= 3  # Responses do not say how long it may be
    assert len(await session.get_items()) == 32
    session.close()


async def test_other_errors_are_the_runs(engine: Engine, provide: Any, config: Any) -> None:
    provider = provide([Answer(status=401)])
    session = ClewSession(SQLiteSession("refused"), engine)
    with pytest.raises(Exception, match="401"):
        await awaited(Agent("Reader"), "Hello.", session, session.run_config(config(provider)))
    assert len(provider.heard) == 1


@pytest.mark.parametrize("turn", [awaited, streamed])
async def test_where_clew_fails_the_run_goes_on(
    turn: Callable[..., Any], tmp_path: Path, provide: Any, config: Any, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broken.db").write_text("no store")
    provider = provide(reading())
    session = ClewSession(SQLiteSession("broken"), tmp_path / "broken.db")
    output = await turn(reader(session), "Read.", session, session.run_config(config(provider)))
    assert output == "Both are read."
    assert len(provider.heard) == 2
    assert "the original request is sent unchanged" in caplog.text


async def test_a_secret_is_not_sent(tmp_path: Path, provide: Any, config: Any) -> None:
    engine = Engine(SQLite(tmp_path / "own.db"), Budget(window=WINDOW), Settings(secrets="refuse"))
    provider = provide([Answer("Noted.")])
    session = ClewSession(SQLiteSession("secret"), engine)
    with pytest.raises(SecretFound):
        await awaited(
            Agent("Reader"), "The key is AKIAIOSFODNN7EXAMPLQ.", session, session.run_config(config(provider))
        )
    assert not provider.heard


async def test_another_process_goes_on(tmp_path: Path, engine: Engine, provide: Any, config: Any) -> None:
    provider = provide(reading())

    async def turn(engine: Engine) -> None:
        session = ClewSession(SQLiteSession("parts", tmp_path / "sessions.db"), engine)
        await awaited(reader(session), "Read the next two parts.", session, session.run_config(config(provider)))

    for _ in range(TURNS - 1):
        await turn(engine)
    before = provider.heard[-1].body["input"]
    await turn(Engine(SQLite(tmp_path / "clew.db"), engine.budget, engine.settings))
    assert provider.heard[-2].body["input"][: len(before)] == before


async def test_items_may_be_taken_back(engine: Engine, provide: Any, config: Any) -> None:
    provider = provide([Answer("Noted.")])
    session = ClewSession(SQLiteSession("talk"), engine)
    agent: Agent[Any] = Agent("Reader", model="gpt-4o-mini")
    for n in range(10):
        await awaited(agent, f"Page {n}. " + "word " * 700, session, session.run_config(config(provider)))
    for _ in range(2):
        assert await session.pop_item()
    await awaited(agent, "Page 9 again.", session, session.run_config(config(provider)))
    assert "Page 9 again." in str(provider.heard[-1].body["input"][-1])
    assert "Page 9. word" not in str(provider.heard[-1].body["input"])
    await session.clear_session()
    await awaited(agent, "Anew.", session, session.run_config(config(provider)))
    assert len(provider.heard[-1].body["input"]) == 1
    assert len(provider.heard) == 12


async def test_an_agent_that_decides_is_told_and_begins_a_new_session(
    engine: Engine, provide: Any, config: Any
) -> None:
    def script(body: dict[str, Any]) -> Answer:
        *_, before, last = body["input"]
        told = json.loads(last["content"].split("<context_status>")[1].split("</context_status>")[0])
        if told["used_pct"] >= 50 and before.get("role") == "user":
            return Answer(calls=(Call("new_session", {"summary": "Pages so far: all well."}),))
        return Answer("Noted.")

    provider = provide(script)
    session = ClewSession(SQLiteSession("pages"), engine, method="llm", when="50%")
    agent: Agent[Any] = Agent("Reader", model="gpt-4o-mini", tools=session.tools)
    for n in range(10):
        await awaited(agent, f"Page {n}. " + "word " * 700, session, session.run_config(config(provider)))
    assert names(provider.heard[0].body)[0] == "new_session"
    assert "Pages so far: all well." in str(provider.heard[-1].body["input"])
    assert "handoff" in {one.cause for one in run(Sessions(engine).all())}


async def test_the_sdk_finds_in_a_model_what_it_looks_for(engine: Engine) -> None:
    """OpenAI's own models are sent a key for the prompt cache, which is asked for without the public interface."""
    session = ClewSession(SQLiteSession("keys"), engine)
    given = RunConfig(model_provider=OpenAIProvider(api_key="none", base_url="https://api.openai.com/v1"))
    plain, ours = (one.model_provider.get_model("gpt-4o") for one in (given, session.run_config(given)))
    for model in (plain, ours):
        assert model._supports_default_prompt_cache_key() is True  # type: ignore[attr-defined]
        assert model.model == "gpt-4o"  # type: ignore[attr-defined]


class Report(BaseModel):
    """What was found."""

    port: int


async def test_structured_answers(engine: Engine, provide: Any, config: Any) -> None:
    provider = provide([Answer('{"port": 8443}')])
    session = ClewSession(SQLiteSession("pages"), engine)
    agent: Agent[Any] = Agent("Reader", model="gpt-4o-mini", output_type=Report)
    for n in range(12):
        output = await awaited(agent, f"Page {n}. " + "word " * 700, session, session.run_config(config(provider)))
        assert output == Report(port=8443)
    assert len(provider.heard) == 12


async def test_a_filter_of_the_users_comes_first(engine: Engine, provide: Any, config: Any) -> None:
    seen = []

    def filter(data: Any) -> Any:
        seen.append(len(data.model_data.input))
        return data.model_data

    provider = provide(reading())
    session = ClewSession(SQLiteSession("filtered"), engine)
    made = session.run_config(config(provider, call_model_input_filter=filter))
    await awaited(reader(session), "Read.", session, made)
    assert seen == [1, 5]


def finding(body: dict[str, Any]) -> Answer:
    """A model that asks two agents at once, which read; then it says what they said."""
    if is_result(body):
        return Answer("They say so." if "find" in names(body) else "All is well.")
    if "find" in names(body):
        return Answer(calls=tuple(Call("find", {"input": f"Look at {n}."}) for n in (1, 2)))
    return Answer(calls=(Call("read", {"path": "part_1.py"}),))


@pytest.mark.parametrize("turn", [awaited, streamed])
async def test_an_agent_that_is_a_tool_is_a_child(
    turn: Callable[..., Any], engine: Engine, provide: Any, config: Any
) -> None:
    provider = provide(finding)
    session = ClewSession(SQLiteSession("main"), engine)
    finder: Agent[Any] = Agent("Finder", model="gpt-4o-mini", tools=[read])
    tool = finder.as_tool("find", "Find something out.")
    agent: Agent[Any] = Agent("Main", model="gpt-4o-mini", tools=[tool])
    await turn(agent, "What is there?", session, session.run_config(config(provider)))
    await turn(agent, "And now?", session, session.run_config(config(provider)))
    every = run(Sessions(engine).all())
    (main,) = {one.branch for one in every if one.name == "main"}
    children = [one for one in every if one.cause == "subagent"]
    assert len({child.branch for child in children}) >= 2
    assert {child.parent for child in children} <= {one.id for one in every if one.branch == main}
    assert len(provider.heard) == 2 * (2 + 4)


async def test_an_agent_that_takes_over_goes_on(engine: Engine, provide: Any, config: Any) -> None:
    def script(body: dict[str, Any]) -> Answer:
        if "transfer_to_expert" in names(body):
            return Answer(calls=(Call("transfer_to_expert"),))
        return Answer("I am the expert.")

    provider = provide(script)
    session = ClewSession(SQLiteSession("desk"), engine)
    expert: Agent[Any] = Agent("Expert", instructions="You know.", model="gpt-4o-mini")
    desk: Agent[Any] = Agent("Desk", instructions="You ask others.", model="gpt-4o-mini", handoffs=[expert])
    for n in range(10):
        output = await awaited(desk, f"Case {n}. " + "word " * 700, session, session.run_config(config(provider)))
        assert output == "I am the expert."
    assert len(provider.heard) == 20
    assert len({one.branch for one in run(Sessions(engine).all())}) == 1
