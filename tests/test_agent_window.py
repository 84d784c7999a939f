"""How much an agent's model reads: from the best source there is, and nobody is told a guess."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from chatting import chatting, report
from clew import Engine, Request, SQLite
from clew.agent import Agent, AgentEvent, Answered
from clew.agent.tools import Permissions, Toolbox
from clew.control import ContextController
from clew.core.items import Frame
from clew.engine.settings import Settings
from clew.engine.windows import PROBED
from clew.errors import ModelError
from clew.llm.streaming import speaker
from clew.store.protocol import Store
from clew.testing.provider import Answer, StrictProvider
from test_agent import reader, reading, talker
from test_probe import LOADED, OLLAMA, Answers, answering

TRIES = 10  # of a probe, which waits two seconds at most: machines may be busy
LLAMA = Frame("openai_chat", "llama3.2")
WINDOW = 12_000  # of a server whose model has far more, as the catalog says


def agent(store: Store, provider: StrictProvider, format: str, method: str = "auto") -> Agent:
    controller = ContextController(Engine(store))
    controller.method = method  # type: ignore[assignment]
    return Agent(talker(provider.url, format), controller, Toolbox([reader()], Permissions()), session="work")


async def done(agent: Agent, text: str) -> list[AgentEvent]:
    events = [event async for event in agent.run(text)]
    await agent.speaker.close()
    return events


def refused(provider: StrictProvider) -> int:
    keys = ("max_completion_tokens", "max_tokens")
    asked = [h.spent.input + sum(h.body.get(key, 0) for key in keys) for h in provider.heard]
    return sum(tokens > provider.window for tokens in asked)


@pytest.mark.few(1)
@pytest.mark.parametrize("format", ["openai_chat", "anthropic"])  # Responses names no limit
async def test_a_limit_is_learned_once_for_all_sessions_and_processes(store: SQLite, format: str) -> None:
    with StrictProvider(reading(30), window=WINDOW) as provider:
        first = agent(store, provider, format)
        events = await done(first, "Read all pages.")
        assert isinstance(events[-1], Answered)
        assert (events[-1].text, refused(provider)) == ("All read.", 2)  # against the catalog, it takes two
        # Another process: all that it has is the store.
        second = agent(store, provider, format, "llm")
        provider.script = reading(20)
        assert isinstance((await done(second, "Read them again."))[-1], Answered)
        assert refused(provider) <= 2 + len(provider.heard) // PROBED
        assert f'\\"context_window\\":{WINDOW}' in json.dumps(provider.heard[-1].body["messages"][-1])
    model = await second.controller.engine.limits.windows.model("default", Frame(format, second.speaker.name))
    assert (model.window, model.source) == (WINDOW, "learned")


async def test_a_first_message_that_leaves_less_room_for_the_answer_is_answered(store: SQLite) -> None:
    with StrictProvider([Answer("I see.")], window=WINDOW) as provider:
        long = " ".join(f"value {n}" for n in range(1_800))  # nothing of it could leave
        assert (await done(agent(store, provider, "openai_chat"), long))[-1] == Answered("I see.", "end", 1)
        assert [h.body["max_completion_tokens"] for h in provider.heard] == [8_192, 3_000]
        assert all(long in json.dumps(h.body) for h in provider.heard)


async def test_the_room_that_an_answer_wanted_says_nothing_of_how_tokens_are_counted(store: SQLite) -> None:
    engine = Engine(store)
    said = {"role": "user", "content": " ".join(f"value {n}" for n in range(5_000))}
    view = await engine.prepare(Request({"model": "gpt-4o", "max_completion_tokens": 2_048, "messages": [said]}))
    before = await engine.expected(view)
    error = f"maximum context length is 20000 tokens. However, you requested {before + 2_048} tokens ({before} in the "
    assert await engine.refused(view, f"This model's {error}messages, 2048 in the completion).")
    assert await engine.expected(view) == before


async def test_the_chat_learns_it_too_and_its_meter_says_so(store: Store, tmp_path: Path) -> None:
    with StrictProvider(lambda _: report(len(provider.heard)), window=WINDOW) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            for n in range(12):
                await hand.say(f"Report {n}.")
            assert refused(provider) == 2
            filling = await hand.chat.backend.filling()
            assert filling is not None
            assert filling.window.limit + filling.window.reserve == WINDOW


def loaded(window: int) -> Answers:
    return OLLAMA | {"/api/ps": {"models": [LOADED | {"context_length": window}]}}


async def windows(store: Store, url: str, **settings: Sequence[str] | None) -> tuple[int, str]:
    """What an agent takes for the window of a model at an address, and from where it has that."""
    for _ in range(TRIES):
        engine = Engine(store, settings=Settings(**settings))  # type: ignore[arg-type]
        Agent(speaker(f"{url}/v1#llama3.2"), ContextController(engine))
        model = await engine.limits.windows.model("default", LLAMA)
        if model.source == "probed":
            break
    return model.window, model.source


async def test_the_server_that_an_agent_talks_to_is_asked_for_its_window(store: SQLite) -> None:
    # Ollama cuts what is longer, without a word.
    with answering(loaded(8_192)) as url, answering(loaded(4_096)) as another:
        assert await windows(store, url) == (8_192, "probed")
        assert await windows(store, url, servers=[another]) == (4_096, "probed")
        assert (await windows(store, url, servers=None))[1] == "family"


async def test_what_somebody_said_of_a_window_counts_more_than_all_else(store: SQLite) -> None:
    with answering(loaded(8_192)) as url:
        engine = Engine(store)
        Agent(speaker(f"{url}/v1#llama3.2", window=32_000), ContextController(engine))
        await engine.limits.windows.learn("default", LLAMA, "tokens", 16_000)
        model = await engine.limits.windows.model("default", LLAMA)
    assert (model.window, model.source) == (32_000, "given")


async def test_two_errors_count_more_than_a_servers_answer(store: SQLite) -> None:
    with answering(loaded(8_192)) as url:
        engine = Engine(store)
        Agent(speaker(f"{url}/v1#llama3.2"), ContextController(engine))
        for window in (8_192, 6_000):
            await engine.limits.windows.learn("default", LLAMA, "tokens", 6_000)
            assert (await engine.limits.windows.model("default", LLAMA)).window == window


async def test_what_cannot_be_made_to_fit_is_still_an_error(store: SQLite) -> None:
    script = [Answer(status=400, error="prompt is too long")]
    with StrictProvider(script) as provider, pytest.raises(ModelError) as raised:
        await done(agent(store, provider, "openai_chat"), "Hello.")
    assert raised.value.fault == "overflow"
