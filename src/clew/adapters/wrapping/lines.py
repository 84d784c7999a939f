"""Between an SDK's client and its HTTP client, blocking or not: one way to write what happens there, for both.

What happens is written with `await`. A blocking client waits inside of what is awaited, so such a coroutine is run to
its end in one go.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from importlib import import_module
from typing import Any, Protocol, TypeVar

from clew.core.bridge import cross, run
from clew.errors import BadRequest

T = TypeVar("T")
Chunks = AsyncGenerator[bytes, None]

_LIBRARIES = ("httpx", "httpx2")  # which is which differs with the SDK's release; they are used alike
_ENCODED = frozenset({"content-encoding", "content-length"})  # headers of what is not sent on as it came


class Transport(Protocol):
    """How requests go out and answers come in."""

    library: Any  # httpx

    async def send(self, request: Any) -> Any:
        """The response to a request, of which nothing is read yet."""

    async def read(self, response: Any) -> bytes:
        """All that a response has to say."""

    def chunks(self, response: Any) -> Chunks:
        """The same as it comes."""

    async def drop(self, response: Any) -> None:
        """Read no more of it."""

    async def work(self, work: Coroutine[Any, Any, T]) -> T:
        """Have clew do something on its own loop."""

    def streaming(self, chunks: Chunks, response: Any) -> Any:
        """Chunks as the stream of a response of one's own; to close it closes the one behind it."""


RequestHandler = Callable[[Transport, Any], Coroutine[Any, Any, Any]]  # what becomes of a request: a response


class Blocking:
    """The transport of a client that blocks: all goes out through the HTTP client it had."""

    def __init__(self, http: Any, ask: RequestHandler) -> None:
        self.library = library_of(http)
        self._http = http
        self._ask = ask

    def handle_request(self, request: Any) -> Any:
        return finish(self._ask(self, request))

    def close(self) -> None:
        self._http.close()

    async def send(self, request: Any) -> Any:
        return self._http.send(request, stream=True)

    async def read(self, response: Any) -> bytes:
        return bytes(response.read())

    async def chunks(self, response: Any) -> Chunks:
        for chunk in response.iter_bytes():
            yield chunk

    async def drop(self, response: Any) -> None:
        response.close()

    async def work(self, work: Coroutine[Any, Any, T]) -> T:
        return run(work)

    def streaming(self, chunks: Chunks, response: Any) -> Any:
        return type("Stream", (_Pulled, self.library.SyncByteStream), {})(chunks, response)


class Waiting:
    """The transport of a client that awaits: all goes out through the HTTP client it had."""

    def __init__(self, http: Any, ask: RequestHandler) -> None:
        self.library = library_of(http)
        self._http = http
        self._ask = ask

    async def handle_async_request(self, request: Any) -> Any:
        return await self._ask(self, request)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def send(self, request: Any) -> Any:
        return await self._http.send(request, stream=True)

    async def read(self, response: Any) -> bytes:
        return bytes(await response.aread())

    async def chunks(self, response: Any) -> Chunks:
        async for chunk in response.aiter_bytes():
            yield chunk

    async def drop(self, response: Any) -> None:
        await response.aclose()

    async def work(self, work: Coroutine[Any, Any, T]) -> T:
        return await cross(work)

    def streaming(self, chunks: Chunks, response: Any) -> Any:
        return type("Stream", (_Awaited, self.library.AsyncByteStream), {})(chunks, response)


class _Pulled:
    def __init__(self, chunks: Chunks, response: Any) -> None:
        self._chunks = chunks
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        while chunk := finish(_awaited(anext(self._chunks, b""))):
            yield chunk

    def close(self) -> None:
        finish(_awaited(self._chunks.aclose()))
        self._response.close()


class _Awaited:
    def __init__(self, chunks: Chunks, response: Any) -> None:
        self._chunks = chunks
        self._response = response

    def __aiter__(self) -> Chunks:
        return self._chunks

    async def aclose(self) -> None:
        await self._chunks.aclose()
        await self._response.aclose()


def relayed(http: Any, ask: RequestHandler) -> Any:
    """An HTTP client like this one, whose requests are asked about before they go out through it."""
    library = library_of(http)
    blocks = isinstance(http, library.Client)
    kind, line = (library.Client, Blocking) if blocks else (library.AsyncClient, Waiting)
    told = {"headers": http.headers, "params": http.params, "cookies": http.cookies, "timeout": http.timeout}
    return kind(transport=line(http, ask), base_url=http.base_url, **told)


def library_of(http: Any) -> Any:
    """The HTTP library of a client."""
    for kind in type(http).__mro__:
        name = kind.__module__.partition(".")[0]
        if name in _LIBRARIES:
            return import_module(name)
    raise BadRequest(f"the client's HTTP client is {type(http).__name__}: expected an httpx client")


def with_body(library: Any, request: Any, content: bytes) -> Any:
    """The same request with other content."""
    headers = [(name, value) for name, value in request.headers.multi_items() if name.lower() not in _ENCODED]
    return library.Request(request.method, request.url, headers=headers, content=content, extensions=request.extensions)


def answered(library: Any, response: Any, said: Any) -> Any:
    """A response like this one that says these bytes, or this stream of them."""
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _ENCODED]
    # Bytes, too, are still to be read: until then no client says how long it took.
    stream = library.ByteStream(said) if isinstance(said, bytes) else said
    return library.Response(response.status_code, headers=headers, extensions=response.extensions, stream=stream)


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    work.close()
    raise AssertionError("it was to wait for nothing")


async def _awaited(work: Awaitable[T]) -> T:
    return await work
