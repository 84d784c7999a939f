"""Wrapped clients past the window: their requests fit, nothing is lost, and failures of clew stop nobody."""

import asyncio
import json
import logging
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import openai
import pytest

import clew
from asking import FORMATS, request
from clew import Sessions
from clew.errors import BadRequest, ClewError, OverBudget, SecretFound
from clew.steps.chapters.by_model import ByModel
from clew.testing import Answer, ScriptedModel, StrictProvider
from clients import (
    WINDOW,
    Body,
    behind,
    called,
    create,
    engine,
    joined,
    page,
    plain_of,
    reader,
    results,
    said,
    text_of,
    turn,
    user,
)


@pytest.mark.few(1)
@pytest.mark.parametrize("format", FORMATS)
def test_a_plain_loop_goes_on_past_the_window(tmp_path: Path, format: str) -> None:
    turns = 12 if format == "openai_responses" else 30  # that SDK takes its time over long lists
    provider = StrictProvider(reader(), window=WINDOW, conversation=lambda _: 0)
    with provider, plain_of(provider, format) as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"))
        history: list[Body] = []
        edits: list[int] = []
        for n in range(turns):  # two calls of the model each
            assert text_of(format, turn(client, format, history, f"Read on, {n}.", edits)) == "I have read them."
    assert len(provider.heard) == 2 * turns  # none was refused
    assert len(json.dumps(history)) > 4 * WINDOW * turns / 10
    whole = behind(client)
    marks = re.findall(r"mark-\d{4}", json.dumps(history))
    assert len(marks) == 2 * turns
    assert all(mark in whole for mark in marks)
    # What a provider has cached is lost only where something was compacted, which is seldom.
    compacted = [now != before for before, now in pairwise([0, *edits])]
    assert [heard.moved for heard in provider.heard] == compacted
    assert 0 < sum(compacted) < turns / 2


@pytest.mark.parametrize("format", FORMATS)
def test_a_result_too_large_for_the_window(tmp_path: Path, format: str) -> None:
    with StrictProvider(reader(), window=WINDOW) as provider, plain_of(provider, format) as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"))
        history = [user("Read.")]
        answer = create(client, format)(**request(format, *history))
        [(one, _), (other, _)] = called(format, answer)
        large = "\n".join(f"line {n} of a large file" for n in range(8_000))
        history += [*said(format, answer), *results(format, {one: large, other: "short"})]
        assert text_of(format, create(client, format)(**request(format, *history))) == "I have read them."
    assert len(provider.heard[-1].raw) < 4 * WINDOW < len(large)
    assert large in behind(client)


@pytest.mark.few(2)
@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("format", FORMATS)
def test_an_overflow_that_nobody_foresaw_is_mended(tmp_path: Path, format: str, streams: bool) -> None:
    with StrictProvider([Answer("Yes.")], window=3_000) as provider, plain_of(provider, format) as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db", window=20_000))
        history = [m for n in range(12) for m in (user(page(n)), {"role": "assistant", "content": f"Read {n}."})]
        answer = create(client, format)(**request(format, *history, user("And?")), stream=streams)
        assert (joined(format, answer) if streams else text_of(format, answer)) == "Yes."
    assert len(provider.heard) > 1
    assert len(provider.heard[-1].raw) < len(provider.heard[0].raw)
    assert all(f"mark-{n:04d}" in behind(client) for n in range(12))


def test_what_cannot_be_made_to_fit_is_said_at_once_with_numbers(tmp_path: Path) -> None:
    for format in FORMATS:
        with StrictProvider() as provider, plain_of(provider, format, retries=3) as plain:
            client = clew.wrap(plain, engine(tmp_path / "clew.db"))
            lead = {"anthropic": {"system": "rule " * 9_000}, "openai_responses": {"instructions": "rule " * 9_000}}
            history = [{"role": "system", "content": "rule " * 9_000}] if format == "openai_chat" else []
            with pytest.raises(OverBudget, match="does not fit") as raised:
                create(client, format)(**request(format, *history, user("hi"), **lead.get(format, {})))
            assert raised.value.needed > raised.value.limit == WINDOW - 500
            assert provider.heard == []


def test_a_secret_that_may_not_go_out_does_not(tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "q7Zt" * 23 + "AA"
    with StrictProvider() as provider, plain_of(provider, "anthropic", retries=3) as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db", secrets="refuse"))
        with pytest.raises(SecretFound):
            client.messages.create(**request("anthropic", user(f"The key is {key}.")))
        assert provider.heard == []


def test_an_error_that_is_not_about_length_is_the_callers(tmp_path: Path) -> None:
    script = [Answer(status=429, retry_after=0), Answer(status=401), Answer("Yes.")]
    with StrictProvider(script) as provider, plain_of(provider, "openai_chat", retries=1) as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"))
        with pytest.raises(openai.AuthenticationError):
            client.chat.completions.create(**request("openai_chat"))
        assert len(provider.heard) == 2
        assert text_of("openai_chat", client.chat.completions.create(**request("openai_chat"))) == "Yes."


def test_a_stream_that_breaks_off_does_so_for_the_caller_too(tmp_path: Path) -> None:
    heard: list[tuple[list[Any], str]] = []
    for wrapped in (False, True):
        provider = StrictProvider([Answer("A long answer. " * 50, cut=2_000)])
        with provider, plain_of(provider, "openai_chat") as plain:
            client = clew.wrap(plain, engine(tmp_path / "clew.db")) if wrapped else plain
            chunks: list[Any] = []
            try:
                chunks.extend(client.chat.completions.create(**request("openai_chat"), stream=True))
            except Exception as error:
                heard.append((chunks, repr(error)))
    assert heard[0] == heard[1]


async def test_who_stops_listening_hangs_up(tmp_path: Path) -> None:
    with StrictProvider([Answer("A long answer. " * 5_000)]) as provider:
        with plain_of(provider, "openai_chat") as plain:
            client = clew.wrap(plain, engine(tmp_path / "clew.db"))
            with client.chat.completions.create(**request("openai_chat"), stream=True) as stream:
                next(iter(stream))
            assert plain._client._transport._pool.connections == []
        async with plain_of(provider, "openai_chat", blocking=False) as plain:
            client = clew.wrap(plain, engine(tmp_path / "clew.db"))
            async with await client.chat.completions.create(**request("openai_chat"), stream=True) as stream:
                await anext(aiter(stream))
            async with await client.chat.completions.create(**request("openai_chat"), stream=True):
                pass
            assert plain._client._transport._pool.connections == []


def test_a_store_that_fails_costs_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = engine(tmp_path / "clew.db")
    with StrictProvider([Answer("Yes.")]) as provider, plain_of(provider, "openai_chat") as plain:
        client = clew.wrap(plain, made, tools=True)
        clew.run(made.store.close())
        with caplog.at_level(logging.WARNING, "clew"):
            answer = client.chat.completions.create(**request("openai_chat"))
    assert text_of("openai_chat", answer) == "Yes."
    assert json.loads(provider.heard[0].raw) == request("openai_chat")
    assert "the original request is sent unchanged" in caplog.text
    assert "none" not in caplog.text  # the key


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "reply", [RuntimeError("boom"), "", "garbage " * 50, "slow"], ids=["error", "empty", "garbage", "slow"]
)
def test_a_summariser_that_fails_stops_nobody(tmp_path: Path, reply: Any) -> None:
    model = ScriptedModel(lambda _: reply, seconds=30 if reply == "slow" else 0)
    made = engine(tmp_path / "clew.db", author=ByModel(model), patience=0.01)
    with StrictProvider(reader(), window=WINDOW) as provider, plain_of(provider, "openai_chat") as plain:
        client = clew.wrap(plain, made)
        history: list[Body] = []
        for n in range(12):
            turn(client, "openai_chat", history, f"Read on, {n}.")
        assert model.prompts
        assert len(provider.heard) == 24
        assert "mark-0004" in behind(client)
    clew.run(made.close())


def test_many_threads_share_a_client(tmp_path: Path) -> None:
    with StrictProvider(window=WINDOW) as provider, plain_of(provider, "openai_chat") as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"))

        def talk(who: int) -> None:
            history = [user(f"I am {who}.")]
            for n in range(8):
                body = request("openai_chat", *history)
                if n % 2:
                    answer = client.chat.completions.create(**body)
                    history += said("openai_chat", answer)
                else:
                    chunks = client.chat.completions.create(**body, stream=True)
                    text = "".join(c.choices[0].delta.content or "" for c in chunks)
                    history.append({"role": "assistant", "content": text})
                history.append(user(f"of {who}: {page(n)}"))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(talk, range(4)))
    assert len(provider.heard) == 32
    assert all(len(set(re.findall(rb"of (\d)", heard.raw))) <= 1 for heard in provider.heard)


async def test_many_tasks_share_a_client(tmp_path: Path) -> None:
    with StrictProvider(window=WINDOW) as provider:
        async with plain_of(provider, "anthropic", blocking=False) as plain:
            client = clew.wrap(plain, engine(tmp_path / "clew.db"))

            async def talk(who: int) -> None:
                history = [user(f"I am {who}.")]
                for n in range(6):
                    async with client.messages.stream(**request("anthropic", *history)) as stream:
                        history += said("anthropic", await stream.get_final_message())
                    history.append(user(f"of {who}: {page(n)} {page(n)}"))

            await asyncio.gather(*map(talk, range(10)))
    assert len(provider.heard) == 60
    assert all(len(set(re.findall(rb"of (\d)", heard.raw))) <= 1 for heard in provider.heard)


@pytest.mark.few(1)
@pytest.mark.parametrize("session", [None, "work"])
def test_a_new_process_goes_on_where_the_last_one_was(tmp_path: Path, session: str | None) -> None:
    history: list[Body] = []
    with StrictProvider(reader(), window=WINDOW) as provider:
        for _ in range(2):
            made = engine(tmp_path / "clew.db")
            with plain_of(provider, "openai_chat") as plain:
                client = clew.wrap(plain, made, session=session)
                for n in range(8):
                    turn(client, "openai_chat", history, f"Read on, {n}.")
                branch = client.clew.last.branch
            clew.run(made.store.close())
        made = engine(tmp_path / "clew.db")
        sessions = clew.run(Sessions(made).all())
    assert {s.branch for s in sessions} == {branch}
    assert len(provider.heard) == 32
    assert len(provider.moved) < 8


def test_the_work_of_a_sub_agent_hangs_under_its_parents(tmp_path: Path) -> None:
    made = engine(tmp_path / "clew.db")
    with StrictProvider() as provider, plain_of(provider, "openai_chat") as plain:
        client = clew.wrap(plain, made, session="work")
        with pytest.raises(ClewError, match="needs a parent request"):
            client.clew.child("tests")
        client.chat.completions.create(**request("openai_chat"))
        child = client.clew.child("tests")
        child.chat.completions.create(**request("openai_chat", user("Write the tests.")))
    [parent, under] = clew.run(Sessions(made).all())
    assert {parent.cause, under.cause} >= {"subagent"}
    assert child.clew.last.branch != client.clew.last.branch


@pytest.mark.few(2)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("has", ["no tool", "clew's own", "clew's by MCP", "clew's, not yet declared"])
def test_ids_to_recall_are_for_models_that_can(tmp_path: Path, format: str, has: str) -> None:
    provider = StrictProvider([Answer("Noted.")], window=WINDOW, conversation=lambda _: 0)
    with provider, plain_of(provider, format) as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=has == "clew's own")
        deferred = "Deferred tools:\n- mcp__clew__recall\n" if "not yet" in has else ""
        history: list[Body] = [user(f"{deferred}Keep to the plan.")]
        for n in range(12):
            body = request(format, *history, user(f"Step {n}: {page(n)}"))
            if has == "clew's by MCP":
                body["tools"] = [declared_as(format, "mcp__clew__recall"), *body.get("tools", ())]
            history = [*history, user(f"Step {n}: {page(n)}"), *said(format, create(client, format)(**body))]
    assert client.clew.last.edits
    sent = provider.heard[-1].raw.decode()
    assert bool(re.search("recall [0-9a-f]{10}", sent)) is (has != "no tool")
    assert "out of view" in sent or "work log" in sent


def declared_as(format: str, name: str) -> Body:
    schema = {"type": "object", "properties": {}}
    if format == "anthropic":
        return {"name": name, "description": "", "input_schema": schema}
    plain = {"name": name, "description": "", "parameters": schema}
    return {"type": "function", **plain} if format == "openai_responses" else {"type": "function", "function": plain}


def test_a_window_is_an_argument_too() -> None:
    said: Any = [{"role": "user", "content": f"Page {n}: " + "all is well. " * 100} for n in range(40)]
    with StrictProvider([Answer("Read it.")], window=8_000) as provider:
        plain = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="none")
        clew.wrap(plain, ":memory:", window=8_000).chat.completions.create(model="gpt-4o", messages=said)
        assert len(provider.heard[0].raw) < 4 * 8_000 < len(str(said))
        with pytest.raises(BadRequest, match="window already"):
            clew.wrap(plain, clew.Engine(clew.SQLite(":memory:")), window=8_000)
