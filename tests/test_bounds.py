"""Servers that send without end, bombs, or one elsewhere: models and speakers are told so and take no harm."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from clew.errors import ModelError
from clew.llm.anthropic import AnthropicModel
from clew.llm.openai import OpenAIModel
from clew.llm.remote import Remote
from clew.llm.streaming import Spoken
from clew.llm.streaming.anthropic import AnthropicSpeaker
from clew.llm.streaming.openai import ChatSpeaker
from clew.llm.streaming.remote import RemoteSpeaker
from clew.steps.chapters.model import Prompt
from clew.wire.streams.events import Events, data_of

LARGEST = 1_000_000
REPLY = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}]}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
BODY: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}

Sends = Callable[[], Iterator[bytes]]


class SmallOpenAI(OpenAIModel):
    """One that reads little, so that tests need not send much."""

    largest = LARGEST


class SmallAnthropic(AnthropicModel):
    """One that reads little, so that tests need not send much."""

    largest = LARGEST


class SmallChat(ChatSpeaker):
    """One that reads little, so that tests need not send much."""

    largest = LARGEST


class SmallMessages(AnthropicSpeaker):
    """One that reads little, so that tests need not send much."""

    largest = LARGEST


class Server:
    """A server that sends whatever it is told to, and counts what it heard and what was taken of it."""

    def __init__(self, sends: Sends) -> None:
        self.sends = sends
        self.heard: list[bytes] = []
        self.sent = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = [line.partition(b":") for line in head.lower().splitlines()]
            size = next(int(value) for name, _, value in lines if name == b"content-length")
            self.heard.append(head + await reader.readexactly(size))
            for chunk in self.sends():
                writer.write(chunk)
                await writer.drain()
                self.sent += len(chunk)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(sends: Sends) -> AsyncIterator[Server]:
    told = Server(sends)
    server = await asyncio.start_server(told.serve, "127.0.0.1", 0)
    told.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield told
    finally:
        server.close()


def endless(status: bytes = b"200 OK") -> Iterator[bytes]:
    yield b"HTTP/1.1 " + status + b'\r\nContent-Type: application/json\r\n\r\n{"choices": "'
    for _ in range(4_000):  # 256 MB: enough to be told from an end
        yield b"a" * 65_536


def bomb(times: int = 1) -> Iterator[bytes]:
    packed = gzip.compress(b'{"choices": "' + b"a" * 50_000_000)
    for _ in range(times - 1):
        packed = gzip.compress(packed)
    names = ", ".join(["gzip"] * times).encode()
    yield HEAD + b"Content-Encoding: " + names + b"\r\n\r\n" + packed


def answer(body: bytes, *headers: bytes) -> Iterator[bytes]:
    yield HEAD + b"".join(header + b"\r\n" for header in headers) + b"\r\n" + body


async def ask(kind: type[Remote], server: Server) -> Any:
    """What a model or a speaker makes of what this server sends."""
    model: Any = kind("m", base_url=server.url, api_key="k", timeout=30.0)
    try:
        if not isinstance(model, RemoteSpeaker):
            return await model(Prompt("Sum up.", 500))
        async with aclosing(model.speak(BODY)) as pieces:
            return [piece async for piece in pieces][-1]
    finally:
        await model.close()


KINDS = [SmallOpenAI, SmallAnthropic, SmallChat, SmallMessages]


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", [b"200 OK", b"400 Bad Request", b"404 Not Found"])
async def test_an_answer_without_an_end_is_hung_up_on(kind: type[Remote], status: bytes) -> None:
    async with serving(lambda: endless(status)) as server:
        with pytest.raises(ModelError, match="m sent more than 1,000,000 bytes") as caught:
            await ask(kind, server)
    assert caught.value.fault == "refused"
    assert server.sent < 40 * LARGEST  # what lies in the sockets of two tries is sent, too


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_bomb_is_not_unpacked(kind: type[Remote]) -> None:
    async with serving(bomb) as server:
        with pytest.raises(ModelError, match="m sent more than 1,000,000 bytes"):
            await ask(kind, server)
        server.sends = lambda: bomb(2)
        with pytest.raises(ModelError, match="the content encoding gzip, gzip, which was not requested"):
            await ask(kind, server)


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", [b"307 Temporary Redirect", b"308 Permanent Redirect", b"302 Found"])
async def test_a_redirect_to_another_server_is_not_followed(kind: type[Remote], status: bytes) -> None:
    async with serving(lambda: answer(b"{}")) as other, serving(lambda: iter(())) as server:
        where = other.url.replace("127.0.0.1", "localhost") + "/v1/chat/completions"
        head = f"HTTP/1.1 {status.decode()}\r\nLocation: {where}\r\nContent-Length: 0\r\n\r\n"
        server.sends = lambda: iter([head.encode()])
        with pytest.raises(ModelError, match=r"m redirects from 127\.0\.0\.1 to http://localhost:\d+, which") as caught:
            await ask(kind, server)
    assert (caught.value.fault, other.heard) == ("refused", [])


async def test_a_redirect_on_the_same_server_is_followed() -> None:
    async with serving(lambda: iter(())) as server:

        def sends() -> Iterator[bytes]:
            if len(server.heard) == 1:
                yield b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n"
            else:
                yield from answer(json.dumps(REPLY).encode())

        server.sends = sends
        assert (await ask(OpenAIModel, server)).text == "Done."
    assert [heard.split()[1] for heard in server.heard] == [b"/chat/completions", b"/other"]


@pytest.mark.parametrize("kind", [OpenAIModel, ChatSpeaker])
async def test_a_packed_answer_is_read(kind: type[Remote]) -> None:
    packed = gzip.compress(json.dumps(REPLY).encode())
    async with serving(lambda: answer(packed, b"Content-Encoding: gzip")) as server:
        said = await ask(kind, server)
    assert isinstance(said, Spoken) == (kind is ChatSpeaker)
    assert said.text == "Done."


@pytest.mark.parametrize("encoding", ["br", "zstd", "deflate"])
async def test_a_packing_that_nobody_asked_for_is_refused(encoding: str) -> None:
    packed = zlib.compress(json.dumps(REPLY).encode())
    async with serving(lambda: answer(packed, f"Content-Encoding: {encoding}".encode())) as server:
        with pytest.raises(ModelError, match=f"encoding {encoding}, which was not requested"):
            await ask(OpenAIModel, server)


async def test_a_damaged_packing_is_told() -> None:
    async with serving(lambda: answer(b"no gzip at all", b"Content-Encoding: gzip")) as server:
        with pytest.raises(ModelError, match="cannot be decompressed"):
            await ask(OpenAIModel, server)


def test_a_line_is_put_together_once_however_many_pieces_it_comes_in() -> None:
    events = Events()
    for _ in range(200_000):
        assert events.add(b"data: aa"[:2]) == []
    assert events.add(b"\ndata: b\r\n\r") == []
    assert [data_of(event) for event in events.add(b"\ndata: c\n\nda")] == [b"b", b"c"]
    assert events.add(b"ta: d\n") == []
    assert [data_of(event) for event in events.end()] == [b"d"]


def test_comments_that_nothing_follows_are_read_once() -> None:
    events = Events()
    for _ in range(20):
        assert events.add(b": still here\n\n" * 2_500) == []
    (event,) = events.add(b"data: a\n\n")
    assert (len(event), data_of(event)) == (20 * 2_500 * 14 + 9, b"a")
