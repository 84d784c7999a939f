"""Wrapped clients of the official SDKs: while there is room, nobody notices."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from pydantic import BaseModel

import clew
from asking import FORMATS, MODEL, request
from clew.errors import BadRequest
from clew.testing import Answer, StrictProvider
from clients import WINDOW, Body, chat_stream, create, engine, joined, messages_stream, plain_of, responses_stream

Way = Callable[[Any, Body], Any]


class Verdict(BaseModel):
    ok: bool


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


@pytest.mark.few(6)
@pytest.mark.parametrize("way", WAYS)
def test_with_room_the_provider_hears_the_very_bytes(tmp_path: Path, way: str) -> None:
    format, ask = WAYS[way]
    body = request(format)
    if "parse" in way or ".stream" in way:
        body = {k: v for k, v in body.items() if k != "tools"}  # the SDK parses only tools of the strict kind
    heard, got = [], []
    for wrapped in (False, True):
        with StrictProvider([Answer('{"ok": true}', reasoning="Hm.")]) as provider, plain_of(provider, format) as plain:
            client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=False) if wrapped else plain
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
                client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=False) if wrapped else plain
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


@pytest.mark.parametrize("thread", [{"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}], ids=str)
def test_a_thread_that_the_provider_holds_passes(tmp_path: Path, thread: Body) -> None:
    with StrictProvider() as provider, plain_of(provider, "anthropic") as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        client.messages.create(**request("anthropic"), extra_body={"thread": thread})
        assert client.clew.last is None
    assert provider.heard[0].body == {**request("anthropic"), "thread": thread}


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
            client.with_options(timeout=3).chat.completions.create(**request("openai_chat"))
        [first, _] = provider.heard
        assert (first.headers["x-team"], first.headers["x-turn"], first.headers["cookie"]) == ("blue", "1", "a=1")
        assert first.query == "p=q"
        assert heard == ["200"]
        for twice in (client, client.with_options(timeout=9)):
            with pytest.raises(BadRequest, match="already wrapped"):
                clew.wrap(twice)
        client.close()
        assert plain.is_closed()
    with pytest.raises(BadRequest, match=r"expected a client of openai, anthropic or google-genai.* got object"):
        clew.wrap(object(), engine(tmp_path / "clew.db"))


@pytest.mark.parametrize("tools", [False, True])
def test_a_response_can_be_read_as_any_other(tmp_path: Path, tools: bool) -> None:
    with StrictProvider() as provider, plain_of(provider, "openai_chat") as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=tools)
        raw = client.chat.completions.with_raw_response.create(**request("openai_chat"))
        assert raw.elapsed.total_seconds() > 0
        assert raw.headers["x-request-id"] == raw.parse()._request_id
        with client.chat.completions.with_streaming_response.create(**request("openai_chat")) as response:
            assert json.loads(b"".join(response.http_response.iter_raw()))["choices"]


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
