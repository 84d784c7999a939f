"""Upstreams that stall, break off, lie, or say what nobody expects."""

import gzip
import json
import socket
import threading
from typing import Any

import pytest

from clew.errors import StoreError
from clew.gateway.settings import GatewaySettings
from rudeness import EVENTS, JSON, OK, chunk, dialled, heard, post, rude, says, spoken, stalls, whole
from serving import serving
from test_gateway import Broken
from test_gateway_hostile import BODIES, CHAT, GEMINI, MESSAGES, SAID

QUICK = GatewaySettings(upstream_silence=0.3)
STREAMED = {**SAID, "stream": True}
SHAPES = {
    CHAT: lambda said: said["error"]["type"],
    MESSAGES: lambda said: said["error"]["type"],
    "/v1/responses": lambda said: said["error"]["type"],
    GEMINI: lambda said: said["error"]["status"],
    "/v1/files": lambda said: said["error"]["type"],
}


def event(said: Any) -> bytes:
    return b"data: " + json.dumps(said).encode() + b"\n\n"


def delta(text: str) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"content": text}}]})


# --- stalls and breaks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", [b"", JSON + b"content-length: 99\r\n\r\n{"])
@pytest.mark.parametrize("path", SHAPES)
def test_an_upstream_that_says_nothing_is_given_up_in_its_own_words(path: str, head: bytes) -> None:
    if head and path == "/v1/files":
        return  # passed on as it comes
    with rude(stalls(head), QUICK) as (served, _):
        got = served.ask(path, BODIES[path])
        assert got.status == 504, got.raw
        assert SHAPES[path](got.json()) in ("server_error", "timeout_error", "DEADLINE_EXCEEDED")


@pytest.mark.parametrize("act", [says, stalls])
def test_a_stream_that_ends_too_early_does_not_look_whole(act: Any) -> None:
    with rude(act(EVENTS + chunk(delta("one "))), QUICK) as (served, upstream):
        with dialled(served, post(CHAT, STREAMED)) as line:
            came = heard(line)
        assert b'"one "' in came
        assert not came.endswith(b"0\r\n\r\n"), "who reads it sees that something is missing"
        upstream.act = says(whole(spoken("well")))
        assert served.ask(CHAT, SAID).status == 200


@pytest.mark.few(10)
@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 700 Odd\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
        whole(b"no gzip", JSON + b"content-encoding: gzip\r\n"),
        whole(gzip.compress(b"{" + b" " * 4_000_000 + b"}"), JSON + b"content-encoding: gzip\r\n"),
    ],
)
@pytest.mark.parametrize("path", [CHAT, MESSAGES, GEMINI])
def test_what_is_no_answer_is_said_to_be_none(path: str, said: bytes) -> None:
    with rude(says(said), GatewaySettings(body=1 << 20, upstream_silence=2)) as (served, _):
        got = served.ask(path, BODIES[path])
        assert got.status == 502, (got.status, got.raw)
        assert SHAPES[path](got.json()) in ("server_error", "api_error", "INTERNAL")


def test_an_answer_without_an_end_is_not_read_for_ever() -> None:
    def endless(line: socket.socket) -> None:
        line.sendall(JSON + b"\r\n")
        while True:
            line.sendall(b" " * 100_000)

    with rude(endless, GatewaySettings(body=1 << 20)) as (served, upstream):
        assert served.ask(CHAT, SAID).status == 502
        assert [upstream.told.get(), upstream.told.get()] == ["asked", "ended"]


@pytest.mark.few(1)
@pytest.mark.parametrize("said", [b'event: ping\ndata: {"type": "ping"}\n\n', b": still here\n\n", b"x" * 9_999])
def test_a_stream_that_does_not_begin_is_passed_on_all_the_same(said: bytes) -> None:
    def endless(line: socket.socket) -> None:
        line.sendall(EVENTS)
        while True:
            line.sendall(chunk(said))

    with rude(endless) as (served, upstream):
        with dialled(served, post(MESSAGES, {**BODIES[MESSAGES], "stream": True})) as line:
            came = b""
            while said[:9] not in came:
                came += line.recv(1 << 16)
        assert [upstream.told.get(), upstream.told.get()] == ["asked", "ended"]


# --- lies -------------------------------------------------------------------------------------------------------------

LIES = [-5, "12", 10**30, 1e308, True, None, [], {"a": 1}, 0.5]


@pytest.mark.parametrize("compaction", ["prevent", "answer"])
@pytest.mark.parametrize("lie", LIES, ids=str)
def test_a_lie_about_usage_does_no_harm(lie: Any, compaction: Any) -> None:
    usage = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens", "input_tokens"), lie)
    with rude(says(whole(spoken("ok", **usage))), GatewaySettings(compaction=compaction)) as (served, upstream):
        said = [*SAID["messages"]]
        for n in range(3):
            got = served.ask(CHAT, {**SAID, "messages": said}, {"x-clew-session": "s"})
            assert got.json() == spoken("ok", **usage)
            assert b'"turn ' in upstream.heard[-1] or not n, "nothing was folded"
            said += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": f"turn {n}"}]
        upstream.act = says(EVENTS + chunk(delta("ok")) + chunk(event({"choices": [], "usage": usage})) + b"0\r\n\r\n")
        assert served.ask(CHAT, {**STREAMED, "messages": said}, {"x-clew-session": "s"}).status == 200
        told = served.gateway.metrics.text()
        assert "clew_failed_open_total 0" in told
        assert "clew_folds_total 0" in told
        assert "nan" not in told
        assert " -" not in told


@pytest.mark.parametrize(
    "head",
    [
        OK,
        OK + b"content-type: text/html\r\n",
        OK + b"content-type: text/event-stream\r\n",
        OK + b"content-type: application/octet-stream\r\n",
    ],
)
@pytest.mark.parametrize(
    "said", [b"", b"<html>", b"{", b"[]", b"null", b"data: {\n\n", json.dumps(spoken("ok")).encode()]
)
def test_an_answer_under_a_false_name_passes_as_it_is(head: bytes, said: bytes) -> None:
    with rude(says(whole(said, head)), GatewaySettings(tools=True)) as (served, _):
        tool = {"type": "function", "function": {"name": "shell", "parameters": {"type": "object"}}}
        for body in (SAID, STREAMED, {**SAID, "tools": [tool]}, {**STREAMED, "tools": [tool]}):
            got = served.ask(CHAT, body)
            assert (got.status, got.raw) == (200, said)


def test_a_redirection_is_passed_on_and_not_followed() -> None:
    said = whole(b"", b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/v1\r\n")
    with rude(says(said)) as (served, upstream):
        got = served.ask(CHAT, SAID)
        assert (got.status, got.headers["location"]) == (307, "http://127.0.0.1:1/v1")
        assert len(upstream.heard) == 1


def test_headers_of_an_upstream_pass_in_their_bytes() -> None:
    head = JSON + "x-name: café\r\nx-list: a\r\nx-list: b\r\nset-cookie: c=1\r\n".encode() + b"x-old: caf\xe9\r\n"
    with rude(says(whole(spoken("ok"), head + b"x-long: " + b"a" * 20_000 + b"\r\n"))) as (served, _):
        with dialled(served, post(CHAT, SAID, headers={"connection": "close"})) as line:
            came = heard(line)
        for known in ("x-name: café".encode(), b"x-old: caf\xe9", b"x-list: a\r\nx-list: b", b"set-cookie: c=1"):
            assert known in came
        assert b"a" * 20_000 in came


def test_an_upstream_that_closes_what_it_kept_open_does_no_harm() -> None:
    with rude(says(whole(spoken("ok")))) as (served, upstream):
        for _ in range(20):
            assert served.ask(CHAT, SAID).status == 200
            assert [upstream.told.get(), upstream.told.get()] == ["asked", "ended"]


# --- a store that cannot be read --------------------------------------------------------------------------------------


class Unreadable(Broken):
    """A store of which nothing can be read."""

    async def learned(self, *_: Any) -> Any:
        raise StoreError("the server is gone")


@pytest.mark.parametrize("closed", [False, True])
def test_a_store_that_cannot_be_read_is_a_failure_like_others(closed: bool) -> None:
    with serving(settings=GatewaySettings(closed=closed)) as served:
        engine = served.gateway._calls._methods._engine
        engine.store = engine._turns.store = Unreadable(engine.store)
        got = served.ask(CHAT, SAID)
        assert got.status == (503 if closed else 200)
        assert closed or got.headers["x-clew"].startswith("the store fails")
        assert served.provider.heard == [] or not closed


# --- a network that is lost -------------------------------------------------------------------------------------------


CODEX = {"originator": "codex_exec", "thread-id": "t"}


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "http://nosuch.invalid"])
@pytest.mark.parametrize("path", [CHAT, MESSAGES, "/v1/responses", GEMINI])
def test_a_lost_network_is_said_at_once_so_that_clients_try_again(path: str, url: str) -> None:
    with serving() as served:
        for upstream in served.gateway.upstreams.known:
            object.__setattr__(upstream, "url", url)
        got = served.ask(path, BODIES[path])
        assert got.status == 502
        assert SHAPES[path](got.json()) in ("server_error", "api_error", "INTERNAL")
        assert "clew: the upstream" in got.raw.decode()


def test_who_waits_for_the_network_alone_is_held_until_it_is_back() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with serving() as served:
        for upstream in served.gateway.upstreams.known:
            object.__setattr__(upstream, "url", f"http://127.0.0.1:{port}")
        got = list[Any]()
        asks = threading.Thread(target=lambda: got.append(served.ask("/v1/responses", BODIES["/v1/responses"], CODEX)))
        asks.start()
        assert served.ask("/v1/models", None, CODEX, "GET").status == 502, "what Codex asks beside is not held"
        asks.join(0.6)
        assert not got, "it is tried again, and nobody is there yet"
        with socket.create_server(("127.0.0.1", port)) as back:
            line = back.accept()[0]
            with line:
                line.recv(100_000)
                line.sendall(whole({"id": "r", "object": "response", "status": "completed", "output": []}))
                asks.join()
        assert got[0].status == 200, got[0].raw
