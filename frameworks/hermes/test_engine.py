"""Hermes' own loop with clew as its context engine."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from frameworks.hermes.talking import PARTS, WINDOW, Model

from clew import Engine, Sessions
from clew.exchange.thread import engine_at
from clew.store.records import Session
from clew.testing import Answer, Call, StrictProvider


def lineage(name: str = "parts") -> list[Session]:
    async def read() -> list[Session]:
        return list(await Sessions(engine_at()).lineage(name))

    return asyncio.run(read())


def refusals(provider: StrictProvider, model: Model) -> int:
    return len(provider.heard) - model.answered


def results(provider: StrictProvider) -> list[str]:
    return [str(m["content"]) for m in provider.heard[-1].body["messages"] if m["role"] == "tool"]


def test_a_session_far_longer_than_its_window(
    agent: Callable[..., Any], provider: StrictProvider, model: Model
) -> None:
    hermes = agent()
    came = hermes.run_conversation("Read all parts.")
    assert came["final_response"] == "All are read."
    assert not refusals(provider, model)
    assert len(came["messages"]) == 1 + PARTS // 2 * 3 + 1, "Hermes' own history is whole"
    assert len(provider.heard[-1].body["messages"]) < len(came["messages"])
    assert [session.cause for session in lineage()][:2] == ["start", "compaction"]
    assert hermes.context_compressor.last_prompt_tokens == provider.heard[-1].spent.input
    assert "code0x is 0" not in str(provider.heard[-1].body["messages"])

    model.says = [Answer(calls=(Call("search_history", {"query": "code1x"}),)), Answer("It is 4711.")]
    came = hermes.run_conversation("What is code1x?", conversation_history=came["messages"])
    assert came["final_response"] == "It is 4711."
    assert "code1x is 4711" in results(provider)[-1]


def test_what_fits_is_sent_as_it_is(agent: Callable[..., Any], provider: StrictProvider, model: Model) -> None:
    model.last = 2
    agent().run_conversation("Read two parts.", "You read.")
    with_clew = [one.body for one in provider.heard]
    provider.heard.clear()
    model.next = 0
    agent("compressor", session_id="other").run_conversation("Read two parts.", "You read.")
    without = [one.body for one in provider.heard]
    assert len(with_clew) == len(without) == 2
    for ours, theirs in zip(with_clew, without, strict=True):
        assert [m for m in ours["messages"] if m["role"] != "system"] == [
            m for m in theirs["messages"] if m["role"] != "system"
        ]
        assert {tool["function"]["name"] for tool in ours["tools"]} == {"read_part", "recall", "search_history"}


def test_another_process_goes_on(agent: Callable[..., Any], provider: StrictProvider, model: Model) -> None:
    came = agent().run_conversation("Read all parts.")
    sessions = len(lineage())
    model.says = [Answer("Nothing more.")]
    again = agent().run_conversation("And now?", conversation_history=came["messages"])  # the plugin is loaded anew
    assert again["final_response"] == "Nothing more."
    assert len(provider.heard[-1].body["messages"]) < len(came["messages"])
    assert not refusals(provider, model)
    assert len(lineage()) == sessions


def test_a_store_that_cannot_be_opened(
    agent: Callable[..., Any],
    provider: StrictProvider,
    model: Model,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (home / "file").write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "file"))
    hermes = agent()
    came = hermes.run_conversation("Read all parts.")
    assert came["final_response"] == "All are read."
    assert "clew could not open its store" in caplog.text
    assert hermes.context_compressor.should_compress(WINDOW), "Hermes compacts by itself, as it would without clew"


def test_a_refusal(agent: Callable[..., Any], model: Model) -> None:
    with StrictProvider(model, window=30_000) as provider:
        came = agent(base_url=f"{provider.url}/v1").run_conversation("Read all parts.")
        assert came["final_response"] == "All are read."
        assert refusals(provider, model) == 1, "what was too long once is not tried again"


def test_compress_on_demand(agent: Callable[..., Any], provider: StrictProvider, model: Model) -> None:
    model.last = 8
    hermes = agent()
    whole = hermes.run_conversation("Read all parts.")["messages"]
    shorter, _ = hermes._compress_context(whole, "", approx_tokens=30_000, force=True)
    assert len(json.dumps(shorter)) < len(json.dumps(whole)) / 2
    model.says = [Answer(calls=(Call("search_history", {"query": "code1x"}),)), Answer("It is 4711.")]
    came = hermes.run_conversation("What is code1x?", conversation_history=shorter)
    assert came["final_response"] == "It is 4711."
    assert "code1x is 4711" in results(provider)[-1]
    assert not refusals(provider, model)


def test_a_subagent_is_a_child(agent: Callable[..., Any], provider: StrictProvider, model: Model) -> None:
    model.replies = {"Say yes.": Answer("Yes.")}
    model.says = [Answer(calls=(Call("delegate_task", {"goal": "Say yes."}),)), Answer("It is asked.")]
    hermes = agent(enabled_toolsets=["parts", "context_engine", "delegation"])
    assert hermes.run_conversation("Ask another.")["final_response"] == "It is asked."
    model.replied.wait()  # Hermes has it done in the background

    async def causes() -> list[str]:
        engine: Engine = engine_at()
        return sorted(session.cause for session in await engine.store.sessions("default"))

    assert asyncio.run(causes()) == ["start", "subagent"]


def test_a_secret_is_not_sent(
    agent: Callable[..., Any], provider: StrictProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "CLEW_SECRETS", "refuse")
    key = "sk-ant-api03-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3kL5mN7pQ9rS1tU3vW5xY7zA9b-cD1eF3gH5A-AAAAAAAA"
    agent().run_conversation(f"My key is {key}.")
    assert "clew refused it" in str(provider.heard[-1].body["messages"])
    assert key not in str([one.body for one in provider.heard])
