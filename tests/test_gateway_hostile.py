"""Clients that are slow, silent, huge, many, or gone."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from clew import Engine, open_store
from clew.gateway.connection import LARGEST_HEAD
from clew.gateway.settings import GatewaySettings
from clew.sessions.totals import totals
from clew.testing import Answer, StrictProvider
from rudeness import EVENTS, chunk, dialled, heard, post, rude, stalls, whole
from serving import Served, serving

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
GEMINI = "/v1beta/models/gemini-2.5-pro:generateContent"
HURRY = GatewaySettings(client_silence=0.3)
SAID = {"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}]}
BODIES: dict[str, dict[str, Any]] = {
    CHAT: SAID,
    MESSAGES: {**SAID, "model": "claude-sonnet-4-5", "max_tokens": 9},
    "/v1/responses": {"model": "gpt-5", "input": "hi"},
    GEMINI: {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    "/v1/files": {"a": 1},
    "/v1/messages/count_tokens": {**SAID, "model": "claude-sonnet-4-5"},
}


def idle(served: Served) -> None:
    """Wait until nothing is being answered any more."""
    while served.gateway.metrics.running:
        threading.Event().wait(0.01)


# --- gone -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("path", BODIES)
def test_a_client_that_hangs_up_while_it_waits_ends_the_call(path: str, streamed: bool) -> None:
    with rude(stalls()) as (served, upstream):
        with dialled(served, post(path, {**BODIES[path], **({"stream": True} if streamed else {})})):
            assert upstream.told.get() == "asked"
        assert upstream.told.get() == "ended"
        idle(served)
        assert 'clew_requests_total{status="499"} 1' in served.gateway.metrics.text()


def test_a_client_that_asks_twice_at_once_and_hangs_up_ends_the_call() -> None:
    with rude(stalls()) as (served, upstream):
        with dialled(served, post(CHAT, SAID) + post(CHAT, SAID)):
            assert upstream.told.get() == "asked"
        assert upstream.told.get(timeout=30) == "ended"
        idle(served)


@pytest.mark.parametrize("head", [EVENTS + chunk(b"data: {}\n\n"), b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"])
def test_a_client_that_hangs_up_in_the_middle_of_an_answer_ends_the_call(head: bytes) -> None:
    with rude(stalls(head)) as (served, upstream):
        with dialled(served, post(CHAT, {**SAID, "stream": True})) as line:
            assert upstream.told.get() == "asked"
            if b"event-stream" in head:
                assert line.recv(100).startswith(b"HTTP/1.1 200")
        assert upstream.told.get() == "ended"
        idle(served)


async def test_calls_that_nobody_answered_count_as_none(tmp_path: Path) -> None:
    file, named = tmp_path / "log.db", {"x-clew-session": "s"}
    with rude(stalls(), store=file) as (served, upstream):
        for _ in range(2):  # the client does not wait
            with dialled(served, post(CHAT, SAID, headers=named)):
                assert upstream.told.get() == "asked"
            assert upstream.told.get() == "ended"
        idle(served)
        upstream.act = lambda line: line.close()  # nobody is there
        assert served.ask(CHAT, SAID, named).status == 502
        refused = json.dumps({"error": {"message": "slower", "type": "rate_limit_exceeded"}}).encode()
        head = f"HTTP/1.1 429 No\r\ncontent-type: application/json\r\ncontent-length: {len(refused)}\r\n\r\n"
        upstream.act = lambda line: line.sendall(head.encode() + refused)
        assert served.ask(CHAT, SAID, named).status == 429
        upstream.act = lambda line: line.sendall(whole({"choices": []}))  # an answer, of which nothing is reported
        assert served.ask(CHAT, SAID, named).status == 200
    store = open_store(file)
    [session] = await store.sessions("default")
    [call] = await store.calls("default", session.branch)
    found = await totals(Engine(store), "default", [session])
    await store.close()
    assert (session.calls, session.sent) == (found.calls, found.sent) == (1, call.predicted)
    assert found.everything == call.predicted


def test_what_a_client_asked_before_it_hung_up_is_in_the_log_once() -> None:
    with rude(stalls()) as (served, upstream):
        for _ in range(3):
            with dialled(served, post(CHAT, SAID, headers={"x-clew-session": "s"})):
                assert [upstream.told.get()] == ["asked"]
            assert upstream.told.get() == "ended"
        upstream.act = lambda line: line.sendall(whole({"choices": []}))
        assert served.ask(CHAT, SAID, {"x-clew-session": "s"}).status == 200
        assert "clew_failed_open_total 0" in served.gateway.metrics.text()


# --- slow and silent --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "kind"), [(CHAT, b'"code":null'), (MESSAGES, b'"timeout_error"'), (GEMINI, b'"code":408')]
)
def test_a_body_that_stops_in_the_middle_is_refused_in_its_providers_words(path: str, kind: bytes) -> None:
    with serving(settings=HURRY) as served:
        with dialled(served, post(path, b"{", length=100)) as line:
            got = heard(line)
        assert got.startswith(b"HTTP/1.1 408")
        assert kind in got
        idle(served)
        assert served.provider.heard == []


def test_a_byte_now_and_then_does_not_keep_a_request_open() -> None:
    with serving(settings=HURRY) as served, dialled(served, post(CHAT, b"", length=100)) as line:
        got, over = list[bytes](), threading.Event()

        def listen() -> None:
            got.append(heard(line))
            over.set()

        listener = threading.Thread(target=listen)
        listener.start()
        while not over.wait(0.02):
            try:
                line.sendall(b" ")
            except OSError:
                break
        listener.join()
        assert got[0].startswith(b"HTTP/1.1 408")


def test_a_body_that_comes_slowly_and_steadily_is_taken() -> None:
    with serving(settings=GatewaySettings(client_silence=1)) as served:
        raw = json.dumps({**SAID, "messages": [{"role": "user", "content": "word " * 2_000}]}).encode()
        with dialled(served, post(CHAT, b"", length=len(raw))) as line:
            for at in range(0, len(raw), 500):
                line.sendall(raw[at : at + 500])
                threading.Event().wait(0.1)
            assert line.recv(100).startswith(b"HTTP/1.1 200")


def test_a_head_that_does_not_come_or_not_to_its_end_is_not_waited_for() -> None:
    with serving(settings=HURRY) as served:
        with dialled(served) as line:
            assert heard(line) == b""
        with dialled(served, b"POST /v1/chat/compl") as line:
            assert heard(line).startswith(b"HTTP/1.1 408")
        with dialled(served, post(CHAT, SAID)) as line:  # the same on a connection that was used
            assert line.recv(1 << 16).startswith(b"HTTP/1.1 200")
            line.sendall(b"GET / HT")
            assert b"HTTP/1.1 408" in heard(line)


def test_an_answer_may_take_longer_than_a_client_may_be_silent() -> None:
    slow = StrictProvider([Answer("word " * 40, pause=0.02)])
    with serving(provider=slow, settings=GatewaySettings(client_silence=0.1)) as served:
        got = served.ask(CHAT, {**SAID, "stream": True})
        assert got.raw.endswith(b"data: [DONE]\n\n")


def test_a_client_that_takes_nothing_of_its_answer_is_not_waited_for() -> None:
    def endless(line: Any) -> None:
        line.sendall(EVENTS)
        while True:
            line.sendall(chunk(b"data: {}\n\n" * 10_000))

    with rude(endless, HURRY) as (served, upstream), dialled(served, post(CHAT, {**SAID, "stream": True})):
        assert [upstream.told.get(), upstream.told.get()] == ["asked", "ended"]
        idle(served)


# --- huge and many ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dribbled", [False, True])
def test_a_head_that_is_too_large_is_refused(dribbled: bool) -> None:
    with serving() as served, dialled(served, b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n") as line:
        try:
            for n in range(2 * LARGEST_HEAD // 1_000):
                line.sendall(b"x-%d: " % n + b"a" * 1_000 + b"\r\n")
                threading.Event().wait(0.001 if dribbled else 0)
            line.sendall(b"content-length: 0\r\n\r\n")
        except OSError:
            pass
        assert heard(line).startswith(b"HTTP/1.1 431") or dribbled  # who is still speaking may not hear it
        assert served.provider.heard == []
        assert served.ask(CHAT, SAID, {"x-large": "a" * (LARGEST_HEAD // 2)}).status == 200


CHUNKED = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "parts",
    [
        [CHUNKED + b"FFFFFFFFFFFFFFFF\r\nab"],
        [CHUNKED + b"0010000000000;a=b\r\nab"],
        [CHUNKED + chunk(b"{") + b"FFFFFFFFFFFFFFFF\r\nab"],
        [CHUNKED, b"FFFFFFFFFFFFFFFF\r\nab"],
        [CHUNKED + b"FFFFFFFF", b"FFFFFFFF\r", b"\nab"],
        [CHUNKED + chunk(b"{")[:-1], b"\nFFFFFFFFFFFFFFFF\r\nab"],
        [CHUNKED + b"1FFFFFFFFFFFFFFFF\r\nab"],
        [CHUNKED + b"ZZ\r\n"],
        [CHUNKED + b"-1\r\n"],
    ],
)
def test_a_chunk_of_no_size_that_can_be_is_refused_at_once(parts: list[bytes]) -> None:
    with serving(settings=HURRY) as served:
        with dialled(served) as line:
            for part in parts:
                line.sendall(part)
                threading.Event().wait(0.02)  # so that they come apart
            got = heard(line)
        assert got.startswith(b"HTTP/1.1 400"), got
        assert json.loads(got.partition(b"\r\n\r\n")[2])["error"]["type"] == "invalid_request_error"
        assert got.count(b"HTTP/1.1") == 1
        idle(served)
        assert served.provider.heard == []


def test_a_line_in_a_body_that_looks_like_such_a_size_is_taken() -> None:
    number = b'{"model":"gpt-5","seed":\r\n12345678901\r\n,"messages":\r\n[{"role":"user","content":"hi"}]}'
    parts = [b"\nFFFFFFFFFFFFFFFF\r\n", b" " * 9_999 + b"\n", number[:26], number[26:]]
    with serving() as served:
        for said in (CHUNKED + chunk(number), CHUNKED + b"00000000000000" + chunk(number)):
            with dialled(served, said + b"0\r\n\r\n") as line:
                assert line.recv(100).startswith(b"HTTP/1.1 200")
        with dialled(served, CHUNKED + b"".join(map(chunk, parts)) + b"0\r\n\r\n") as line:
            assert line.recv(100).startswith(b"HTTP/1.1 400"), "the provider's word: it is no JSON"
        assert [len(asked.raw) for asked in served.provider.heard] == [len(number)] * 2 + [len(b"".join(parts))]


def test_what_is_no_http_behind_a_good_request_is_not_said_to_that_one() -> None:
    with rude(stalls()) as (served, _):
        raw = json.dumps(SAID).encode()
        with dialled(served, CHUNKED + chunk(raw) + b"0\r\n\r\n" + CHUNKED + b"ZZ\r\n") as line:
            assert heard(line) == b""
        idle(served)


def test_json_that_is_deep_goes_to_its_provider_who_says_so() -> None:
    deep = b'{"model":"gpt-5","messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with serving() as served:
        for path in (CHAT, MESSAGES, "/v1/responses", GEMINI, "/v1/responses/compact", "/v1/messages/count_tokens"):
            got = served.ask(path, deep, {"anthropic-version": "2023-06-01"})
            assert got.status == 400, (path, got.raw)
            assert served.provider.heard[-1].raw == deep


def test_what_is_deep_in_a_name_is_no_name() -> None:
    deep = '{"session_id":' * 20_000
    said = {**BODIES[MESSAGES], "metadata": {"user_id": deep}}
    with serving() as served:
        assert served.ask(MESSAGES, said, {"anthropic-version": "2023-06-01"}).status == 200
        codex = {"thread-id": "t", "session-id": "t", "x-codex-turn-metadata": deep[: LARGEST_HEAD // 2]}
        assert served.ask("/v1/responses", BODIES["/v1/responses"], codex).status == 200
        assert "clew_failed_open_total 0" in served.gateway.metrics.text()


@pytest.mark.parametrize("many", [4_999, pytest.param(19_999, marks=pytest.mark.nightly)])
async def test_thousands_of_messages_are_a_conversation(many: int) -> None:
    roles = ("user", "assistant")
    said = [{"role": roles[n % 2], "content": f"turn {n}"} for n in range(many)]
    with serving(window=4_000_000) as served:  # to fold them takes minutes
        got = served.ask(CHAT, {"model": "gpt-5", "messages": said}, {"x-clew-session": "long"})
        assert got.status == 200, got.raw[:500]
        assert "clew_failed_open_total 0" in served.gateway.metrics.text()
        [session] = await served.gateway.engine.store.sessions("default")
        assert len((await served.gateway.engine.view("default", session.branch)).nodes) == len(said)


def test_more_requests_than_are_allowed_are_asked_to_come_again() -> None:
    with rude(stalls(), GatewaySettings(requests=4)) as (served, upstream):
        lines = [dialled(served, post(CHAT, SAID)) for _ in range(4)]
        assert [upstream.told.get() for _ in lines] == ["asked"] * 4
        got = served.ask(MESSAGES, BODIES[MESSAGES])
        assert (got.status, got.headers["retry-after"]) == (429, "1")
        assert got.json()["error"]["type"] == "rate_limit_error"
        assert served.ask("/livez", method="GET").status == 200
        for line in lines:
            line.close()
        idle(served)
        upstream.act = lambda line: line.sendall(whole({"choices": []}))
        assert served.ask(CHAT, SAID).status == 200


@pytest.mark.parametrize(
    "target", ["*", "@evil.example/v1/files", ":1/v1/files", "http://evil.example/v1/files", "//evil.example/x"]
)
def test_no_target_leads_to_another_host(target: str) -> None:
    with rude(stalls(whole({}))) as (served, upstream):
        with dialled(served, post(target, b"{}", headers={"connection": "close"})) as line:
            assert heard(line)[:12] in (b"HTTP/1.1 200", b"HTTP/1.1 400")
        for raw in upstream.heard:
            assert f"host: {upstream.url.removeprefix('http://')}".encode() in raw.lower()


def test_a_call_may_write_a_schema() -> None:
    schema = {"type": "object", "properties": {"type": {"type": "string"}}}
    call = {"type": "tool_use", "id": "toolu_1", "name": "write", "input": schema}
    back = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "written"}
    said = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [back]},
    ]
    tool = {"name": "write", "input_schema": {"type": "object"}}
    with serving() as served:
        body = {**BODIES[MESSAGES], "messages": said, "tools": [tool]}
        assert served.ask(MESSAGES, body, {"anthropic-version": "2023-06-01"}).status == 200
        assert "clew_failed_open_total 0" in served.gateway.metrics.text()


def test_a_name_is_the_one_that_was_meant() -> None:
    with serving() as served:
        for name in ("café", "日本"):
            raw = name.encode().decode("latin-1")  # as it is on the wire
            assert served.ask(CHAT, SAID, {"x-clew-session": raw, "x-title": raw}).status == 200
            assert served.provider.heard[-1].headers["x-title"].encode("latin-1") == name.encode()
            assert served.ask(CHAT, SAID, {"x-odd": "\xe9"}).status == 200
