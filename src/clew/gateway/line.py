"""The gateway's own way to a provider: aiohttp, which takes a tenth of the CPU that other clients do."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, TypeVar

import aiohttp
from yarl import URL

from clew.exchange.transport import ENCODED, Chunks
from clew.gateway.degraded import WAITING
from clew.gateway.http import HOP_HEADERS, GatewayReply, GatewayRequest, Refused
from clew.gateway.upstreams import Upstream
from clew.wire.requests import without_model

T = TypeVar("T")

CONNECTING = 30.0  # seconds
HELD_BACK = 60.0  # seconds in which a request waits for the network, where its client alone would wait, too
PAUSES = (0.25, 5.0)  # seconds between two tries: the first, doubled each time, and the longest
# Seconds, and tries, after which a line is found dead over which nothing comes back: a network was left or lost.
LIVENESS = {"TCP_KEEPIDLE": 20, "TCP_KEEPALIVE": 20, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}
HEAD = 1 << 16  # bytes of a line of an answer's head
LARGE_CONTENT = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request to an upstream."""

    upstream: Upstream
    method: str
    target: str  # path and query
    headers: list[tuple[str, str]]
    content: bytes
    served: str = ""  # by whom, and as what, as far as it says


@dataclass(frozen=True, slots=True)
class UpstreamAnswer:
    """What an upstream answers, of which nothing may be read yet."""

    status_code: int
    headers: Any
    response: aiohttp.ClientResponse


def client(silence: float) -> aiohttp.ClientSession:
    """A client for all upstreams, whose connections are kept; it belongs to the loop that runs now."""
    kept = aiohttp.TraceConfig()
    kept.on_connection_reuseconn.append(_note_kept)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60, socket_factory=_watched),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECTING, sock_read=silence),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=True,
        skip_auto_headers=("User-Agent", "Accept", "Content-Type"),
        read_bufsize=1 << 18,
        max_line_size=HEAD,
        max_field_size=HEAD,
        trace_configs=[kept],
    )


def _watched(about: tuple[Any, ...]) -> socket.socket:
    """A socket that notices when nobody is there any more, however long a model may think."""
    made = socket.socket(*about[:3])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in LIVENESS.items():
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


async def _note_kept(http: aiohttp.ClientSession, about: Any, params: aiohttp.TraceConnectionReuseconnParams) -> None:
    about.trace_request_ctx.append(True)


class UpstreamLine:
    """A `Transport` for one request of a client; whoever waits here is told by `Gone` that the client hung up."""

    def __init__(self, http: aiohttp.ClientSession, asked: GatewayRequest) -> None:
        self._http = http
        self._asked = asked

    async def send(self, request: Outgoing) -> UpstreamAnswer:
        url = URL(request.upstream.url + request.target, encoded=True)
        with self._asked.waiting():
            kept = list[bool]()
            try:
                response = await self._reached(request, url, kept)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                if not kept:
                    raise
                # The upstream closed a connection that was kept while nobody used it: it has not heard this request.
                response = await self._reached(request, url, kept)
        if not 200 <= response.status < 600:  # none that a server may say here
            response.close()
            raise Refused(502, f"clew: the upstream answered with the status {response.status}")
        return UpstreamAnswer(response.status, response.headers, response)

    async def _reached(self, request: Outgoing, url: URL, kept: list[bool]) -> aiohttp.ClientResponse:
        """What is answered, once there is a network: nobody hears a request before, so it may be tried again."""
        now = asyncio.get_running_loop().time
        until, pause = now() + (HELD_BACK if self._asked.waits_for_network else 0), PAUSES[0]
        while True:
            try:
                return await self._request(request, url, kept)
            except aiohttp.ClientSSLError:  # there is somebody, and not the right one
                raise
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
                if now() + pause > until:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSES[1])

    async def _request(self, request: Outgoing, url: URL, kept: list[bool]) -> aiohttp.ClientResponse:
        content: bytes | BytesIO | None = request.content or None
        if len(request.content) > LARGE_CONTENT:  # so it goes piece by piece, and others have their turn
            content = BytesIO(request.content)
        asked, headers = self._http.request, request.headers
        return await asked(
            request.method, url, headers=headers, data=content, allow_redirects=False, trace_request_ctx=kept
        )

    def beside(self) -> Callable[[Coroutine[Any, Any, T]], Coroutine[Any, Any, T]]:
        return lambda work: work  # the engine lives on the same loop

    async def read(self, response: UpstreamAnswer) -> bytes:
        parts, size = list[bytes](), 0
        async with aclosing(self.chunks(response)) as chunks:
            async for chunk in chunks:
                size += len(chunk)
                if size > self._asked.most:
                    raise Refused(502, f"clew: the upstream's answer is larger than {self._asked.most:,} bytes")
                parts.append(chunk)
        return b"".join(parts)

    async def chunks(self, response: UpstreamAnswer) -> Chunks:
        content = response.response.content
        try:
            while True:
                with self._asked.waiting():
                    chunk = await content.readany()
                if not chunk:
                    return
                yield chunk
        finally:  # what is half read cannot be used for another request; what is read was released
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
        return 2 * WAITING  # of which half is for a store that somebody has locked


def passed(headers: Any) -> list[tuple[str, str]]:
    """An upstream's headers as a client gets them."""
    kept = ((name.lower(), value) for name, value in headers.items())
    return [(name, value) for name, value in kept if name not in HOP_HEADERS and name not in ENCODED]


class PathModelLine(UpstreamLine):
    """A line for requests whose model is in their path: the body that goes out does not name it."""

    def __init__(self, http: aiohttp.ClientSession, asked: GatewayRequest, model: str) -> None:
        super().__init__(http, asked)
        self._model = model

    def with_body(self, request: Outgoing, content: bytes) -> Outgoing:
        return super().with_body(request, without_model(content, self._model))
