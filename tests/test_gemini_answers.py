"""Answers of Gemini as they are heard, joined and freed of clew's calls: cut anywhere, in packets of any size."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import cases
from clew.catalog.usage import Spent, spent
from clew.core import rawjson
from clew.errors import ModelError
from clew.exchange.answers import AnswerReader, without
from clew.llm.streaming import Spoken
from clew.wire import check, decode, encode
from clew.wire.formats import named
from clew.wire.formats.base import CallResult
from clew.wire.formats.gemini.answers import GeminiAnswer
from clew.wire.formats.gemini.joining import GeminiStream
from clew.wire.streams.joined import HeardEvent
from streams_gemini import RECORDED, SIGN, Chunk, Said, call, chunk, model, text, thought

OURS = ("recall", "search_history")
each = pytest.mark.parametrize("said", RECORDED, ids=lambda said: said.name)


def heard(content: bytes, size: int | None = None) -> tuple[AnswerReader, list[HeardEvent]]:
    """Who read these bytes in packets of this size, and the events in them."""
    reader = AnswerReader("gemini")
    return reader, [event for packet in [*packets(content, size), b""] for event in reader.add(packet)]


def packets(content: bytes, size: int | None) -> list[bytes]:
    size = size or max(len(content), 1)
    return [content[i : i + size] for i in range(0, len(content), size)]


def said_in(content: bytes, size: int | None = None) -> Spoken | None:
    """What comes of it, the same for who takes events and who only listens."""
    reader, listener = heard(content, size)[0], AnswerReader("gemini")
    for packet in [*packets(content, size), b""]:
        listener.hear(packet)
    assert reader.spoken() == listener.spoken()
    return reader.spoken()


# --- heard ----------------------------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("size", [1, 2, 7, None])
def test_a_stream_comes_to_what_was_said(said: Said, size: int | None) -> None:
    assert said_in(said.events, size) == said_in(said.listed, size) == said.spoken


@each
def test_so_does_an_answer_in_one_piece(said: Said) -> None:
    if [*said.chunks[0]] == ["promptFeedback", "usageMetadata"] or said.spoken.stop == "cut":
        return
    parts = said.spoken.messages[0]["parts"] if said.spoken.messages else []
    whole = chunk(*parts, why=said.spoken.reason, usageMetadata=said.spoken.usage)
    assert said_in(json.dumps(whole, indent=2).encode()) == said.spoken


@each
def test_what_was_said_can_be_sent_back(said: Said) -> None:
    results = named("gemini").results([CallResult(c.id, c.name, "done") for c in said.spoken.calls])
    hello = {"role": "user", "parts": [text("Hello")]}
    body = {"contents": [hello, *said.spoken.messages, *(results or [hello])]}
    assert check(body) == []
    frame, items = decode(body, "gemini")
    assert encode(frame, items) == body
    calls = [item.call_id for item in items if item.kind == "call"]
    assert calls == [item.call_id for item in items if item.kind == "result"] == [c.id for c in said.spoken.calls]


@each
def test_a_stream_that_is_cut_at_any_byte_says_a_beginning(said: Said) -> None:
    for end in range(len(said.events)):
        reader, _ = heard(said.events[:end])
        spoken = reader.spoken()
        assert reader.refusal == ""
        if spoken is None:  # half an event was the last
            continue
        assert said.spoken.text.startswith(spoken.text)
        assert said.spoken.calls[: len(spoken.calls)] == spoken.calls
        assert spoken.stop in ("cut", said.spoken.stop)


@pytest.mark.parametrize("size", [1, 40, None])
def test_who_wants_only_the_usage_gets_it(size: int | None) -> None:
    reader = AnswerReader("gemini", only_usage=True)
    for packet in [*packets(RECORDED[0].events, size), b""]:
        reader.hear(packet)
    spoken = reader.spoken()
    assert spoken is not None
    assert spoken.usage == RECORDED[0].spoken.usage


def test_its_usage_is_read() -> None:
    assert spent(RECORDED[0].spoken.usage) == Spent(9, 8, 4)


ERROR: Chunk = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
ERRORS = {
    "whole": json.dumps(ERROR, indent=2).encode(),
    "listed": json.dumps([ERROR]).encode(),
    "an event": b"data: " + rawjson.dumps(ERROR) + b"\r\n\r\n",
}


@pytest.mark.parametrize("content", ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("size", [1, None])
def test_an_error_is_a_refusal(content: bytes, size: int | None) -> None:
    reader, _ = heard(content, size)
    assert (reader.refusal, reader.lost, reader.spoken()) == ("The model is overloaded.", True, None)


@pytest.mark.parametrize("error", [ERRORS["an event"], ERRORS["whole"], ERRORS["whole"].replace(b"\n", b"")])
@pytest.mark.parametrize("size", [1, 5, None])
def test_an_error_after_words_is_no_end(error: bytes, size: int | None) -> None:
    begun = b"data: " + rawjson.dumps(chunk(text("So"))) + b"\r\n\r\n"
    reader, events = heard(begun + error, size)
    assert (reader.refusal, reader.spoken()) == ("", None)
    told = GeminiStream(OURS.__contains__)
    assert (told.add(events) + told.end(muted=False)).rstrip() == (begun + error).rstrip()


@pytest.mark.parametrize(
    ("code", "words", "fault"),
    [
        (429, "Resource has been exhausted", "busy"),
        (503, "The model is overloaded.", "busy"),
        (403, "Method doesn't allow unregistered callers", "auth"),
        (400, "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).", "overflow"),
        (400, "Request contains an invalid argument.", "refused"),
    ],
)
def test_an_error_is_of_its_kind(code: int, words: str, fault: str) -> None:
    with pytest.raises(ModelError) as caught:
        list(GeminiAnswer().add({"error": {"code": code, "message": words, "status": "X"}}))
    assert caught.value.fault == fault


# --- without clew's calls -------------------------------------------------------------------------------------------


def test_a_whole_answer_loses_clews_calls_and_the_first_of_the_others_is_signed() -> None:
    answer = chunk(text("I look."), call("recall", thoughtSignature=SIGN), call("ls"), call("recall"), call("ls"))
    [told] = json.loads(without(rawjson.dumps(answer), "gemini", {"recall~0", "recall~1"}, left=True))["candidates"]
    assert told["content"]["parts"] == [text("I look."), call("ls", thoughtSignature=SIGN), call("ls")]


def test_so_do_the_chunks_of_a_list() -> None:
    chunks = [chunk(call("recall", "c1", thoughtSignature=SIGN)), chunk(call("ls", "c2"), why="STOP")]
    told = json.loads(without(rawjson.dumps(chunks), "gemini", {"c1"}, left=True))
    assert [c["candidates"][0]["content"]["parts"] for c in told] == [
        [text("")],
        [call("ls", "c2", thoughtSignature=SIGN)],
    ]
    assert told[1]["candidates"][0]["finishReason"] == "STOP"


def test_an_answer_of_nothing_but_clews_calls_says_an_empty_text() -> None:
    told = json.loads(without(rawjson.dumps(chunk(call("recall"), why="STOP")), "gemini", {"recall~0"}, left=False))
    assert told["candidates"] == chunk(text(""), why="STOP")["candidates"]


# --- joined ---------------------------------------------------------------------------------------------------------

parts = st.one_of(
    st.sampled_from(["Well.", "größer", " ", "\n"]).map(text),
    st.sampled_from(["Hm.", "So."]).map(thought),
    st.sampled_from([("ls", ""), ("ls", "c1"), ("pwd", "")]).map(lambda c: call(*c)),
    st.sampled_from([("recall", ""), ("recall", "c2"), ("search_history", "")]).map(lambda c: call(*c)),
)
answers = st.lists(st.lists(parts, min_size=1, max_size=3), min_size=1, max_size=5)


def signed(chunks: list[list[Chunk]]) -> list[list[Chunk]]:
    """The same with a signature on the first call, as Gemini 3 gives it."""
    first = next((part for chunk in chunks for part in chunk if "functionCall" in part), None)
    return [[{**p, "thoughtSignature": SIGN} if p is first else p for p in chunk] for chunk in chunks]


def events_of(chunks: list[list[Chunk]], id: str, lone_end: bool) -> bytes:
    """The events of one answer; the reason stands with the last parts, or alone."""
    ends = [*chunks, []] if lone_end else chunks
    usage = {"promptTokenCount": int(id)}
    said = [
        chunk(*parts, why="STOP" if n == len(ends) - 1 else None, usageMetadata=usage) | {"responseId": id}
        for n, parts in enumerate(ends)
    ]
    return b"".join(b"data: " + rawjson.dumps(one) + b"\r\n\r\n" for one in said)


def is_ours(part: Chunk) -> bool:
    return "functionCall" in part and part["functionCall"]["name"] in OURS


def theirs(chunks: list[list[Chunk]]) -> list[Chunk]:
    return [part for chunk in chunks for part in chunk if not is_ours(part)]


def calls_of(parts: list[Chunk]) -> list[Chunk]:
    return [part["functionCall"] for part in parts if "functionCall" in part]


def words_of(parts: list[Chunk], thought: bool) -> str:
    return "".join("".join(p.get("text", "").split()) for p in parts if bool(p.get("thought")) is thought)


@given(st.lists(answers, min_size=1, max_size=4), st.integers(1, 200), st.booleans())
@settings(max_examples=cases(100))
def test_several_answers_are_one_stream(rounds: list[list[list[Chunk]]], size: int, lone_end: bool) -> None:
    rounds = [signed(chunks) for chunks in rounds]
    joined = named("gemini").joined(OURS.__contains__)
    out = b""
    for n, chunks in enumerate(rounds):
        reader = AnswerReader("gemini")
        for packet in [*packets(events_of(chunks, str(n + 1), lone_end), size), b""]:
            out += joined.add(reader.add(packet))
        spoken = reader.spoken()
        assert spoken is not None
        assert spoken.stop == ("calls" if spoken.calls else "end")
        assert joined.over
        ours = [c for c in spoken.calls if c.name in OURS]
        out += joined.again() if n < len(rounds) - 1 else joined.end(muted=0 < len(ours) == len(spoken.calls))
    told = [json.loads(line[6:]) for line in out.decode().split("\n") if line.startswith("data: ")]
    got = [part for one in told for c in one["candidates"] for part in c["content"]["parts"]]
    assert not any(map(is_ours, got))
    kept = [part for chunks in rounds for part in theirs(chunks)]
    assert calls_of(got) == calls_of(kept)
    assert [words_of(got, thought) for thought in (False, True)] == [
        words_of(kept, thought) for thought in (False, True)
    ]
    assert [i for i, one in enumerate(told) if one["candidates"][0].get("finishReason")] == [len(told) - 1]
    assert told[-1]["usageMetadata"] == {"promptTokenCount": len(rounds)}
    assert len({one["responseId"] for one in told}) == 1
    # Each of the caller's first calls is signed, as it was the first or not.
    for chunks in rounds:
        if first := calls_of(theirs(chunks))[:1]:
            assert any(part.get("functionCall") == first[0] and part.get("thoughtSignature") for part in got)


@given(answers, st.integers(1, 200))
@settings(max_examples=cases(80))
def test_a_stream_without_clews_calls_is_the_providers_to_the_byte(chunks: list[list[Chunk]], size: int) -> None:
    chunks = [[part for part in parts if not is_ours(part)] for parts in chunks]
    content = b": hello\r\n\r\n" + events_of(chunks, "1", lone_end=False)
    joined = named("gemini").joined(OURS.__contains__)
    reader = AnswerReader("gemini")
    out = b"".join(joined.add(reader.add(packet)) for packet in [*packets(content, size), b""])
    assert out + joined.end(muted=False) == content


@given(answers, answers, st.data())
@settings(max_examples=cases(80))
def test_what_is_cut_tells_no_call_of_clews(first: list[Any], second: list[Any], data: st.DataObject) -> None:
    joined = named("gemini").joined(OURS.__contains__)
    out = b""
    content = events_of(second, "2", lone_end=False)
    cut = data.draw(st.integers(0, len(content)))
    for part in (events_of(first, "1", lone_end=False), content[:cut]):
        out += joined.add(AnswerReader("gemini").add(part))
        out += joined.again() if part is not content[:cut] else b""
    assert b'"recall"' not in out
    assert b"search_history" not in out


def test_texts_of_two_answers_do_not_run_together() -> None:
    joined = named("gemini").joined(OURS.__contains__)
    out = b""
    for parts in ([text("I look."), call("recall")], [thought("Hm."), text("Green.")]):
        out += joined.add(heard(events_of([parts], "1", lone_end=False))[1])
        out += joined.again() if call("recall") in parts else joined.end(muted=False)
    spoken = said_in(out)
    assert spoken is not None
    assert spoken.text == "I look.\n\nGreen."
    assert spoken.messages == model(text("I look."), thought("Hm."), text("\n\nGreen."))


def test_a_signature_signs_no_call_of_a_later_answer() -> None:
    joined = named("gemini").joined(OURS.__contains__)
    joined.add(heard(events_of([[text("So."), call("recall", thoughtSignature=SIGN)]], "1", lone_end=False))[1])
    joined.again()
    joined.add(heard(events_of([[call("ls")]], "2", lone_end=False))[1])
    assert SIGN.encode() not in joined.end(muted=False)


@pytest.mark.parametrize("content", [b'{"error":{"code":500,"message":"No.","status":"INTERNAL"}}', b"No.", b"[]", b""])
def test_a_failure_between_answers_is_told_outside_of_any_event(content: bytes) -> None:
    told = json.loads(GeminiStream(OURS.__contains__).failed(content, 500))
    assert told["error"]["code"] == 500
    assert told["error"]["message"]
