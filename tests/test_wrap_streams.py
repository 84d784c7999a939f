"""Streams of a wrapped client whose model may ask clew: text as it comes, and one valid stream of several answers."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import clew
from asking import FORMATS, MODEL, request
from clew.testing import Answer, Call, StrictProvider
from clew.testing.provider.answers import ProviderTurn
from clew.testing.provider.serving import LoopbackServer, ServedReply, ServedRequest
from clew.wire import named
from clew.wire.requests import api_call
from clients import Body, accumulated, called, create, engine, joined, plain_of, results, said, text_of, user
from streams import chunk, fragment

ASKS = Call("search_history", {"query": "door"}, "call_s")
READS = Call("read", {"path": "a"}, "call_r")
FAILS = 60  # seconds after which a test that would wait for ever fails


class Gated:
    """A server on loopback that sends a stream up to a mark, and the rest when it is told to."""

    def __init__(self, script: list[Answer], mark: bytes) -> None:
        self._script = script
        self._mark = mark
        self.gate = Event()
        self.sent: list[str] = []
        self.heard: list[Body] = []
        self._server = LoopbackServer(self._answer)

    def __enter__(self) -> "Gated":
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        self._server.stop()

    @property
    def url(self) -> str:
        return self._server.url

    def _answer(self, asked: ServedRequest) -> ServedReply:
        self.heard.append(json.loads(asked.raw))
        call = api_call(asked.path)
        assert call is not None
        format = call.format
        turn = ProviderTurn(format, self.heard[-1], self._script.pop(0), number=len(self.heard))
        return ServedReply(200, self._parts(named(format).stream(turn)), streamed=True)

    def _parts(self, events: Iterator[bytes]) -> Iterator[bytes]:
        for event in events:
            yield event
            if self._mark in event:
                self.gate.wait(FAILS)
        self.sent.append("all")


def raw_events(client: Any, format: str, body: Body) -> list[Body]:
    """The data of all events, as they come over the wire."""
    made = create(client, format).__self__.with_streaming_response.create
    with made(**body, stream=True) as response:
        data = [line.removeprefix("data: ") for line in response.iter_lines() if line.startswith("data: ")]
    return [json.loads(line) for line in data if line != "[DONE]"]


def is_text(event: Any) -> bool:
    if event.__class__.__name__ == "ChatCompletionChunk":
        return bool(event.choices and event.choices[0].delta.content)
    return event.type == "response.output_text.delta" or getattr(getattr(event, "delta", 0), "type", "") == "text_delta"


@pytest.mark.parametrize("format", FORMATS)
def test_text_is_heard_before_the_provider_has_said_the_rest(tmp_path: Path, format: str) -> None:
    script = [Answer("Let me look it up.", calls=(ASKS,), piece=3), Answer("It is green.")]
    with Gated(script, b"Let") as server, plain_of(server, format) as plain:  # type: ignore[arg-type]
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        stream = create(client, format)(**request(format, user("Which colour?")), stream=True)
        assert next(filter(is_text, stream))
        assert server.sent == []  # it waits to be told that this was heard
        server.gate.set()
        assert joined(format, stream).replace("\n", "") == " me look it up.It is green."
        assert server.sent == ["all", "all"]


@pytest.mark.parametrize("format", FORMATS)
async def test_so_it_is_with_a_client_that_awaits(tmp_path: Path, format: str) -> None:
    with Gated([Answer("Well then.", calls=(ASKS, READS), piece=3)], b"Wel") as server:
        async with plain_of(server, format, blocking=False) as plain:  # type: ignore[arg-type]
            client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
            stream = aiter(await create(client, format)(**request(format, user("Which colour?")), stream=True))
            while not is_text(await anext(stream)):
                pass
            assert server.sent == []
            server.gate.set()
            assert [event async for event in stream]
            assert server.sent == ["all"]


@pytest.mark.parametrize("format", FORMATS)
def test_the_callers_own_call_is_heard_before_its_arguments_are_said(tmp_path: Path, format: str) -> None:
    with Gated([Answer(calls=(ASKS, READS))], b'"call_r"') as server, plain_of(server, format) as plain:  # type: ignore[arg-type]
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        stream = create(client, format)(**request(format, user("Read it.")), stream=True)
        assert "call_r" in next(event.to_json() for event in stream if "call_" in event.to_json())
        assert server.sent == []
        server.gate.set()
        assert "call_s" not in "".join(event.to_json() for event in stream)


ROUNDS = [
    Answer("Let me think.", calls=(ASKS,), reasoning="Hm."),
    Answer("Once more.", calls=(Call("search_history", {"query": "colour"}, "call_t"),), reasoning="Well."),
    Answer("It is green; I read on.", calls=(READS, Call("recall", {"id": "x"}, "call_u")), reasoning="So."),
]


@pytest.mark.parametrize("format", FORMATS)
def test_several_answers_are_one_stream(tmp_path: Path, format: str) -> None:
    script = [*ROUNDS, Answer("Done."), Answer("Bye.")]
    with StrictProvider(script, conversation=lambda _: 0) as provider, plain_of(provider, format) as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        history = [user("The door is green. Which colour has it?")]
        answer = accumulated(client, format, request(format, *history))
        told = text_of(format, answer).replace("\n\n", "")
        assert told == "Let me think.Once more.It is green; I read on."
        assert called(format, answer) == [("call_r", "read")]
        usage = answer.usage
        if format != "openai_chat":  # which was not asked for it
            assert getattr(usage, "input_tokens", 0) > 0
        history += [*said(format, answer), *results(format, {"call_r": "A is fine."})]
        assert text_of(format, accumulated(client, format, request(format, *history))) == "Done."
        # Another process, which knows only what the log has.
        again = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        history += [{"role": "assistant", "content": "Done."}, user("Thanks.")]
        assert text_of(format, create(again, format)(**request(format, *history))) == "Bye."
    assert provider.moved == []
    for heard in provider.heard[3:]:
        assert all(id in heard.raw for id in (b"call_r", b"call_s", b"call_t", b"call_u"))
        assert heard.raw.count(b"Let me think.") == 1


def test_its_events_are_numbered_through(tmp_path: Path) -> None:
    for format in FORMATS:
        with StrictProvider([*ROUNDS]) as provider, plain_of(provider, format) as plain:
            client = clew.wrap(plain, engine(tmp_path / f"{format}.db"), tools=True)
            events = raw_events(client, format, request(format))
        kinds = [event.get("type") for event in events]
        if format == "openai_chat":
            assert len({event["id"] for event in events}) == 1
            deltas = [event["choices"][0]["delta"] for event in events]
            assert [delta["role"] for delta in deltas if "role" in delta] == ["assistant"]
            assert {c["index"] for delta in deltas for c in delta.get("tool_calls", ())} == {0}
            assert [e["choices"][0]["finish_reason"] for e in events][-2:] == [None, "tool_calls"]
        elif format == "openai_responses":
            assert [event["sequence_number"] for event in events] == list(range(len(events)))
            opened = [event["output_index"] for event in events if event["type"] == "response.output_item.added"]
            assert opened == list(range(len(opened)))
            assert kinds.count("response.created") == kinds.count("response.completed") == 1
            done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
            assert events[-1]["response"]["output"] == done
            assert events[-1]["response"]["id"] == events[0]["response"]["id"]
        else:
            opened = [event["index"] for event in events if event["type"] == "content_block_start"]
            assert opened == list(range(len(opened)))
            assert kinds.count("message_start") == kinds.count("message_delta") == kinds.count("message_stop") == 1
            assert events[-2]["delta"]["stop_reason"] == "tool_use"
        assert "call_s" not in json.dumps(events)


@pytest.mark.parametrize("format", FORMATS)
def test_a_stream_without_calls_of_clews_is_the_providers_to_the_byte(tmp_path: Path, format: str) -> None:
    turn = ProviderTurn(format, request(format), Answer("Both.", calls=(READS, Call("read")), reasoning="Hm."))
    content = b": hello\n\n" + b"".join(named(format).stream(turn))
    server = LoopbackServer(lambda _: ServedReply(200, [content], streamed=True, packet=7))
    server.start()
    try:
        with plain_of(server, format) as plain:  # type: ignore[arg-type]
            client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
            made = create(client, format).__self__.with_streaming_response.create
            with made(**request(format), stream=True) as response:
                assert response.read() == content
    finally:
        server.stop()


def test_responses_go_on_from_the_last_of_those_that_were_told_as_one(tmp_path: Path) -> None:
    format = "openai_responses"
    with StrictProvider([ROUNDS[0], Answer("Green.")]) as provider, plain_of(provider, format) as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        answer = accumulated(client, format, request(format))
        client.responses.create(model=MODEL, input="And now?", previous_response_id=answer.id)
        # Where nothing was told of the first one, the last one's own id is told.
        provider.script = [Answer(calls=(ASKS,)), Answer("Green.")]
        other = accumulated(client, format, request(format, user("Once more?")))
        client.responses.create(model=MODEL, input="And now?", previous_response_id=other.id)
    asked = [heard.body.get("previous_response_id") for heard in provider.heard]
    assert asked[2] not in (None, answer.id)
    assert asked[5] == other.id


def test_a_call_is_held_back_until_its_name_is_known(tmp_path: Path) -> None:
    def events(name: str) -> bytes:
        said = [chunk(fragment(0, '{"qu', "c1")), chunk(fragment(0, 'ery":"a"}', None, name)), chunk({}, "tool_calls")]
        lines = [b"data: " + json.dumps({"id": "x", "created": 1, "model": MODEL, **event}).encode() for event in said]
        return b"\n\n".join([*lines, b"data: [DONE]\n\n"])

    script = [events("read"), events("search_history"), events("read")]
    server = LoopbackServer(lambda _: ServedReply(200, [script.pop(0)], streamed=True))
    server.start()
    try:
        with plain_of(server, "openai_chat") as plain:  # type: ignore[arg-type]
            client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
            for _ in range(2):
                answer = accumulated(client, "openai_chat", request("openai_chat"))
                [call] = answer.choices[0].message.tool_calls
                assert (call.function.name, call.function.arguments) == ("read", '{"query":"a"}')
    finally:
        server.stop()
    assert script == []


@pytest.mark.few(1)
@pytest.mark.parametrize("format", FORMATS)
def test_a_model_that_asks_without_end_is_cut_short(tmp_path: Path, format: str) -> None:
    with (
        StrictProvider([Answer("Again.", calls=(Call("search_history", {"query": "x"}),))]) as provider,
        plain_of(provider, format) as plain,
    ):
        client = clew.wrap(plain, engine(tmp_path / "clew.db", window=100_000), tools=True)
        answer = accumulated(client, format, request(format))
    assert called(format, answer) == []
    assert text_of(format, answer).count("Again.") == 21
    if format == "openai_chat":
        assert answer.choices[0].finish_reason == "stop"
    if format == "anthropic":
        assert answer.stop_reason == "end_turn"


@pytest.mark.parametrize("format", FORMATS)
def test_what_a_model_thought_before_it_looked_something_up_is_sent_once(format: str, tmp_path: Path) -> None:
    script = [Answer(calls=(ASKS,), reasoning="first thought"), Answer(calls=(READS,), reasoning="second thought")]
    heard: list[Body] = []

    def answer(body: Body) -> Answer:
        heard.append(body)
        return script.pop(0) if script else Answer("done")

    with StrictProvider(answer) as provider, plain_of(provider, format) as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db", window=60_000), tools=True)
        thinks = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4_000}
        body = request(format, user("Why?"), **(thinks if format == "anthropic" else {}))
        first = accumulated(client, format, body)
        key = "input" if format == "openai_responses" else "messages"
        read = results(format, {id: "text" for id, _ in called(format, first)})
        second = accumulated(client, format, {**body, key: [*body[key], *said(format, first), *read]})
        assert text_of(format, second) == "done"
    sent = json.dumps(heard[-1][key])
    assert (sent.count("first thought"), sent.count("second thought")) == (1, 1)
