"""The gateway's own way to a provider: aiohttp, which takes a tenth of the CPU that other clients do."""

from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import aiohttp
from yarl import URL

from clew.core import rawjson
from clew.exchange.transport import ENCODED, Chunks
from clew.gateway.http import HOP_HEADERS, GatewayReply
from clew.gateway.upstreams import Upstream

T = TypeVar("T")

CONNECTING = 30.0  # seconds
SILENCE = 900.0  # seconds that an upstream may say nothing: models think long


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request to an upstream."""

    upstream: Upstream
    method: str
    target: str  # path and query
    headers: list[tuple[str, str]]
    content: bytes


@dataclass(frozen=True, slots=True)
class UpstreamAnswer:
    """What an upstream answers, of which nothing may be read yet."""

    status_code: int
    headers: Any
    response: aiohttp.ClientResponse


def client() -> aiohttp.ClientSession:
    """A client for all upstreams, whose connections are kept; it belongs to the loop that runs now."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECTING, sock_read=SILENCE),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=True,
        skip_auto_headers=("User-Agent", "Accept", "Content-Type"),
        read_bufsize=1 << 18,
    )


class UpstreamLine:
    """A `Transport` for one request of a client."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def send(self, request: Outgoing) -> UpstreamAnswer:
        url = URL(request.upstream.url + request.target, encoded=True)
        response = await self._http.request(
            request.method, url, headers=request.headers, data=request.content or None, allow_redirects=False
        )
        return UpstreamAnswer(response.status, response.headers, response)

    async def read(self, response: UpstreamAnswer) -> bytes:
        try:
            return await response.response.read()
        finally:
            response.response.release()

    async def chunks(self, response: UpstreamAnswer) -> Chunks:
        try:
            async for chunk in response.response.content.iter_any():
                yield chunk
        finally:  # what is half read cannot be used for another request
            response.response.close()

    async def drop(self, response: UpstreamAnswer) -> None:
        response.response.close()

    async def work(self, work: Coroutine[Any, Any, T]) -> T:
        return await work

    def with_body(self, request: Outgoing, content: bytes) -> Outgoing:
        return replace(request, content=content)

    def answered(self, response: UpstreamAnswer, said: bytes | Chunks) -> GatewayReply:
        return GatewayReply(response.status_code, passed(response.headers), said)

    def seconds(self, request: Outgoing) -> float | None:
        return None


def passed(headers: Any) -> list[tuple[str, str]]:
    """An upstream's headers as a client gets them."""
    kept = ((name.lower(), value) for name, value in headers.items())
    return [(name, value) for name, value in kept if name not in HOP_HEADERS and name not in ENCODED]


class GeminiUpstreamLine(UpstreamLine):
    """A line for requests whose model is in their path: the body that goes out does not name it."""

    def __init__(self, http: aiohttp.ClientSession, model: str) -> None:
        super().__init__(http)
        self._named = _naming(model)

    def with_body(self, request: Outgoing, content: bytes) -> Outgoing:
        return super().with_body(request, b"{" + content.removeprefix(self._named))


def _naming(model: str) -> bytes:
    return b'{"model":' + rawjson.dumps(model) + b","


def with_model(raw: bytes, model: str) -> bytes:
    """A body that names its model, as clew reads it."""
    opened = raw.lstrip()
    return _naming(model) + opened[1:] if model and opened[:1] == b"{" else raw
