"""Models that an agent talks to, over real HTTP: a provider on loopback streams, breaks off and refuses."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any
from urllib.request import Request, urlopen

import anthropic
import openai
import pytest

from clew.catalog.usage import spent
from clew.core import rawjson
from clew.errors import BadRequest, ModelError
from clew.llm.remote import seconds_to_wait
from clew.llm.streaming import BrokenOff, Called, Piece, Spoken, Text, Thought, speaker
from clew.llm.streaming.anthropic import AnthropicSpeaker
from clew.llm.streaming.openai import ChatSpeaker, ResponsesSpeaker
from clew.llm.streaming.remote import RemoteSpeaker
from clew.testing import Answer, Call, StrictProvider
from clew.wire import check
from clew.wire.overflow import overflow
from clew.wire.streams.events import Events, data_of, read
from streams import RECORDED, Recorded

MODEL = "model-of-these-tests"
KEY = "sk-proj-Zeppelin0123456789abcdef"
FORMATS = {"openai_chat": ChatSpeaker, "openai_responses": ResponsesSpeaker, "anthropic": AnthropicSpeaker}
LISTED = {"openai_chat": "messages", "openai_responses": "input", "anthropic": "messages"}
RICH = Answer(
    "Let me look – at both. \u2028",
    (Call("bash", {"cmd": "ls", "in": "/tmp/é"}), Call("bash", {"cmd": "pwd"}), Call("read", {})),
    "There are two of them.",
)

each_format = pytest.mark.parametrize("format", FORMATS)


def speaking(provider: StrictProvider, format: str, **settings: Any) -> RemoteSpeaker:
    """A speaker that asks this provider."""
    base_url = provider.url if format == "anthropic" else f"{provider.url}/v1"
    return FORMATS[format](MODEL, **{"base_url": base_url, "api_key": KEY, **settings})


def body(format: str, *messages: dict[str, Any]) -> dict[str, Any]:
    """A request with tools, its keys in an order that nobody would sort them in."""
    schema = {"type": "object", "properties": {"in": {"type": "string"}, "cmd": {"type": "string"}}}
    listed = [{"role": "user", "content": "What is here, and where is “here”?"}, *messages]
    if format == "anthropic":
        tools = [{"name": name, "input_schema": schema} for name in ("bash", "read")]
        return {"tools": tools, "model": MODEL, "max_tokens": 900, "system": "Be brief.", "messages": listed}
    if format == "openai_responses":
        tools = [{"type": "function", "name": name, "parameters": schema} for name in ("bash", "read")]
        return {"store": False, "model": MODEL, "instructions": "Be brief.", "input": listed, "tools": tools}
    tools = [{"type": "function", "function": {"name": name, "parameters": schema}} for name in ("bash", "read")]
    return {"temperature": 0, "messages": [{"role": "system", "content": "Be brief."}, *listed], "tools": tools} | {
        "model": MODEL
    }


def results(format: str, spoken: Spoken) -> list[dict[str, Any]]:
    """What an agent sends after calls."""
    if format == "openai_chat":
        return [{"role": "tool", "tool_call_id": call.id, "content": "done"} for call in spoken.calls]
    if format == "openai_responses":
        return [{"type": "function_call_output", "call_id": call.id, "output": "done"} for call in spoken.calls]
    made = [{"type": "tool_result", "tool_use_id": call.id, "content": "done"} for call in spoken.calls]
    return [{"role": "user", "content": made}] if made else []


def recorded(format: str, answer: Answer, streamed: bool = True) -> bytes:
    """The bytes of an answer, as the provider sends them."""
    path = {"openai_chat": "chat/completions", "openai_responses": "responses", "anthropic": "messages"}[format]
    asked = body(format) | {"stream": streamed}
    if streamed and format == "openai_chat":
        asked["stream_options"] = {"include_usage": True}
    headers = {"Content-Type": "application/json", "Authorization": "Bearer x", "X-Api-Key": "x"}
    headers |= {"Anthropic-Version": "2023-06-01"} if format == "anthropic" else {}
    with StrictProvider([answer]) as provider:
        request = Request(f"{provider.url}/v1/{path}", rawjson.dumps(asked), headers)
        with urlopen(request) as response:
            return bytes(response.read())


async def listen(speaker: RemoteSpeaker, body: dict[str, Any]) -> tuple[list[Piece], Spoken]:
    """The pieces of an answer, and what was spoken."""
    *pieces, last = [piece async for piece in speaker.speak(body)]
    assert isinstance(last, Spoken)
    return pieces, last


def shown(pieces: list[Piece]) -> str:
    """Text and thoughts as they were seen, thoughts in brackets."""
    return "".join(
        f"({p.delta})" if isinstance(p, Thought) else p.delta for p in pieces if isinstance(p, Text | Thought)
    )


@pytest.fixture
def provider() -> Iterator[StrictProvider]:
    with StrictProvider() as provider:
        yield provider


# --- what is said ---------------------------------------------------------------------------------------------------


@pytest.mark.few(5)
@each_format
@pytest.mark.parametrize("packet", [1, 7, None])
async def test_an_answer_comes_in_pieces_and_goes_back_as_it_came(format: str, packet: int | None) -> None:
    answer = Answer(RICH.text, RICH.calls, RICH.reasoning, packet=packet)
    with StrictProvider([answer, Answer("Done.")]) as provider:
        speaker = speaking(provider, format)
        pieces, spoken = await listen(speaker, body(format))
        _, again = await listen(speaker, body(format, *spoken.messages, *results(format, spoken)))
        await speaker.close()
        assert provider.moved == []
        first = provider.heard[0]
    assert "".join(p.delta for p in pieces if isinstance(p, Text)) == spoken.text == RICH.text
    assert "".join(p.delta for p in pieces if isinstance(p, Thought)) == RICH.reasoning
    assert [(c.name, c.arguments) for c in spoken.calls] == [(c.name, c.arguments) for c in RICH.calls]
    for call in spoken.calls:
        assert "".join(p.delta for p in pieces if isinstance(p, Called) and p.id == call.id) == call.raw
    assert (spoken.stop, again.stop, again.text) == ("calls", "end", "Done.")
    assert spoken.usage is not None
    assert spent(spoken.usage).input == first.spent.input
    assert spent(spoken.usage).output > 10


@each_format
@pytest.mark.parametrize("answer", [RICH, Answer("Brief."), Answer("So f", stop="length"), Answer("Hm", stop="filter")])
async def test_an_answer_that_is_not_streamed_says_the_same(format: str, answer: Answer) -> None:
    streamed, whole = (recorded(format, answer, streamed) for streamed in (True, False))
    with StrictProvider([Answer(raw=streamed), Answer(raw=b"\n " + whole)]) as provider:
        speaker = speaking(provider, format)
        (one, first), (other, second) = [await listen(speaker, body(format)) for _ in range(2)]
        await speaker.close()
    assert first == second
    assert [p.delta for p in other if isinstance(p, Text)] == [answer.text]
    assert shown(one).replace(")(", "") == shown(other)
    assert (
        first.stop == {"end": "calls" if answer.calls else "end", "length": "length", "filter": "refused"}[answer.stop]
    )


@pytest.mark.parametrize("stream", RECORDED, ids=[stream.name for stream in RECORDED])
async def test_streams_as_servers_send_them(stream: Recorded) -> None:
    with StrictProvider([Answer(raw=stream.raw)]) as provider:
        speaker = speaking(provider, stream.format)
        pieces, spoken = await listen(speaker, body(stream.format))
        await speaker.close()
    assert spoken == stream.spoken
    assert shown(pieces) == stream.shown


@pytest.mark.parametrize("indexes", [[{"index": 0}, {"index": 1}], [{}, {}]])
async def test_calls_without_an_id_get_one_each(indexes: list[dict[str, int]]) -> None:
    calls = [{"function": {"name": "bash", "arguments": "{}"}, **index} for index in indexes]
    raw = rawjson.dumps({"choices": [{"delta": {"tool_calls": calls}, "finish_reason": "stop"}]})
    with StrictProvider([Answer(raw=b"data: " + raw + b"\n\ndata: [DONE]\n\n")]) as provider:
        speaker = speaking(provider, "openai_chat")
        _, spoken = await listen(speaker, body("openai_chat"))
        await speaker.close()
    first, second = (call.id for call in spoken.calls)
    assert first != second
    assert [call["id"] for call in spoken.messages[0]["tool_calls"]] == [first, second]


# --- what is sent ---------------------------------------------------------------------------------------------------


@each_format
async def test_a_body_is_sent_in_the_order_it_has(provider: StrictProvider, format: str) -> None:
    speaker = speaking(provider, format)
    asked = body(format)
    before = rawjson.dumps(asked)
    for _ in range(2):
        await listen(speaker, asked)
    await speaker.close()
    one, other = provider.heard
    assert one.raw == other.raw
    added = {"stream_options": {"include_usage": True}} if format == "openai_chat" else {}
    assert one.raw == rawjson.dumps({**asked, **added, "stream": True})
    assert rawjson.dumps(asked) == before


async def test_a_server_that_takes_no_wish_for_usage_is_asked_without() -> None:
    def picky(body: dict[str, Any]) -> Answer:
        if "stream_options" in body:
            return Answer(status=400, error="Unrecognized request argument supplied: stream_options")
        return Answer("Fine.")

    with StrictProvider(picky) as provider:
        speaker = speaking(provider, "openai_chat")
        said = [(await listen(speaker, body("openai_chat")))[1] for _ in range(2)]
        with pytest.raises(ModelError, match="stream_options"):
            await listen(speaker, {**body("openai_chat"), "stream_options": {"include_usage": True}})
        await speaker.close()
        wishes = ["stream_options" in heard.body for heard in provider.heard]
    assert wishes == [True, False, False, True]
    assert [(spoken.text, spoken.usage) for spoken in said] == [("Fine.", None)] * 2


# --- what goes wrong ------------------------------------------------------------------------------------------------

FAULTS = [
    (Answer(status=401, error=f"Incorrect API key provided: {KEY}"), "auth", None),
    (Answer(status=429, retry_after=2.5), "busy", 2.5),
    (Answer(status=529), "busy", None),
    (Answer(status=503, retry_after=7), "busy", 7.0),
    (Answer(status=500), "busy", None),
    (Answer(status=404), "refused", None),
    (Answer(status=429, error="insufficient_quota: You exceeded your current quota."), "refused", None),
]


@each_format
@pytest.mark.parametrize(
    ("answer", "fault", "wait"), FAULTS, ids=[f"{answer.status} {answer.error[:12]}" for answer, *_ in FAULTS]
)
async def test_faults_say_their_kind_and_not_the_key(
    answer: Answer, fault: str, wait: float | None, format: str
) -> None:
    with StrictProvider([answer]) as provider:
        speaker = speaking(provider, format)
        with pytest.raises(ModelError) as caught:
            await listen(speaker, body(format))
        await speaker.close()
        assert len(provider.heard) == 1  # when to try again is for the agent to say
    assert (caught.value.fault, caught.value.retry_after) == (fault, wait)
    assert KEY not in f"{caught.value} {speaker!r} {vars(caught.value)}"
    assert not isinstance(caught.value.__context__ or caught.value.__cause__, openai.APIError | anthropic.APIError)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3", "retry-after-ms": "2500"}, 2.5),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "-1"}, 0.0),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_a_wait_is_said_in_three_ways(headers: dict[str, str], seconds: float | None) -> None:
    assert seconds_to_wait(headers) == seconds


@each_format
async def test_an_overflow_keeps_its_numbers(format: str) -> None:
    with StrictProvider(window=20) as provider:
        speaker = speaking(provider, format)
        with pytest.raises(ModelError) as caught:
            await listen(speaker, body(format))
        await speaker.close()
        asked = provider.heard[0].spent.input
    found = overflow(caught.value)
    assert caught.value.fault == "overflow"
    assert found is not None
    # OpenAI names no numbers over Responses.
    assert (found.limit, found.asked) == ((None, None) if format == "openai_responses" else (20, asked))


@each_format
async def test_an_error_in_mid_stream_keeps_what_was_said(format: str) -> None:
    status = 529 if format == "anthropic" else 503
    with StrictProvider([Answer("So far.", RICH.calls[:1], "Hm.", status=status, late=True)]) as provider:
        speaker = speaking(provider, format)
        with pytest.raises(BrokenOff, match=r"(?i)overloaded") as caught:
            await listen(speaker, body(format))
        await speaker.close()
    partial = caught.value.partial
    assert (caught.value.fault, partial.text, partial.stop) == ("busy", "So far.", "cut")
    assert [call.arguments for call in partial.calls] == [RICH.calls[0].arguments]


@pytest.mark.parametrize(
    ("format", "event", "fault"),
    [
        ("openai_responses", {"type": "error", "code": "rate_limit_exceeded", "message": "Slow down."}, "busy"),
        ("openai_chat", {"error": {"code": 502, "message": "The provider is down."}}, "busy"),
        ("openai_chat", {"error": "Something that is only text"}, "refused"),
        ("anthropic", {"type": "error", "error": {"type": "authentication_error", "message": "Expired."}}, "auth"),
        (
            "openai_responses",
            {"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error"}}},
            "busy",
        ),
        (
            "openai_chat",
            {"error": {"message": f"{KEY}: maximum context length is 4096 tokens, requested 5000 tokens"}},
            "overflow",
        ),
    ],
)
async def test_an_error_instead_of_an_answer(format: str, event: dict[str, Any], fault: str) -> None:
    with StrictProvider([Answer(raw=b"data: " + rawjson.dumps(event) + b"\n\n")]) as provider:
        speaker = speaking(provider, format)
        with pytest.raises(ModelError) as caught:
            await listen(speaker, body(format))
        await speaker.close()
    assert caught.value.fault == fault
    assert not isinstance(caught.value, BrokenOff)
    assert KEY not in str(caught.value)


@pytest.mark.few(2)
@each_format
async def test_wherever_an_answer_breaks_off_what_came_can_be_sent_back(format: str) -> None:
    whole = recorded(format, RICH)
    last = whole.rindex({"openai_chat": b'finish_reason":"', "anthropic": b'"message_delta"'}.get(format, b"event:"))
    ends = range(1, last, max(last // 60, 1))
    said = set()
    with StrictProvider([Answer(raw=whole[:end]) for end in ends]) as provider:
        speaker = speaking(provider, format)
        for end in ends:
            with pytest.raises(ModelError) as caught:
                await listen(speaker, body(format))
            # Before an event came whole, it might be a page of anything.
            assert caught.value.fault == "network" or (caught.value.fault == "refused" and b"\n\n" not in whole[:end])
            partial = getattr(caught.value, "partial", Spoken([], "", [], "cut", None, None))
            assert RICH.text.startswith(partial.text)
            assert (partial.stop, partial.reason) == ("cut", None)
            back = body(format, *partial.messages, *results(format, partial), {"role": "user", "content": "Go on."})
            assert check(back, format) == []
            said.add((partial.text, len(partial.calls)))
        await speaker.close()
    assert ("", 0) in said
    assert (RICH.text, 0) in said
    assert max(calls for _, calls in said) >= 2


@each_format
async def test_a_connection_that_is_cut_is_the_network(format: str) -> None:
    with StrictProvider([Answer("A word and another one. " * 40, cut=4_000)]) as provider:
        speaker = speaking(provider, format)
        with pytest.raises(BrokenOff, match="broke off") as caught:
            await listen(speaker, body(format))
        await speaker.close()
    assert caught.value.fault == "network"
    assert caught.value.partial.text.startswith("A word")


@pytest.mark.parametrize("format", ["openai_chat", "anthropic"])
async def test_a_connection_that_is_cut_after_the_last_word_did_no_harm(format: str) -> None:
    whole = recorded(format, RICH)
    with StrictProvider([Answer(raw=whole, cut=len(whole) - 5)]) as provider:
        speaker = speaking(provider, format)
        _, spoken = await listen(speaker, body(format))
        await speaker.close()
    assert (spoken.text, spoken.stop, len(spoken.calls)) == (RICH.text, "calls", 3)


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (b"<html>Welcome to nginx!</html>", "refused"),
        (b"", "network"),
        (b"data: {nonsense\n\n", "network"),
        (
            b'data: {"choices": [7], "delta": 7, "type": "content_block_start", "object": "response", "output": [7]}',
            "refused",
        ),
        (b'{"choices": [{"message": {"content": "Hi"', "network"),
    ],
)
@each_format
async def test_what_is_no_answer_is_a_fault(raw: bytes, fault: str, format: str) -> None:
    with StrictProvider([Answer(raw=raw)]) as provider:
        speaker = speaking(provider, format)
        with pytest.raises(ModelError) as caught:
            await listen(speaker, body(format))
        await speaker.close()
    assert caught.value.fault == fault, caught.value


@pytest.mark.few(2)  # those that fall silent wait for three seconds
@each_format
@pytest.mark.parametrize(
    ("answer", "timeout", "said"),
    [
        (Answer("Late.", seconds=60), 0.1, "did not answer within"),
        (Answer("Word by word.", pause=60), 3.0, "fell silent for"),
    ],
)
async def test_silence_is_a_timeout_before_an_answer_and_within(
    format: str, answer: Answer, timeout: float, said: str
) -> None:
    with StrictProvider([answer]) as provider:
        speaker = speaking(provider, format, timeout=timeout)
        with pytest.raises(ModelError, match=f"{said} {timeout:g} second") as caught:
            await listen(speaker, body(format))
        await speaker.close()
    assert caught.value.fault == "timeout"


async def test_a_provider_that_is_not_there_is_the_network() -> None:
    with StrictProvider() as provider:
        gone = provider
    speaker = speaking(gone, "openai_chat")
    with pytest.raises(ModelError, match="cannot be reached") as caught:
        await listen(speaker, body("openai_chat"))
    await speaker.close()
    assert caught.value.fault == "network"


# --- connections ----------------------------------------------------------------------------------------------------

FIRST = {
    "openai_chat": {"choices": [{"index": 0, "delta": {"content": "Well"}, "finish_reason": None}]},
    "openai_responses": {"type": "response.output_text.delta", "output_index": 0, "delta": "Well"},
    "anthropic": {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Well"}},
}


@each_format
@pytest.mark.parametrize("when", ["before the answer", "within it", "by closing"])
async def test_who_stops_listening_hangs_up(format: str, when: str) -> None:
    waiting, hung_up = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if when == "before the answer":
            waiting.set()
        else:
            event = b"data: " + rawjson.dumps(FIRST[format]) + b"\n\n"
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            writer.write(b"%x\r\n%b\r\n" % (len(event), event))
        await reader.read(-1)  # until the other side closes
        hung_up.set()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        speaker = FORMATS[format](MODEL, base_url=f"http://127.0.0.1:{port}", api_key=KEY)

        async def listen() -> None:
            async with aclosing(speaker.speak(body(format))) as pieces:
                assert await anext(pieces) == Text("Well")
                if when == "within it":
                    waiting.set()
                    await anext(pieces)

        task = asyncio.create_task(listen())
        if when != "by closing":
            await waiting.wait()
            task.cancel()
        await asyncio.wait([task])
        await asyncio.wait_for(hung_up.wait(), 300)
        assert task.cancelled() == (when != "by closing")
        await speaker.close()


async def test_a_connection_is_used_again_after_an_answer() -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        events = b'data: {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
        for _ in range(3):
            head = await reader.readuntil(b"\r\n\r\n")
            size = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(size.partition(b":")[2]))
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(events), events))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        speaker = ChatSpeaker(MODEL, base_url=f"http://127.0.0.1:{port}")
        said = [(await listen(speaker, body("openai_chat")))[1].text for _ in range(3)]
        await speaker.close()
    assert (said, connections) == (["Hi"] * 3, 1)


def test_events_are_read_by_the_standard() -> None:
    raw = b'\xef\xbb\xbf: hello\r\nevent: x\r\ndata: {"a":\r\ndata:1}\r\n\r\nid: 7\n\ndata: \xe2\x80\xa8\n\ndata: last'
    for size in (1, 3, len(raw)):
        events = Events()
        came = [event for i in range(0, len(raw), size) for event in events.add(raw[i : i + size])] + events.end()
        assert [data_of(event).decode() for event in came] == ['{"a":\n1}', "\u2028", "last"]
        assert b"".join(came) == raw.removeprefix(b"\xef\xbb\xbf") + b"\n\n"  # nothing is lost on the way
        assert read(came[0]) == {"a": 1}


# --- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "settings", "made"),
    [
        ("openai/gpt-5", {}, "ResponsesSpeaker('gpt-5')"),
        ("gpt-5", {"format": "openai_chat"}, "ChatSpeaker('gpt-5')"),
        ("claude-sonnet-4-5", {}, "AnthropicSpeaker('claude-sonnet-4-5')"),
        ("http://127.0.0.1:11434/v1#llama3", {}, "ChatSpeaker('llama3')"),
        ("http://127.0.0.1:11434/v1#llama3", {"format": "openai_responses"}, "ResponsesSpeaker('llama3')"),
        ("http://127.0.0.1:11434#kimi", {"format": "anthropic"}, "AnthropicSpeaker('kimi')"),
    ],
)
def test_a_text_names_a_speaker(text: str, settings: dict[str, Any], made: str) -> None:
    found = speaker(text, **settings)
    assert repr(found) == made
    assert found.name in made
    assert found.format in (settings.get("format"), *FORMATS)


def test_a_text_that_names_none_is_answered_with_the_forms() -> None:
    with pytest.raises(BadRequest, match="openai/gpt-5-mini"):
        speaker("mistral/codestral")
    with pytest.raises(BadRequest, match="expected one of openai_responses, openai_chat, anthropic, got gemini"):
        speaker("gpt-5", format="gemini")


def test_importing_it_imports_no_sdk() -> None:
    code = "import sys, clew.llm.streaming; assert not {'openai', 'anthropic'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)
