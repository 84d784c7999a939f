"""Each thing that the capability does, in the loop of Pydantic AI."""

import base64
import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from frameworks.pydantic_ai.talking import talk
from frameworks.reading import TURNS, read, reading
from pydantic import BaseModel
from pydantic_ai import BinaryContent, RunContext
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from clew import Budget, Engine, Sessions, SQLite
from clew.adapters.pydantic_ai import ClewCapability
from clew.engine.settings import Settings
from clew.errors import SecretFound
from clew.events import Event, Observed
from clew.testing import Answer, Call, StrictProvider

Make = Callable[..., Any]
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def grown(turns: int) -> list[Any]:
    return [
        message
        for n in range(turns)
        for message in (
            ModelRequest([UserPromptPart(f"Page {n}. " + "word " * 300)]),
            ModelResponse([TextPart(f"Read page {n}.")]),
        )
    ]


async def test_what_fits_goes_out_as_without_clew(engine: Engine, provide: Make, agent: Make) -> None:
    bodies = []
    for capabilities in ([], [ClewCapability(engine, offer=False)]):
        said = reading(2)
        provider = provide(lambda _, said=said: next(said))
        await talk(agent(provider, *capabilities, tools=[read], instructions="Be brief."), 2)
        bodies.append([re.sub(r"call_\w+", "call", one.raw.decode()) for one in provider.heard])
    assert bodies[0] == bodies[1]


async def test_streams_fit_and_their_usage_is_heard(
    engine: Engine, heard: list[Event], provide: Make, agent: Make
) -> None:
    said = reading()
    provider = provide(lambda _: next(said))
    asking = agent(provider, ClewCapability(engine), tools=[read])
    history: list[Any] = []
    for _ in range(TURNS):
        async with asking.run_stream("Read the next two parts.", message_history=history) as stream:
            assert (await stream.get_output()).startswith("Read parts")
        history = stream.all_messages()
    assert all(one.streamed for one in provider.heard)
    assert len(provider.heard) == 2 * TURNS
    counted = [event for event in heard if isinstance(event, Observed)]
    assert len(counted) == 2 * TURNS
    assert counted[-1].input == provider.heard[-1].spent.input


def test_blocking_runs_fit(engine: Engine, provide: Make, agent: Make) -> None:
    said = reading()
    provider = provide(lambda _: next(said))
    asking = agent(provider, ClewCapability(engine), tools=[read])
    history: list[Any] = []
    for _ in range(TURNS):
        history = asking.run_sync("Read the next two parts.", message_history=history).all_messages()
    assert len(provider.heard[-1].body["messages"]) < len(history)


async def test_a_result_larger_than_the_window_is_a_preview_that_can_be_recalled(
    engine: Engine, provide: Make, agent: Make
) -> None:
    def script(body: dict[str, Any]) -> Answer:
        last = str(body["messages"][-1]["content"])
        if body["messages"][-1]["role"] != "tool":
            return Answer(calls=(Call("dump"),))
        if "KEY = 4711" in last:
            return Answer(last)
        if found := re.search(r"recall (\w{8,})", last):
            return Answer(calls=(Call("recall", {"id": found[1], "pattern": "KEY"}),))
        return Answer("There is no id to recall.")

    def dump() -> str:
        """Everything."""
        return "\n".join([*(f"line {n}" for n in range(5000)), "KEY = 4711", *(f"line {n}" for n in range(5000))])

    provider = provide(script)
    result = await agent(provider, ClewCapability(engine), tools=[dump]).run("Dump it.")
    assert "KEY = 4711" in result.output
    assert len(provider.heard) == 3


async def test_a_refused_request_is_sent_again_and_fits(tmp_path: Path, provide: Make, agent: Make) -> None:
    provider = provide()  # gpt-4o has 128,000, but here less
    given = {"message_history": grown(40)}
    with pytest.raises(ModelHTTPError):
        await agent(provider).run("Go on.", **given)
    for run in ("whole", "streamed"):
        asking = agent(provider, ClewCapability(tmp_path / f"{run}.db"))
        before = len(provider.heard)
        if run == "whole":
            result = await asking.run("Go on.", **given)
        else:
            async with asking.run_stream("Go on.", **given) as result:
                await result.get_output()
        assert len(provider.heard) == before + 2
        assert len(result.all_messages()) == 82


async def test_another_process_goes_on(tmp_path: Path, engine: Engine, provide: Make, agent: Make) -> None:
    said = reading()
    provider = provide(lambda _: next(said))
    history = await talk(agent(provider, ClewCapability(engine), tools=[read]), TURNS - 1)
    before = provider.heard[-1].body["messages"]
    loaded = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(history))
    again = Engine(SQLite(tmp_path / "clew.db"), engine.budget, engine.settings)
    await talk(agent(provider, ClewCapability(again), tools=[read]), 1, loaded)
    assert provider.heard[-2].body["messages"][: len(before)] == before
    assert len({s.branch for s in await Sessions(again).all()}) == 1


async def test_structured_output_fits(engine: Engine, provide: Make, agent: Make) -> None:
    class Count(BaseModel):
        pages: int

    provider = provide(lambda body: Answer(calls=(Call(body["tools"][-1]["function"]["name"], {"pages": 7}),)))
    result = await agent(provider, ClewCapability(engine), output_type=Count).run(
        "How many?", message_history=grown(40)
    )
    assert result.output == Count(pages=7)
    assert len(provider.heard) == 1


async def test_an_agent_that_a_tool_asks_is_a_child(engine: Engine, provide: Make, agent: Make) -> None:
    def script(body: dict[str, Any]) -> Answer:
        last = body["messages"][-1]
        return Answer(calls=(Call("find", {"what": "port"}),)) if last["content"] == "Start." else Answer("8080")

    provider = provide(script)
    clew = ClewCapability(engine)
    finder = agent(provider, clew)

    async def find(ctx: RunContext[None], what: str) -> str:
        """Find something."""
        return str((await finder.run(f"Find the {what}.", usage=ctx.usage)).output)

    result = await agent(provider, clew, tools=[find]).run("Start.")
    every = await Sessions(engine).all()
    (child,) = (s for s in every if s.cause == "subagent")
    assert child.parent in {s.id for s in every if s.name == result.all_messages()[0].conversation_id}


async def test_an_agent_that_decides_is_told_and_begins_anew(engine: Engine, provide: Make, agent: Make) -> None:
    def script(body: dict[str, Any]) -> Answer:
        texts = json.dumps(body["messages"])
        if "used_pct" in texts and "Page 5" in texts and "port is 8080" not in texts:
            return Answer(calls=(Call("new_session", {"summary": "The port is 8080."}),))
        return Answer("Read.")

    provider = provide(script)
    asking = agent(provider, ClewCapability(engine, method="llm"))
    history: list[Any] = []
    for n in range(7):
        history = (await asking.run(f"Page {n}. " + "word " * 300, message_history=history)).all_messages()
    names = [tool["function"]["name"] for tool in provider.heard[0].body["tools"]]
    assert "new_session" in names
    last = json.dumps(provider.heard[-1].body["messages"])
    assert "The port is 8080." in last
    assert "Page 2" not in last
    assert "context_status" not in json.dumps(ModelMessagesTypeAdapter.dump_python(history, mode="json"))


async def test_the_method_is_switched_for_a_conversation(engine: Engine, provide: Make, agent: Make) -> None:
    provider = provide()
    clew = ClewCapability(engine)
    await clew.switch("talk", "llm")
    await agent(provider, clew).run("Hi.", conversation_id="talk")
    await agent(provider, clew).run("Hi.", conversation_id="other")
    offered = [{tool["function"]["name"] for tool in one.body["tools"]} for one in provider.heard]
    assert "new_session" in offered[0]
    assert offered[1] == {"recall", "search_history"}


@pytest.mark.parametrize("name", ["claude-sonnet-4-5", "claude-opus-5-5"])
async def test_signed_thinking_is_sent_as_claude_wants_it(
    tmp_path: Path, provide: Make, agent: Make, name: str
) -> None:
    engine = Engine(SQLite(tmp_path / "clew.db"), Budget(window=8_000))
    said = reading()

    def script(_: dict[str, Any]) -> Answer:
        one = next(said)
        return Answer(one.text, one.calls, reasoning="Let me think about this.")

    provider: StrictProvider = provide(script)
    thinking = {"anthropic_thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000}
    if name == "claude-opus-5-5":
        thinking = {"anthropic_thinking": {"type": "adaptive"}, "max_tokens": 2000}
    claude = AnthropicModel(name, provider=AnthropicProvider(api_key="none", base_url=provider.url), settings=thinking)
    history = await talk(agent(provider, ClewCapability(engine), model=claude, tools=[read]))
    assert len(provider.heard) == 2 * TURNS
    assert len(provider.heard[-1].body["messages"]) < len(history)


async def test_openai_reasoning_goes_with_what_it_came_with(
    engine: Engine, provide: Make, agent: Make, model: Make
) -> None:
    said = reading()

    def script(_: dict[str, Any]) -> Answer:
        one = next(said)
        return Answer(one.text, one.calls, reasoning="Let me think about this.")

    provider = provide(script)
    asking = agent(provider, ClewCapability(engine), model=model(provider, "gpt-5", OpenAIResponsesModel), tools=[read])
    history = await talk(asking)
    assert len(provider.heard) == 2 * TURNS
    assert len(provider.heard[-1].body["input"]) < len(history)


async def test_pictures_come_back_as_they_were(engine: Engine, provide: Make, agent: Make) -> None:
    provider = provide()
    picture = BinaryContent(PIXEL, media_type="image/png")
    history = grown(40)
    await agent(provider, ClewCapability(engine)).run(["What is this?", picture], message_history=history)
    (last,) = provider.heard
    assert last.body["messages"][-1]["content"][1]["image_url"]["url"] == picture.data_uri
    assert len(last.body["messages"]) < 80


async def test_where_clew_fails_the_agent_goes_on(
    tmp_path: Path, provide: Make, agent: Make, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broken.db").write_text("no store")
    provider = provide([Answer(calls=(Call("recall", {"id": "abc"}),)), Answer("Done.")])
    with caplog.at_level(logging.WARNING, "clew"):
        result = await agent(provider, ClewCapability(tmp_path / "broken.db")).run("Hi.")
    assert result.output == "Done."
    assert "the original request is sent unchanged" in caplog.text


async def test_a_secret_that_must_not_be_sent_ends_the_run(tmp_path: Path, provide: Make, agent: Make) -> None:
    engine = Engine(SQLite(tmp_path / "clew.db"), settings=Settings(secrets="refuse"))
    provider = provide()
    with pytest.raises(SecretFound):
        await agent(provider, ClewCapability(engine)).run("The key is sk-proj-" + "aB3" * 16)
    assert not provider.heard


async def test_a_window_that_only_the_profile_knows_is_kept(
    tmp_path: Path, provide: Make, agent: Make, model: Make
) -> None:
    provider = provide()
    served = model(provider, "our-own-model", profile={"context_window": 8_000})
    await agent(provider, ClewCapability(tmp_path / "clew.db"), model=served).run("Go on.", message_history=grown(40))
    assert len(provider.heard) == 1
