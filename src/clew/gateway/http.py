"""What comes in over HTTP, and what goes out: as little of it as a gateway needs, on ASGI."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote_plus

from clew.core.memory import give_back
from clew.core.threads import LARGE, in_thread_if
from clew.core.unpacking import Packing, Unpacker
from clew.errors import BadRequest, ClewError, TooLarge
from clew.exchange.transport import Chunks

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# Headers that are about one connection, not about what is said over it.
HOP_HEADERS = frozenset(
    "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding "
    "upgrade host content-length expect".split()
)


HUGE = 4 << 20  # bytes of a body; work on it takes some twenty times as much
LET_GO = 1.0  # seconds after which nobody holds what was made of it
LEAST_BYTES = 1_000  # that come of a body in the time in which something must


class Refused(ClewError):
    """A request that gets no further, with the status that says why."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Gone(ClewError):
    """A client that hung up."""


@dataclass(slots=True)
class GatewayRequest:
    """A request, as it came; names of headers are in lower case."""

    method: str
    path: str
    query: str
    raw_headers: list[tuple[bytes, bytes]]
    receive: Receive
    most: int  # bytes of a body
    silence: float = 60.0  # seconds in which something must come
    pairs: list[tuple[str, str]] = field(init=False)  # headers as they came: some stand more than once
    headers: Mapping[str, str] = field(init=False)
    unpacker: Unpacker = field(init=False)  # of the body and of all that is packed in it, once it was read
    _body: bytes | None = None
    _listening: asyncio.Task[None] | None = None
    _waits: asyncio.Task[Any] | None = None  # who is to be told that the client is gone

    def __post_init__(self) -> None:
        self.pairs = [(name.decode("latin-1"), _text(value)) for name, value in self.raw_headers]
        self.headers = dict(self.pairs)

    def target(self, own_keys: bool) -> str:
        """Path and query as they go on; `own_keys`: one in the query is for the gateway."""
        query = self.query
        if own_keys and self.query_keys:
            query = "&".join(part for part in query.split("&") if unquote_plus(part.partition("=")[0]) != "key")
        return f"{self.path}?{query}" if query else self.path

    @property
    def waits_for_network(self) -> bool:
        """Whether its client alone would wait for a network that is lost: so does Codex; others ask anew."""
        return self.path == "/v1/responses" and self.headers.get("originator", "").startswith("codex")

    @property
    def query_keys(self) -> list[str]:
        """The keys that Google's clients may put there."""
        return parse_qs(self.query).get("key", []) if self.query else []

    async def body(self) -> bytes:
        """What it says, no longer compressed. Raises `Refused` where that is too much, or cannot be read."""
        if self._body is None:
            sent = await self._read()
            self.unpacker = Unpacker(self.most, f"the body, of {len(sent):,} bytes,", "no request may have more")
            coding = self.headers.get("content-encoding", "").strip().lower()
            if coding in ("", "identity"):
                self.unpacker.take(len(sent))
                self._body = sent
            else:
                self._body = await in_thread_if(len(sent) > LARGE // 4, lambda: _decoded(sent, coding, self.unpacker))
        return self._body

    def change(self, body: bytes) -> None:
        """Let it say this from here on."""
        self._body = body

    async def _read(self) -> bytes:
        told = self.headers.get("content-length", "0")
        if told.isdigit() and int(told) > self.most:
            raise self._too_large()
        parts, size, seen, more = list[bytes](), 0, 0, True
        try:
            async with asyncio.timeout(self.silence) as limit:
                while more:
                    message = await self.receive()
                    if message["type"] == "http.disconnect":
                        raise Gone("the client hung up before it had said all")
                    part = message.get("body", b"")
                    size += len(part)
                    if size > self.most:
                        raise self._too_large()
                    parts.append(part)
                    more = message.get("more_body", False)
                    if size - seen >= LEAST_BYTES:
                        seen = size
                        limit.reschedule(asyncio.get_running_loop().time() + self.silence)
        except TimeoutError:
            told = f"less than {LEAST_BYTES:,} bytes of the body came in {self.silence:g} seconds"
            raise Refused(408, told, connection="close") from None
        return b"".join(parts) if len(parts) > 1 else parts[0]

    def _too_large(self) -> Refused:
        return Refused(413, f"the body is larger than {self.most:,} bytes; no request may have more")

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Wait for somebody else, once all was read, no longer than the client does. Raises `Gone`."""
        if self._listening is None:
            self._listening = asyncio.ensure_future(self._listen())
        elif self._listening.done():
            raise Gone("the client hung up")
        task = asyncio.current_task()
        assert task is not None, "within a task"
        before = task.cancelling()
        self._waits = task
        try:
            yield
        except asyncio.CancelledError:
            if self._listening.done() and task.uncancel() <= before:
                raise Gone("the client hung up") from None
            raise
        finally:
            self._waits = None

    async def _listen(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass
        if self._waits:
            self._waits.cancel()

    def close(self) -> None:
        """Listen no more, and keep nothing; the memory that a huge one took goes back once all have let go of it."""
        if self._listening:
            self._listening.cancel()
        if self._body is not None and len(self._body) >= HUGE:
            loop = asyncio.get_running_loop()
            loop.call_later(LET_GO, lambda: loop.run_in_executor(None, give_back))
        self._body = None


@dataclass(slots=True)
class GatewayReply:
    """What a client gets: bytes, or chunks as they come."""

    status_code: int
    headers: Iterable[tuple[str, str]]
    body: bytes | Chunks = b""

    async def send(self, send: Send, extra: Iterable[tuple[str, str]] = ()) -> None:
        """Say it over a connection; chunks are closed, however it ends."""
        head = [
            (name.encode("latin-1"), value.encode("utf-8", "surrogateescape"))
            for name, value in (*self.headers, *extra)
        ]
        if isinstance(self.body, bytes):
            head.append((b"content-length", str(len(self.body)).encode()))
            await send({"type": "http.response.start", "status": self.status_code, "headers": head})
            await send({"type": "http.response.body", "body": self.body})
            return
        async with aclosing(self.body) as chunks:
            await send({"type": "http.response.start", "status": self.status_code, "headers": head})
            async for chunk in chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def _text(value: bytes) -> str:
    """A header, as whoever wrote it meant it."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def json_reply(said: bytes, status: int = 200, **headers: str) -> GatewayReply:
    """A reply in JSON."""
    named = ((name.replace("_", "-"), value) for name, value in headers.items())
    return GatewayReply(status, [("content-type", "application/json"), *named], said)


async def just(*chunks: bytes) -> AsyncGenerator[bytes, None]:
    """Chunks that are all there."""
    for chunk in chunks:
        yield chunk


_CODINGS: Mapping[str, Packing] = {"gzip": "gzip", "x-gzip": "gzip", "deflate": "deflate", "zstd": "zstd", "br": "br"}


def _decoded(sent: bytes, coding: str, unpacker: Unpacker) -> bytes:
    """Bytes without a content coding; never more than there is room for, however small they came."""
    packing = _CODINGS.get(coding)
    if packing is None:
        raise Refused(415, f"content-encoding {coding} is not understood; use gzip, br, zstd or none")
    if packing == "deflate" and sent[:1] == b"\x78":  # as the standard has it; some leave head and sum out
        packing = "zlib"
    try:
        return unpacker.unpacked(sent, packing)
    except TooLarge:
        raise
    except BadRequest:
        raise Refused(400, f"the body cannot be read as {coding}, or has no end") from None
