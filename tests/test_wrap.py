"""Wrapped clients of the official SDKs: their requests fit, nothing is lost, and nobody notices."""

import asyncio
import json
import logging
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count, pairwise
from pathlib import Path
from random import Random
from typing import Any

import anthropic
import openai
import pytest
from pydantic import BaseModel

import clew
from asking import FORMATS, MODEL, request
from clew import Budget, Engine, OverBudget, Sessions, SQLite
from clew.drafting.writing import Writer
from clew.testing import Answer, Call, ScriptedModel, StrictProvider

Body = dict[str, Any]
WINDOW = 6_000


class Verdict(BaseModel):
    ok: bool


def plain_of(provider: StrictProvider, format: str, blocking: bool = True, retries: int = 0) -> Any:
    """A client as people make it; reading certificates is what takes time, and none is used."""
    sdk: Any = anthropic if format == "anthropic" else openai
    http = sdk.DefaultHttpxClient(verify=False) if blocking else sdk.DefaultAsyncHttpxClient(verify=False)
    url = provider.url if format == "anthropic" else f"{provider.url}/v1"
    name = ("" if blocking else "Async") + ("Anthropic" if format == "anthropic" else "OpenAI")
    return getattr(sdk, name)(api_key="none", base_url=url, max_retries=retries, http_client=http)


def engine(place: Path | str, window: int = WINDOW, **given: Any) -> Engine:
    return Engine(SQLite(place), Budget(window=window, reserve=500), **given)


def create(client: Any, format: str) -> Any:
    return {
        "anthropic": lambda: client.messages.create,
        "openai_chat": lambda: client.chat.completions.create,
        "openai_responses": lambda: client.responses.create,
    }[format]()


def said(format: str, answer: Any) -> list[Body]:
    """An answer as a plain loop puts it into its list."""
    match format:
        case "openai_chat":
            return [answer.choices[0].message.model_dump(exclude_none=True)]
        case "openai_responses":
            return [item.model_dump(exclude_none=True) for item in answer.output]
    return [{"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]}]


def text_of(format: str, answer: Any) -> str:
    match format:
        case "openai_chat":
            return str(answer.choices[0].message.content or "")
        case "openai_responses":
            return str(answer.output_text)
    return "".join(block.text for block in answer.content if block.type == "text")


def joined(format: str, stream: Any) -> str:
    """The text of a stream."""
    match format:
        case "openai_chat":
            return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
        case "openai_responses":
            return "".join(event.delta for event in stream if event.type == "response.output_text.delta")
    return "".join(
        event.delta.text for event in stream if getattr(getattr(event, "delta", 0), "type", "") == "text_delta"
    )


def called(format: str, answer: Any) -> list[tuple[str, str]]:
    """The ids and names of what an answer calls."""
    match format:
        case "openai_chat":
            return [(c.id, c.function.name) for c in answer.choices[0].message.tool_calls or ()]
        case "openai_responses":
            return [(item.call_id, item.name) for item in answer.output if item.type == "function_call"]
    return [(block.id, block.name) for block in answer.content if block.type == "tool_use"]


def results(format: str, given: dict[str, str]) -> list[Body]:
    match format:
        case "openai_chat":
            return [{"role": "tool", "tool_call_id": id, "content": text} for id, text in given.items()]
        case "openai_responses":
            return [{"type": "function_call_output", "call_id": id, "output": text} for id, text in given.items()]
    blocks = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, text in given.items()]
    return [{"role": "user", "content": blocks}]


def user(text: str) -> Body:
    return {"role": "user", "content": text}


def page(n: int) -> str:
    return f"Page {n}, marked mark-{n:04d}. " + "All is well here. " * 80


# --- with room, nobody notices ----------------------------------------------------------------------------------------

Way = Callable[[Any, Body], Any]


def chat_stream(client: Any, body: Body) -> Any:
    with client.chat.completions.stream(**body) as stream:
        return stream.get_final_completion()


def responses_stream(client: Any, body: Body) -> Any:
    with client.responses.stream(**body) as stream:
        return stream.get_final_response()


def messages_stream(client: Any, body: Body) -> Any:
    with client.messages.stream(**body) as stream:
        return stream.get_final_message()


def lines(client: Any, body: Body) -> Any:
    with client.chat.completions.with_streaming_response.create(**body) as response:
        return list(response.iter_lines())


WAYS: dict[str, tuple[str, Way]] = {
    "chat": ("openai_chat", lambda c, b: c.chat.completions.create(**b)),
    "chat stream": ("openai_chat", lambda c, b: list(c.chat.completions.create(**b, stream=True))),
    "chat.stream": ("openai_chat", chat_stream),
    "chat.parse": ("openai_chat", lambda c, b: c.chat.completions.parse(**b, response_format=Verdict)),
    "chat raw": ("openai_chat", lambda c, b: c.chat.completions.with_raw_response.create(**b).parse()),
    "chat lines": ("openai_chat", lines),
    "chat options": ("openai_chat", lambda c, b: c.with_options(timeout=9).chat.completions.create(**b)),
    "responses": ("openai_responses", lambda c, b: c.responses.create(**b)),
    "responses stream": ("openai_responses", lambda c, b: list(c.responses.create(**b, stream=True))),
    "responses.stream": ("openai_responses", responses_stream),
    "responses.parse": ("openai_responses", lambda c, b: c.responses.parse(**b, text_format=Verdict)),
    "messages": ("anthropic", lambda c, b: c.messages.create(**b)),
    "messages stream": ("anthropic", lambda c, b: list(c.messages.create(**b, stream=True))),
    "messages.stream": ("anthropic", messages_stream),
    "messages beta": ("anthropic", lambda c, b: c.beta.messages.create(**b)),
    "messages raw": ("anthropic", lambda c, b: c.messages.with_raw_response.create(**b).parse()),
}


@pytest.mark.parametrize("way", WAYS)
def test_with_room_the_provider_hears_the_very_bytes(tmp_path: Path, way: str) -> None:
    format, ask = WAYS[way]
    body = request(format)
    if "parse" in way or ".stream" in way:
        body = {k: v for k, v in body.items() if k != "tools"}  # the SDK parses only tools of the strict kind
    heard, got = [], []
    for wrapped in (False, True):
        with StrictProvider([Answer('{"ok": true}', reasoning="Hm.")]) as provider, plain_of(provider, format) as plain:
            client = clew.wrap(plain, engine(tmp_path / "clew.db")) if wrapped else plain
            got.append(ask(client, body))
            heard.append([(h.raw, h.path, h.query) for h in provider.heard])
    assert heard[0] == heard[1]
    assert got[0] == got[1]
    assert len(heard[0]) == 1


async def async_chat_stream(client: Any, body: Body) -> Any:
    async with client.chat.completions.stream(**body) as stream:
        return await stream.get_final_completion()


async def async_messages_stream(client: Any, body: Body) -> Any:
    async with client.messages.stream(**body) as stream:
        return await stream.get_final_message()


async def whole(client: Any, body: Body) -> Any:
    return await create(client, detect(body))(**body)


async def streamed(client: Any, body: Body) -> Any:
    return [event async for event in await create(client, detect(body))(**body, stream=True)]


def detect(body: Body) -> str:
    return "openai_responses" if "input" in body else "anthropic" if "max_tokens" in body else "openai_chat"


ASYNC: list[tuple[str, Any]] = [
    *((format, way) for format in FORMATS for way in (whole, streamed)),
    ("openai_chat", async_chat_stream),
    ("anthropic", async_messages_stream),
]


@pytest.mark.parametrize(("format", "way"), ASYNC)
async def test_so_it_is_with_clients_that_await(tmp_path: Path, format: str, way: Any) -> None:
    body = {k: v for k, v in request(format).items() if k != "tools"}
    heard, got = [], []
    for wrapped in (False, True):
        with StrictProvider([Answer("Yes.", reasoning="Hm.")]) as provider:
            async with plain_of(provider, format, blocking=False) as plain:
                client = clew.wrap(plain, engine(tmp_path / "clew.db")) if wrapped else plain
                got.append(await way(client, body))
                heard.append([h.raw for h in provider.heard])
    assert heard[0] == heard[1]
    assert got[0] == got[1]


def test_what_has_no_history_in_it_passes(tmp_path: Path) -> None:
    with StrictProvider(models={MODEL: WINDOW}) as provider, plain_of(provider, "openai_responses") as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        assert [model.id for model in client.models.list()] == [MODEL]
        client.responses.create(model=MODEL, input="hi", previous_response_id="resp_1")
        assert json.loads(provider.heard[0].raw) == {"model": MODEL, "input": "hi", "previous_response_id": "resp_1"}
        with pytest.raises(openai.NotFoundError):
            client.embeddings.create(model=MODEL, input="hi")
        assert client.clew.last is None


def test_what_is_set_on_a_client_holds(tmp_path: Path) -> None:
    heard: list[str] = []
    hooks = {"response": [lambda response: heard.append(str(response.status_code))]}
    http = openai.DefaultHttpxClient(
        headers={"x-team": "blue"}, cookies={"a": "1"}, params={"p": "q"}, event_hooks=hooks, verify=False
    )
    with StrictProvider([Answer("Yes."), Answer("Late.", seconds=30)]) as provider:
        plain = openai.OpenAI(api_key="none", base_url=f"{provider.url}/v1", http_client=http, max_retries=0)
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        assert type(client) is openai.OpenAI
        client.chat.completions.create(**request("openai_chat"), extra_headers={"x-turn": "1"})
        with pytest.raises(openai.APITimeoutError):
            client.with_options(timeout=0.3).chat.completions.create(**request("openai_chat"))
        [first, _] = provider.heard
        assert (first.headers["x-team"], first.headers["x-turn"], first.headers["cookie"]) == ("blue", "1", "a=1")
        assert first.query == "p=q"
        assert heard == ["200"]
        with pytest.raises(clew.BadRequest, match="wrapped already"):
            clew.wrap(client)
        client.close()
        assert plain.is_closed()
    with pytest.raises(clew.BadRequest, match="expected a client of openai or anthropic, got object"):
        clew.wrap(object(), engine(tmp_path / "clew.db"))


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("format", FORMATS)
def test_what_is_reported_is_written_down(tmp_path: Path, format: str, streams: bool) -> None:
    made = engine(tmp_path / "clew.db")
    with StrictProvider() as provider, plain_of(provider, format) as plain:
        client = clew.wrap(plain, made)
        usage = {"stream_options": {"include_usage": True}} if streams and format == "openai_chat" else {}
        answer = create(client, format)(**request(format), stream=streams, **usage)
        if streams:
            assert joined(format, answer) == "Understood."
    [call] = clew.run(made.store.calls("default", client.clew.last.branch))
    assert call.usage is not None
    assert call.usage["input"] == provider.heard[0].spent.input


# --- past the window --------------------------------------------------------------------------------------------------


def messages_in(body: Body) -> list[Body]:
    found: list[Body] = body.get("messages") or body.get("input") or []
    return [m for m in found if "context_status" not in str(m.get("content", ""))[:40]]


def has_results(body: Body) -> bool:
    last = messages_in(body)[-1]
    kinds = {block.get("type") for block in last["content"]} if isinstance(last.get("content"), list) else set()
    return last.get("role") == "tool" or last.get("type") == "function_call_output" or "tool_result" in kinds


def reader() -> Callable[[Body], Answer]:
    """An agent that reads two pages at once, each time it is asked, and says so."""
    pages = iter(range(0, 1_000, 2))

    def answer(body: Body) -> Answer:
        if has_results(body):
            return Answer("I have read them.")
        n = next(pages)
        return Answer("Let me look.", calls=(Call("read", {"path": f"{n}"}), Call("read", {"path": f"{n + 1}"})))

    return answer


def turn(client: Any, format: str, history: list[Body], text: str, edits: list[int] | None = None) -> Any:
    """A turn of a plain loop: ask, run what is called, ask again; `edits` counts those before each call."""
    history.append(user(text))
    while True:
        answer = create(client, format)(**request(format, *history))
        if edits is not None:
            edits.append(len(client.clew.last.edits))
        history += said(format, answer)
        given = {id: page(len(history) * 2 + n) for n, (id, _) in enumerate(called(format, answer))}
        if not given:
            return answer
        history += results(format, given)


def behind(client: Any) -> str:
    """All that the view which was last sent stands for."""
    nodes = [n for node in client.clew.last.nodes for n in clew.run(client.clew.recall(node.id))]
    return "\n".join(node.item.text for node in nodes)


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
        with pytest.raises(clew.SecretFound):
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


# --- when clew itself fails -------------------------------------------------------------------------------------------


def test_a_store_that_fails_costs_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = engine(tmp_path / "clew.db")
    with StrictProvider([Answer("Yes.")]) as provider, plain_of(provider, "openai_chat") as plain:
        client = clew.wrap(plain, made, tools=True)
        clew.run(made.store.close())
        with caplog.at_level(logging.WARNING, "clew"):
            answer = client.chat.completions.create(**request("openai_chat"))
    assert text_of("openai_chat", answer) == "Yes."
    assert json.loads(provider.heard[0].raw) == request("openai_chat")
    assert "goes out as it was" in caplog.text
    assert "none" not in caplog.text  # the key


@pytest.mark.parametrize(
    "reply", [RuntimeError("boom"), "", "garbage " * 50, "slow"], ids=["error", "empty", "garbage", "slow"]
)
def test_a_summariser_that_fails_stops_nobody(tmp_path: Path, reply: Any) -> None:
    model = ScriptedModel(lambda _: reply, seconds=30 if reply == "slow" else 0)
    made = engine(tmp_path / "clew.db", writer=Writer(model), patience=0.01)
    with StrictProvider(reader(), window=WINDOW) as provider, plain_of(provider, "openai_chat") as plain:
        client = clew.wrap(plain, made)
        history: list[Body] = []
        for n in range(12):
            turn(client, "openai_chat", history, f"Read on, {n}.")
        assert model.prompts
        assert len(provider.heard) == 24
        assert "mark-0004" in behind(client)
    clew.run(made.close())


# --- tools that the caller never sees ---------------------------------------------------------------------------------


def tools_of(body: Body) -> list[str]:
    return [tool.get("function", tool)["name"] for tool in body.get("tools", ())]


def answer_of(client: Any, format: str, body: Body, streams: bool) -> Any:
    """The SDK's own object for an answer."""
    body = {k: v for k, v in body.items() if k != "tools"} if streams and format == "openai_chat" else body
    match format, streams:
        case "openai_chat", True:
            return chat_stream(client, body)
        case "openai_responses", True:
            [*_, last] = client.responses.create(**body, stream=True)
            return last.response
        case "anthropic", True:
            return messages_stream(client, body)
    return create(client, format)(**body)


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("format", FORMATS)
def test_the_model_recalls_and_the_caller_sees_only_the_answer(tmp_path: Path, format: str, streams: bool) -> None:
    script = [
        Answer("Let me think.", calls=(Call("search_history", {"query": "door"}), Call("recall", {"id": "nonsense"}))),
        Answer("Once more.", calls=(Call("search_history", {"query": "colour of the door"}),), reasoning="Hm."),
        Answer("It is green."),
        Answer("You are welcome."),
    ]
    with StrictProvider(script, conversation=lambda _: 0) as provider, plain_of(provider, format) as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        history = [user("The door is green. Which colour has it?")]
        answer = answer_of(client, format, request(format, *history), streams)
        assert text_of(format, answer) == "It is green."
        assert called(format, answer) == []
        history += [{"role": "assistant", "content": "It is green."}, user("Thanks.")]
        assert text_of(format, answer_of(client, format, request(format, *history), streams)) == "You are welcome."
    assert len(provider.heard) == 4
    assert {"recall", "search_history"} < {*tools_of(provider.heard[0].body), "read"}
    assert b"Error: " in provider.heard[1].raw
    assert provider.heard[2].raw.count(b"door is green") > 1
    assert provider.moved == []  # what was asked aside is still there, in the same place
    assert len(history) == 3


async def test_so_it_is_with_a_client_that_awaits(tmp_path: Path) -> None:
    script = [Answer(calls=(Call("search_history", {"query": "door"}),)), Answer("Green."), Answer("Bye.")]
    with StrictProvider(script, conversation=lambda _: 0) as provider:
        async with plain_of(provider, "anthropic", blocking=False) as plain:
            client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
            history = [user("The door is green. Which colour has it?")]
            async with client.messages.stream(**request("anthropic", *history)) as stream:
                history += said("anthropic", await stream.get_final_message())
            assert history[-1] == {"role": "assistant", "content": [{"text": "Green.", "type": "text"}]}
            answer = await client.messages.create(**request("anthropic", *history, user("Thanks.")))
            assert text_of("anthropic", answer) == "Bye."
    assert len(provider.heard) == 3
    assert provider.moved == []


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("format", FORMATS)
def test_of_parallel_calls_the_caller_gets_his_own(tmp_path: Path, format: str, streams: bool) -> None:
    mixed = (
        Call("read", {"path": "a"}, "call_a"),
        Call("search_history", {"query": "the door"}, "call_s"),
        Call("read", {"path": "b"}, "call_b"),
    )
    script = [Answer("Both at once.", calls=mixed), Answer("Done."), Answer("Bye.")]
    with StrictProvider(script, conversation=lambda _: 0) as provider, plain_of(provider, format) as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        history = [user("The door is green.")]
        answer = answer_of(client, format, request(format, *history), streams)
        assert text_of(format, answer) == "Both at once."
        assert called(format, answer) == [("call_a", "read"), ("call_b", "read")]
        history += [*said(format, answer), *results(format, {"call_a": "A is fine.", "call_b": "B is fine."})]
        assert text_of(format, create(client, format)(**request(format, *history))) == "Done."
        history += [{"role": "assistant", "content": "Done."}, user("Thanks.")]
        # Another process, which knows only what the log has.
        again = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        assert text_of(format, create(again, format)(**request(format, *history))) == "Bye."
    assert not provider.heard[2].moved
    for heard in provider.heard[1:]:
        assert all(id in heard.raw for id in (b"call_a", b"call_b", b"call_s", b"A is fine.", b"B is fine."))
        assert b"not orders" in heard.raw  # what clew gave back


@pytest.mark.parametrize("session", [None, "work"])
@pytest.mark.parametrize("format", FORMATS)
def test_the_agent_begins_a_new_session_and_the_caller_goes_on(
    tmp_path: Path, format: str, session: str | None
) -> None:
    summary = "Task: read all pages. Done: the first ten. Next: page 11."
    script = [
        *(Answer(f"Read {n}.") for n in range(10)),
        Answer(calls=(Call("new_session", {"summary": summary}),)),
        Answer("Going on with page 11."),
        Answer("Good."),
    ]
    made = engine(tmp_path / "clew.db", window=20_000)
    with StrictProvider(script, window=20_000) as provider, plain_of(provider, format) as plain:
        client = clew.wrap(plain, made, session=session, method="llm", when="60%")
        history: list[Body] = []
        for n in range(12):
            history.append(user(page(n)))
            answer = create(client, format)(**request(format, *history))
            assert called(format, answer) == []
            history += [{"role": "assistant", "content": text_of(format, answer)}]
        # Another process, which knows only what the log has.
        again = clew.wrap(plain, engine(tmp_path / "clew.db", window=20_000), session=session, method="llm", when="60%")
        create(again, format)(**request(format, *history, user("And now?")))
    assert b"used_pct" in provider.heard[0].raw
    assert "new_session" in tools_of(provider.heard[0].body)
    for heard in provider.heard[11:]:
        assert summary.encode() in heard.raw
        assert b"mark-0003" not in heard.raw
    [child, parent] = clew.run(Sessions(made).all())
    assert (parent.ended_by, child.cause) == ("handoff", "handoff")
    assert all(f"mark-{n:04d}" in behind(again) for n in range(12))


def test_conversations_that_begin_alike_know_nothing_of_each_other(tmp_path: Path) -> None:
    script = [
        Answer(calls=(Call("search_history", {"query": "aside-of-one"}),)),
        Answer("Green."),
        Answer("Blue."),
        Answer("Bye."),
    ]
    with StrictProvider(script) as provider, plain_of(provider, "openai_chat") as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        answers = [client.chat.completions.create(**request("openai_chat", user("Which colour?"))) for _ in range(2)]
        assert [text_of("openai_chat", answer) for answer in answers] == ["Green.", "Blue."]
        for answer in answers:
            body = request("openai_chat", user("Which colour?"), *said("openai_chat", answer), user("Thanks."))
            client.chat.completions.create(**body)
    assert [b"aside-of-one" in heard.raw for heard in provider.heard] == [False, True, False, True, False]


def whims(random: Random) -> Callable[[Body], Answer]:
    """An agent that calls whatever it is offered, often several tools at once."""
    numbers = count()
    given = {"read": {"path": "a"}, "search_history": {"query": "mark"}, "recall": {"id": "abc"}}

    def call(tools: list[str]) -> Call:
        name = random.choice([*tools, "read", "read"])
        return Call(name, given.get(name, {"summary": "We read pages."}), f"call_{next(numbers)}")

    def answer(body: Body) -> Answer:
        calls = tuple(call(tools_of(body)) for _ in range(random.choice([0, 1, 1, 2, 3])))
        return Answer(random.choice(["", "Well."]), calls)

    return answer


@pytest.mark.parametrize("method", ["auto", "llm"])
@pytest.mark.parametrize("format", FORMATS)
def test_whatever_a_model_calls_the_provider_takes_what_it_is_sent(tmp_path: Path, format: str, method: Any) -> None:
    random = Random(f"{format} {method}")
    with StrictProvider(whims(random), window=WINDOW) as provider, plain_of(provider, format) as plain:
        history = [user(f"Begin. {page(0)}")]
        for n in range(30):
            if n % 10 == 0:  # another process
                client = clew.wrap(plain, engine(tmp_path / "clew.db"), session="work", method=method, tools=True)
            sent = json.dumps(history)
            answer = create(client, format)(**request(format, *history))
            calls = called(format, answer)
            assert {name for _, name in calls} <= {"read"}
            history += [m for m in said(format, answer) if m.get("content") or m.get("tool_calls") or m.get("type")]
            history += results(format, {id: page(n) for id, _ in calls}) if calls else [user(f"On. {page(n)}")]
        assert set(re.findall(r"mark-\d{4}", sent)) <= set(re.findall(r"mark-\d{4}", behind(client)))
    assert len(provider.heard) > 30


def test_a_caller_with_a_tool_of_that_name_keeps_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    body = {"model": MODEL, "messages": [user("hi")]}
    tool = {"type": "function", "function": {"name": "recall", "parameters": {"type": "object", "properties": {}}}}
    provider = StrictProvider([Answer(calls=(Call("recall", {}, "call_1"),))])
    with provider, plain_of(provider, "openai_chat") as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        answer = client.chat.completions.create(**body, tools=[tool])
    assert called("openai_chat", answer) == [("call_1", "recall")]
    assert "rename them, or offer none" in caplog.text


def test_a_model_that_asks_without_end_is_cut_short(tmp_path: Path) -> None:
    script = [Answer("Again.", calls=(Call("search_history", {"query": "x"}),))]
    with StrictProvider(script) as provider, plain_of(provider, "openai_chat") as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db", window=100_000), tools=True)
        answer = client.chat.completions.create(**request("openai_chat"))
    assert (answer.choices[0].finish_reason, called("openai_chat", answer)) == ("stop", [])
    assert len(provider.heard) == 21


# --- many at once, and later ------------------------------------------------------------------------------------------


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
        with pytest.raises(clew.ClewError, match="nothing was said yet"):
            client.clew.child("tests")
        client.chat.completions.create(**request("openai_chat"))
        child = client.clew.child("tests")
        child.chat.completions.create(**request("openai_chat", user("Write the tests.")))
    [parent, under] = clew.run(Sessions(made).all())
    assert {parent.cause, under.cause} >= {"subagent"}
    assert child.clew.last.branch != client.clew.last.branch
