"""What a gateway lets through: which paths, with whose key, under which name, for which web page."""

from typing import Any

import pytest

from clew.gateway.paths import only_talks
from clew.gateway.settings import GatewaySettings
from clew.testing import StrictProvider
from paging import looking
from rudeness import RudeUpstream, dialled, heard, rude, says, whole
from serving import Served, serving

CLIENTS = GatewaySettings(keys={"key-of-ana": "ana", "key-of-bob": "bob"})
BOB = {"x-clew-key": "key-of-bob"}
CHAT = "/v1/chat/completions"

# What clients ask to talk to a model, to list models, to count and to embed, in every format.
TALK = [
    ("POST", "/v1/chat/completions"),
    ("POST", "/chat/completions"),
    ("POST", "/v1/v1/chat/completions"),
    ("POST", "/v1/completions"),
    ("POST", "/completions"),
    ("POST", "/v1/responses"),
    ("POST", "/v1/responses/compact"),
    ("POST", "/v1/responses/input_tokens"),
    ("POST", "/v1/messages?beta=true"),
    ("POST", "/v1/messages/count_tokens?beta=true"),
    ("POST", "/v1/embeddings"),
    ("POST", "/embeddings"),
    ("POST", "/v1beta/models/gemini-2.5-pro:generateContent"),
    ("POST", "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"),
    ("POST", "/v1beta/models/gemini-2.5-pro:countTokens"),
    ("POST", "/v1beta/models/gemini-embedding-001:embedContent"),
    ("POST", "/v1beta/models/gemini-embedding-001:batchEmbedContents"),
    ("POST", "/v1beta/openai/chat/completions"),
    ("POST", "/model/anthropic.claude-sonnet-4-5-20250929-v1:0/converse"),
    ("POST", "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream"),
    ("POST", "/api/chat"),
    ("GET", "/v1/models"),
    ("GET", "/models"),
    ("GET", "/v1/models/gpt-5.5"),
    ("GET", "/v1beta/models/gemini-2.5-pro"),
    ("GET", "/api/tags"),
]
# What reaches things that others left at a provider, or the account itself.
KEPT = [
    ("GET", "/v1/files"),
    ("GET", "/files"),
    ("POST", "/v1/files"),
    ("GET", "/v1/messages/batches"),
    ("POST", "/v1/messages/batches"),
    ("POST", "/v1/batches"),
    ("GET", "/v1/responses/resp_1"),
    ("DELETE", "/v1/responses/resp_1"),
    ("POST", "/v1/responses/resp_1/cancel"),
    ("GET", "/v1/responses/resp_1/input_items"),
    ("GET", "/v1/chat/completions"),
    ("POST", "/v1/chat/completions/chatcmpl-1"),
    ("GET", "/v1/chat/completions/chatcmpl-1/messages"),
    ("POST", "/v1/conversations"),
    ("GET", "/v1/organization/admin_api_keys"),
    ("DELETE", "/v1/models/ft:gpt-5:mine"),
    ("PATCH", "/v1/models/gpt-5"),
    ("OPTIONS", "/v1/models"),
    ("GET", "/v1beta/files"),
    ("POST", "/upload/v1beta/files"),
    ("GET", "/v1beta/cachedContents"),
    ("POST", "/v1beta/models/gemini-2.5-pro:batchGenerateContent"),
    ("POST", "/v1/files/x:countTokens"),
    ("POST", "/v1beta/models/x;y:generateContent"),
    ("GET", "//v1/files"),
    ("GET", "//v1/models"),
    ("GET", "/V1/Files"),
    ("GET", "/v1/models;/files"),
    ("GET", "/v1/models/x/operations"),
    ("GET", "/v1/models/x/y/z"),
    ("TRACE", "/v1/models"),
    ("PROPFIND", "/v1/models"),
    ("GET", "/v1/models."),
    ("GET", "/v1/models/"),
    ("DELETE", "/api/delete"),
    ("GET", "/anything"),
]
BENT = [
    "/../../admin",
    "/v1/models/../files",
    "/v1/models/..",
    "/v1/./files",
    "/v1/models/.",
    "/v1/models/..;/files",
    "/v1/models/.;/files",
    "/%2e%2e/admin",
    "/%2E./admin",
    "/v1/models/..%2f..%2fadmin",
    "/v1%2Ffiles",
    "/v1/%252e%252e/files",
    "/v1/models\\..\\files",
    "/v1/models%5cfiles",
    "/v1/models/%u002e%u002e/files",
    "/v1/models/%00",
    "/v1/models/%0d%0ax",
    "/v1/models/%7f",
    "/v1/models/%c0%ae%c0%ae%c0%affiles",
    "/v1/models/%e0%80%ae/x",
    "http://elsewhere.example/../v1/files",
]


def went(upstream: RudeUpstream, key: bytes) -> int:
    """How many requests came there with this key, in whatever header or query."""
    return sum(key in raw for raw in upstream.heard)


def told(served: Served, method: str, target: str, *headers: str) -> bytes:
    """All that a gateway says to a request whose target is sent as it is."""
    lines = "".join(f"{line}\r\n" for line in (headers or ("host: localhost", "x-clew-key: key-of-bob")))
    head = f"{method} {target} HTTP/1.1\r\n{lines}connection: close\r\ncontent-length: 2\r\n\r\n{{}}"
    with dialled(served, head.encode()) as line:
        return heard(line)


# --- paths ------------------------------------------------------------------------------------------------------------


def test_with_several_clients_whoever_talks_to_a_model_is_passed_on_with_the_operators_key() -> None:
    with rude(says(whole({})), CLIENTS) as (served, upstream):
        for method, path in TALK:
            before = len(upstream.heard)
            got = told(served, method, path)
            assert got.startswith(b"HTTP/1.1 200"), (method, path, got)
            if path != "/v1/responses/compact":  # answered from the log
                assert len(upstream.heard) == before + 1, (method, path)
        assert went(upstream, b": Bearer key") + went(upstream, b"-key: key") == len(upstream.heard)
        assert not went(upstream, b"key-of-bob")


def test_with_several_clients_nothing_else_is_passed_on_with_it() -> None:
    with rude(says(whole({})), CLIENTS) as (served, upstream):
        for method, path in KEPT:
            got = served.ask(path, {}, BOB, method)
            assert got.status == 403, (method, path, got.raw)
            assert "x-clew-key" in got.json()["error"]["message"], "the remedy"
        assert upstream.heard == []


@pytest.mark.parametrize(
    "given",
    [
        {"x-clew-key": "key-of-bob", "authorization": "Bearer sk-bobs-own"},
        {"authorization": "Bearer key-of-bob", "x-api-key": "sk-bobs-own"},
        {"x-clew-key": "key-of-bob", "authorization": "bearer key-of-bob", "x-api-key": "sk-bobs-own"},
        {"x-clew-key": "key-of-bob", "x-goog-api-key": "sk-bobs-own"},
    ],
)
def test_the_rest_is_passed_on_with_the_clients_own_key_and_no_other(given: dict[str, str]) -> None:
    with rude(says(whole({"data": []})), CLIENTS) as (served, upstream):
        assert served.ask("/v1/files?limit=2", None, given, "GET").json() == {"data": []}
        [raw] = upstream.heard
        assert raw.startswith(b"GET /v1/files?limit=2 ")
        assert raw.count(b"sk-bobs-own") == 1
        assert b"key-of-bob" not in raw
        assert b": Bearer key\r" not in raw
        assert b"-key: key\r" not in raw


def test_a_clients_own_key_may_stand_in_the_query() -> None:
    with rude(says(whole({})), CLIENTS) as (served, upstream):
        assert served.ask("/v1beta/files?key=own&pageSize=2", None, BOB, "GET").status == 200
        assert upstream.heard[0].startswith(b"GET /v1beta/files?key=own&pageSize=2 ")
        assert b"x-goog-api-key" not in upstream.heard[0]
        for query in ("key=key-of-bob", "key=own&key=key-of-bob", "%6bey=key-of-bob", "key="):
            assert served.ask(f"/v1beta/files?{query}", None, BOB, "GET").status == 403, query
        assert len(upstream.heard) == 1
        talk = "/v1beta/models?pageSize=2&%6Bey=key-of-bob"
        assert served.ask(talk, None, {}, "GET").status == 200
        assert upstream.heard[1].startswith(b"GET /v1beta/models?pageSize=2 ")


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer  ", "Bearer key-of-ana", "key-of-bob", "BEARER\tkey-of-bob"])
def test_what_is_no_key_of_the_clients_own_does_not_pass_for_one(given: str) -> None:
    with rude(says(whole({})), CLIENTS) as (served, upstream):
        assert served.ask("/v1/files", None, {**BOB, "authorization": given}, "GET").status == 403
        assert upstream.heard == []


def test_an_upstream_that_asks_for_no_key_is_only_talked_to() -> None:
    with rude(says(whole({})), CLIENTS) as (served, upstream):
        for known in served.gateway.upstreams.known:
            object.__setattr__(known, "key", "")
        got = served.ask("/api/delete", {}, {**BOB, "authorization": "Bearer anything"}, "DELETE")
        assert got.status == 403
        assert "ask whoever runs the gateway" in got.json()["error"]["message"]
        assert upstream.heard == []
        assert served.ask("/v1/models", None, BOB, "GET").status == 200


def test_no_header_makes_another_request_of_it() -> None:
    turns = {
        "x-http-method-override": "DELETE",
        "x_http_method_override": "PUT",
        "x-original-url": "/v1/files",
        "x-rewrite-url": "/v1/files",
    }
    for settings, dropped in ((CLIENTS, True), (GatewaySettings(), False)):
        with rude(says(whole({})), settings) as (served, upstream):
            assert served.ask("/v1/models/gpt-5", None, {**BOB, **turns}, "GET").status == 200
            assert served.ask(CHAT, {"model": "gpt-5", "messages": []}, {**BOB, **turns}).status == 200
            for raw in upstream.heard:
                assert (b"/v1/files" not in raw) is dropped
                assert (b"override" not in raw) is dropped


@pytest.mark.parametrize("settings", [CLIENTS, GatewaySettings()], ids=["clients", "one user"])
def test_no_path_leads_elsewhere_than_it_says(settings: GatewaySettings) -> None:
    with rude(says(whole({})), settings) as (served, upstream):
        for path in BENT:
            got = told(served, "GET", path)
            assert got.startswith(b"HTTP/1.1 400"), (path, got)
        assert upstream.heard == []


def test_one_users_gateway_passes_all_else_on_as_before() -> None:
    with rude(says(whole({}))) as (served, upstream):
        for method, path in KEPT:
            assert served.ask(path, {}, {}, method).status == 200, (method, path)
        assert len(upstream.heard) == len(KEPT)
        assert went(upstream, b": Bearer key") + went(upstream, b"-key: key") == len(KEPT)


def test_dots_in_names_are_no_way_out() -> None:
    with serving() as served:
        assert served.ask("/v1/models/gpt-5.5", method="GET").status in (200, 404)
        assert served.ask("/v1/.well-known/x", method="GET").status == 404, "the provider's word"
    assert only_talks("GET", "/v1/models/gpt-5.5")
    assert only_talks("HEAD", "/v1/models")
    assert not only_talks("HEAD", CHAT)


# --- names and pages --------------------------------------------------------------------------------------------------

ODD_HOSTS = [
    "evil@127.0.0.1",
    "evil.example@localhost:8377",
    "evil.example\\@127.0.0.1",
    "127.0.0.1#evil.example",
    "127.0.0.1/evil.example",
    "127.0.0.1:80:x",
    "127.0.0.1:",
    "localhost.",
    "127.1",
    "[::1",
    "",
]


@pytest.mark.parametrize("settings", [CLIENTS, GatewaySettings()], ids=["clients", "one user"])
def test_a_host_that_is_none_is_refused(settings: GatewaySettings) -> None:
    with rude(says(whole({})), settings) as (served, upstream):
        key = "x-clew-key: key-of-bob"
        for host in ODD_HOSTS:
            if host in ("localhost.", "127.1") and settings.keys:
                continue  # with keys, any name will do
            got = told(served, "GET", "/v1/models", f"host: {host}", key)
            assert got.startswith(b"HTTP/1.1 403"), (host, got)
        for first, second in (("localhost", "evil.example"), ("evil.example", "localhost"), ("localhost", "localhost")):
            for path in ("/v1/models", "/metrics", "/livez"):
                got = told(served, "GET", path, f"host: {first}", f"host: {second}", key)
                assert got.startswith(b"HTTP/1.1 400"), (first, second, got)
        assert upstream.heard == []


def test_the_page_refuses_the_same(tmp_path: Any) -> None:
    with looking(tmp_path) as page:
        for host in ODD_HOSTS:
            assert told(page, "GET", "/clew/list", f"host: {host}").startswith(b"HTTP/1.1 403"), host
        twice = told(page, "GET", "/clew/list", "host: localhost", "host: localhost")
        assert twice.startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "lines",
    [
        ["origin: http://localhost:3000"],
        ["origin: http://localhost"],
        ["origin: http://127.0.0.1:8377"],
        ["origin: https://evil.example"],
        ["origin: http://localhost:8377.evil.example"],
        ["origin: http://evil@localhost:8377"],
        ["origin: http://localhost:8377", "origin: http://evil.example"],
        ["origin: null"],
        ["origin: localhost:8377"],
        ["origin: http://["],
        ["origin:"],
        ["sec-fetch-site: cross-site"],
        ["sec-fetch-site: same-site"],
    ],
)
@pytest.mark.parametrize("settings", [CLIENTS, GatewaySettings()], ids=["clients", "one user"])
def test_no_web_page_of_another_origin_has_a_browser_ask(settings: GatewaySettings, lines: list[str]) -> None:
    with rude(says(whole({})), settings) as (served, upstream):
        own = ["host: localhost:8377", "x-clew-key: key-of-bob"]
        for method, path in (("GET", "/v1/files"), ("GET", "/v1/models"), ("POST", CHAT), ("GET", "/metrics")):
            assert told(served, method, path, *own, *lines).startswith(b"HTTP/1.1 403"), path
        assert upstream.heard == []
        for fine in (["origin: http://localhost:8377", "sec-fetch-site: same-origin"], ["sec-fetch-site: none"], []):
            assert told(served, "GET", "/v1/models", *own, *fine).startswith(b"HTTP/1.1 200")


def test_with_keys_any_name_will_do_for_programs_and_none_but_its_own_for_browsers() -> None:
    with rude(says(whole({})), CLIENTS) as (served, upstream):
        own = ["host: gate.example:8377", "x-clew-key: key-of-bob"]
        assert told(served, "GET", "/v1/models", *own).startswith(b"HTTP/1.1 200")
        bent = told(served, "GET", "/v1/models", *own, "origin: http://gate.example:8377")
        assert bent.startswith(b"HTTP/1.1 403")
        assert len(upstream.heard) == 1


def test_a_page_may_be_named_with_its_port() -> None:
    with rude(says(whole({})), GatewaySettings(hosts=("gate.example", "localhost:3000"))) as (served, upstream):
        for line in ("origin: http://localhost:3000", "origin: https://gate.example"):
            got = told(served, "GET", "/v1/models", "host: localhost", line, "sec-fetch-site: same-site")
            assert got.startswith(b"HTTP/1.1 200"), line
        refused = told(served, "GET", "/v1/models", "host: localhost", "origin: http://localhost:3001")
        assert b"gateway.hosts" in refused
        assert b"localhost:3001" in refused
        both = ("origin: http://localhost:3000", "origin: http://localhost:3001")
        assert told(served, "GET", "/v1/models", "host: localhost", *both).startswith(b"HTTP/1.1 403")
        assert len(upstream.heard) == 2


def test_a_client_of_the_strict_provider_is_passed_on_whole() -> None:
    with serving(provider=StrictProvider(), settings=CLIENTS) as served:
        body = {"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}]}
        assert served.ask(CHAT, body, BOB).status == 200
        assert served.ask("/v1/models", None, BOB, "GET").json()["object"] == "list"
