"""The gateway: what it passes, what it refuses, and in whose words."""

import gzip
import json
import socket
import sys
import zlib
from typing import Any
from urllib.parse import urlsplit

import brotli
import pytest

import clew
from clew.control import ContextController
from clew.core import rawjson
from clew.core.view import View
from clew.engine.append import Addition
from clew.errors import Conflict, StoreError
from clew.gateway.degraded import SparedThread, SpareEngine
from clew.gateway.http import GatewayRequest
from clew.gateway.settings import GatewaySettings
from clew.gateway.speakers import LONGEST_NAME
from clew.gateway.upstreams import Upstream
from clew.testing import Answer, StrictProvider
from serving import Served, serving

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    import pyzstd as zstd

CHAT = "/v1/chat/completions"
ANTHROPIC = {"anthropic-version": "2023-06-01"}


def chat(*texts: str, **more: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    return {"model": "gpt-5", "messages": [{"role": roles[i % 2], "content": t} for i, t in enumerate(texts)], **more}


def messages(*texts: str, **more: Any) -> dict[str, Any]:
    return {**chat(*texts), "model": "claude-sonnet-4-5", "max_tokens": 100, **more}


# --- paths ------------------------------------------------------------------------------------------------------------


def test_what_is_asked_of_the_gateway_itself() -> None:
    with serving() as served:
        assert served.ask("/", method="HEAD").status == 200
        assert served.ask("/livez", method="GET").json() == {"status": "ok"}
        assert served.ask("/readyz", method="GET").json() == {"status": "ok"}
        told = served.ask("/metrics", method="GET")
        assert b"clew_requests_total" in told.raw
        assert told.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert served.provider.heard == []


async def test_two_long_names_that_differ_at_their_end_are_two_conversations() -> None:
    with serving() as served:
        for end in ("one", "two", "one"):
            assert served.ask(CHAT, chat("hi"), {"x-clew-session": f"{'nightly/' * 40}{end}"}).status == 200
        names = {str(session.name) for session in await served.gateway.engine.store.sessions("default")}
        assert len(names) == 2
        assert max(map(len, names)) <= LONGEST_NAME


def test_a_web_socket_is_refused_so_that_codex_falls_back_at_once() -> None:
    with serving() as served:
        asked = {
            "connection": "Upgrade",
            "upgrade": "websocket",
            "sec-websocket-key": "a" * 22 + "==",
            "sec-websocket-version": "13",
        }
        assert served.ask("/v1/responses", method="GET", headers=asked).status == 426


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/chat/completions", "/v1/v1/chat/completions"])
def test_a_base_url_may_have_its_version_or_not(path: str) -> None:
    with serving() as served:
        assert served.ask(path, chat("hi")).status == 200
        assert served.provider.heard[0].path == CHAT


def test_unknown_paths_pass_with_their_query_and_their_headers() -> None:
    with serving() as served:
        got = served.ask("/v1/files?purpose=x", {"a": 1}, {"x-odd": "1", "openai-beta": "b"})
        assert got.status == 404
        assert got.json()["error"]["message"] == "Invalid URL (POST /v1/files)"
        assert served.ask("/v1/models", method="GET").json()["object"] == "list"
        listed = served.ask("/v1/models", method="GET", headers=ANTHROPIC).json()
        assert "has_more" in listed


def test_bytes_are_untouched_where_nothing_is_compacted() -> None:
    odd = (
        b'{ "model":"gpt-5" ,\n"messages":[{"content":"caf\\u00e9 \\/ 1","role":"user"}],'
        b'"seed":12345678901234567890, "metadata":{"b":1.0,"a":1e2}}'
    )
    with serving() as served:
        assert served.ask(CHAT, odd, {"openai-organization": "org", "x-stainless-lang": "python"}).status == 200
        [heard] = served.provider.heard
        assert heard.raw == odd
        assert heard.headers["openai-organization"] == "org"
        assert heard.headers["x-stainless-lang"] == "python"


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("br", brotli.compress),
        ("zstd", zstd.compress),
    ],
)
def test_bodies_may_be_compressed(coding: str, packed: Any) -> None:
    raw = json.dumps(chat("hi there")).encode()
    with serving() as served:
        assert served.ask(CHAT, packed(raw), {"content-encoding": coding}).status == 200
        assert served.provider.heard[0].raw == raw
        assert "content-encoding" not in served.provider.heard[0].headers
        cut = served.ask(CHAT, packed(raw)[:-6], {"content-encoding": coding})
        assert cut.status == 400
        assert served.ask(CHAT, b"nonsense", {"content-encoding": coding}).status == 400


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("coding", "packed"), [("gzip", gzip.compress), ("br", brotli.compress), ("zstd", zstd.compress)]
)
def test_a_small_body_that_becomes_a_huge_one_is_refused(coding: str, packed: Any) -> None:
    with serving(settings=GatewaySettings(body=1 << 20)) as served:
        got = served.ask(CHAT, packed(b" " * (64 << 20)), {"content-encoding": coding})
        assert got.status == 413
        assert "1,048,576 bytes" in got.json()["error"]["message"]
        assert served.ask(CHAT, b" " * (2 << 20)).status == 413
        assert served.ask(CHAT, b"x", {"content-encoding": "rot13"}).status == 415


# --- who may ask ------------------------------------------------------------------------------------------------------


def test_other_hosts_and_pages_of_other_hosts_are_refused() -> None:
    with serving() as served:
        assert served.ask(CHAT, chat("hi"), {"host": "evil.example"}).status == 403
        assert served.ask(CHAT, chat("hi"), {"origin": "https://evil.example"}).status == 403
        assert served.ask("/metrics", method="GET", headers={"host": "evil.example"}).status == 403
        assert served.ask(CHAT, chat("hi"), {"origin": "http://localhost:3000"}).status == 403
        assert served.ask(CHAT, chat("hi"), {"origin": served.url}).status == 200
        assert len(served.provider.heard) == 1
    with serving(settings=GatewaySettings(hosts=("gate.example",))) as served:
        assert served.ask(CHAT, chat("hi"), {"host": "gate.example:8377"}).status == 200


def test_with_keys_nobody_comes_without_one_and_none_goes_on() -> None:
    with serving(settings=GatewaySettings(keys={"first-key": "one", "second-key": "two"})) as served:
        assert served.ask(CHAT, chat("hi")).status == 401
        assert served.ask(CHAT, chat("hi"), {"authorization": "Bearer wrong"}).status == 401
        assert served.ask("/metrics", method="GET").status == 401
        for header in (
            {"authorization": "Bearer first-key"},
            {"x-api-key": "first-key"},
            {"x-goog-api-key": "first-key"},
        ):
            assert served.ask(CHAT, chat("hi"), header).status == 200
        assert served.ask(CHAT, chat("hi"), {"x-clew-key": "second-key", "authorization": "Bearer mine"}).status == 200
        for heard in served.provider.heard:
            assert heard.headers["authorization"] == "Bearer key"
            assert not any(name.startswith("x-clew") or "first-key" in value for name, value in heard.headers.items())
        refused = served.ask("/v1/messages", messages("hi"), ANTHROPIC)
        assert refused.json()["error"]["type"] == "authentication_error"


async def test_tenants_are_sealed() -> None:
    with serving(settings=GatewaySettings(keys={"first-key": "one", "second-key": "two"})) as served:
        said = chat("My word is heliotrope.", "Noted.", "What is it?")
        for key in ("first-key", "second-key"):
            assert served.ask(CHAT, said, {"x-clew-key": key, "x-clew-session": "same"}).status == 200
        store = served.gateway.engine.store
        branches = [(await store.sessions(scope))[0].branch for scope in ("one", "two")]
        assert branches[0] != branches[1]
        assert await store.sessions("default") == []


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 529])
def test_errors_of_a_provider_pass_as_they_are(status: int) -> None:
    provider = StrictProvider([Answer(status=status, retry_after=7)])
    with serving(provider=provider) as served:
        got = served.ask(CHAT, chat("hi"))
        assert (got.status, got.headers["retry-after"]) == (status, "7")
        assert "message" in got.json()["error"]


def test_what_cannot_be_read_goes_to_its_provider_who_says_so() -> None:
    with serving() as served:
        for raw in (b"", b"{", b"[]", b'{"model":"gpt-5"}', b'{"messages":3,"model":"gpt-5"}', b"\xff\xfe"):
            got = served.ask(CHAT, raw)
            assert got.status == 400, raw
            assert served.provider.heard[-1].raw == raw


def test_an_upstream_that_is_not_there_is_said_in_the_clients_words() -> None:
    with serving() as served:
        free = socket.create_server(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        for upstream in served.gateway.upstreams.known:
            object.__setattr__(upstream, "url", f"http://127.0.0.1:{port}")
        assert served.ask(CHAT, chat("hi")).json()["error"]["type"] == "server_error"
        got = served.ask("/v1/messages", messages("hi"), ANTHROPIC)
        assert (got.status, got.json()["error"]["type"]) == (502, "api_error")


class Broken:
    """A store whose turns fail."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, *_: Any) -> None:
        raise StoreError("the disk is full")


def broken(served: Served) -> None:
    turns = served.gateway.engine._turns
    turns.store = Broken(turns.store)


class Failing:
    """A compactor that fails on everything."""

    def __getattr__(self, name: str) -> Any:
        raise ZeroDivisionError


def test_a_request_that_clew_fails_on_goes_on_as_it_came_and_says_so() -> None:
    with serving() as served:
        served.gateway.engine._turns.compactor = Failing()  # type: ignore[assignment]
        got = served.ask(CHAT, chat("hi"))
        assert got.status == 200
        assert got.headers["x-clew"].startswith("failed open")
        assert 'clew_failed_open_total{error="ZeroDivisionError"} 1' in served.gateway.metrics.text()


def test_while_the_store_fails_requests_are_fitted_from_memory_and_the_gateway_says_so() -> None:
    with serving(window=8_000) as served:
        said = [f"Story number {i}: " + " ".join(f"chapter-{i}-{n}" for n in range(300)) for i in range(21)]
        works, turns = served.gateway.engine._turns.store, served.gateway.engine._turns
        broken(served)
        got = served.ask(CHAT, chat(*said))
        assert got.status == 200
        assert got.headers["x-clew"].startswith("the store fails")
        assert served.provider.heard[-1].spent.input < 8_000
        assert served.ask("/readyz", method="GET").status == 503
        assert "clew_failed_open_total 0" in served.gateway.metrics.text()
        turns.store = works
        served.gateway._calls.spare.works()  # as after some seconds
        got = served.ask(CHAT, chat(*said))
        assert "x-clew" not in got.headers
        assert served.ask("/readyz", method="GET").status == 200
        # All of it is in the log now, also what was said meanwhile.
        assert served.provider.heard[-1].spent.input < 8_000


def test_or_it_is_refused_where_that_is_wished() -> None:
    with serving(settings=GatewaySettings(closed=True)) as served:
        broken(served)
        got = served.ask(CHAT, chat("hi"))
        assert got.status == 503
        assert "gateway.closed" in got.json()["error"]["message"]
        assert served.provider.heard == []


def test_too_long_is_mended_before_the_client_hears_of_it() -> None:
    # The engine believes in a window that is twice as large as the provider's.
    with serving(provider=StrictProvider(window=20_000), window=200_000) as served:
        said = [f"Story number {i}: " + " ".join(f"chapter-{i}-{n}" for n in range(300)) for i in range(41)]
        got = served.ask(CHAT, chat(*said))
        assert got.status == 200, got.raw
        assert len(served.provider.heard) >= 2


def test_what_can_never_fit_is_said_as_its_provider_says_it() -> None:
    with serving(window=4_000) as served:
        long = messages("hi", system="rules " * 8_000)
        got = served.ask("/v1/messages", long, ANTHROPIC)
        assert got.status == 400
        assert "prompt is too long" in got.json()["error"]["message"]


def test_a_client_that_stops_in_the_middle_of_its_body_does_no_harm() -> None:
    with serving() as served:
        parts = urlsplit(served.url)
        for text in (
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{",
            b"POST / HT",
        ):
            with socket.create_connection((parts.hostname, parts.port)) as line:
                line.sendall(text)
        assert served.ask(CHAT, chat("hi")).status == 200
        assert len(served.provider.heard) == 1


def test_a_client_that_hangs_up_ends_the_stream_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    slow = Answer(" ".join(f"word-{n}" for n in range(2_000)), pause=0.01)
    with serving(provider=StrictProvider([slow, Answer("Understood.")])) as served:
        parts = urlsplit(served.url)
        raw = json.dumps(chat("tell me", stream=True)).encode()
        head = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(raw)}\r\n\r\n"
        with socket.create_connection((parts.hostname, parts.port)) as line:
            line.sendall(head.encode() + raw)
            assert line.recv(4_096).startswith(b"HTTP/1.1 200")
        assert served.ask(CHAT, chat("hi")).status == 200
    assert caplog.records == []


def test_headers_that_stand_twice_go_on_twice() -> None:
    twice = [("anthropic-beta", "one"), ("anthropic-beta", "two")]
    asked = GatewayRequest("POST", "/", "", [(k.encode(), v.encode()) for k, v in twice], _never, 1)
    sent = Upstream("a", "anthropic", "http://localhost", "").headers(asked.pairs, own_keys=False)
    assert sent == [*twice, ("accept-encoding", "identity")]


async def _never() -> dict[str, Any]:
    raise AssertionError("nothing is read")


# --- counts -----------------------------------------------------------------------------------------------------------


async def test_counting_leaves_nothing_in_the_log() -> None:
    with serving() as served:
        assert served.ask("/v1/messages/count_tokens?beta=true", messages("hi"), ANTHROPIC).json()["input_tokens"] > 0
        assert served.ask("/v1/responses/input_tokens", {"model": "gpt-5", "input": "hi"}).json()["input_tokens"] > 0
        assert await served.gateway.engine.store.sessions("default") == []


@pytest.mark.parametrize("compaction", ["prevent", "answer", "pass"])
async def test_titles_stay_outside_of_every_conversation(compaction: Any) -> None:
    crush = {"role": "system", "content": "you will generate a short title based on the first message a user begins"}
    with serving(settings=GatewaySettings(compaction=compaction)) as served:
        asked = chat("Generate a title for this conversation: hello")
        for body in (asked, {**asked, "messages": [crush, {"role": "user", "content": "hello"}]}):
            raw = rawjson.dumps(body)
            assert served.ask(CHAT, raw, {"x-session-id": "s"}).status == 200
            assert served.provider.heard[-1].raw == raw
        assert await served.gateway.engine.store.sessions("default") == []


async def test_a_store_that_works_again_leaves_nothing_in_memory_of_what_was_fitted_meanwhile() -> None:
    engine = clew.Engine(clew.SQLite(":memory:"))
    spare, other = SpareEngine(engine), ContextController(engine)
    spare.failed()
    fitted = spare.controller(other).engine
    assert spare.controller(other).engine is fitted
    spare.works()
    assert spare.controller(other).engine is not fitted
    await engine.close(store=True)


class Beaten(clew.Engine):
    """Somebody else always took the turn."""

    async def prepare(self, request: clew.Request | Addition) -> View:
        raise Conflict("somebody else took a turn")


async def test_who_is_beaten_to_their_own_conversation_does_not_have_the_store_taken_for_broken() -> None:
    engine = Beaten(clew.SQLite(":memory:"))
    spare = SpareEngine(engine)
    thread = SparedThread(ContextController(engine))
    thread.spare = spare
    sent = await thread.fit({"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello."}]}, "openai_chat")
    assert [node.item.text for node in sent.view.nodes] == ["Hello."]
    assert not spare.is_needed
    await engine.close(store=True)
