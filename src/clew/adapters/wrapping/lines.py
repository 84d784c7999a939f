"""Between an SDK's client and its HTTP client, blocking or not: one way to write what happens there, for both.

What happens is written with `await`. A blocking client waits inside of what is awaited, so such a coroutine is run to
its end in one go.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from importlib import import_module
from typing import Any, TypeVar

from clew.core.bridge import cross, on_loop, run
from clew.core.threads import in_thread_of_its_own
from clew.errors import BadRequest
from clew.exchange.transport import ENCODED, Chunks, Transport
from clew.wire.requests import without_model

T = TypeVar("T")

_LIBRARIES = ("httpx", "httpx2")  # which is which differs with the SDK's release; they are used alike


RequestHandler = Callable[[Transport, Any], Coroutine[Any, Any, Any]]  # what becomes of a request: a response


class _Library:
    """What both transports have from their HTTP library."""

    def __init__(self, http: Any, ask: RequestHandler) -> None:
        self.library = library_of(http)
        self._http = http
        self._ask = ask

    def with_body(self, request: Any, content: bytes) -> Any:
        headers = [(name, value) for name, value in request.headers.multi_items() if name.lower() not in ENCODED]
        told = {"headers": headers, "content": content, "extensions": request.extensions}
        return self.library.Request(request.method, request.url, **told)

    def answered(self, response: Any, said: bytes | Chunks) -> Any:
        headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in ENCODED]
        # Bytes, too, are still to be read: until then no client says how long it took.
        stream = self.library.ByteStream(said) if isinstance(said, bytes) else self._streaming(said, response)
        told = {"headers": headers, "extensions": response.extensions, "stream": stream}
        return self.library.Response(response.status_code, **told)

    def seconds(self, request: Any) -> float | None:
        return (request.extensions.get("timeout") or {}).get("read")

    def _streaming(self, chunks: Chunks, response: Any) -> Any:
        raise NotImplementedError


class Blocking(_Library):
    """The transport of a client that blocks: all goes out through the HTTP client it had."""

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

    def beside(self) -> Callable[[Coroutine[Any, Any, T]], Coroutine[Any, Any, T]]:
        return lambda work: in_thread_of_its_own(lambda: finish(work))

    def _streaming(self, chunks: Chunks, response: Any) -> Any:
        return type("Stream", (_Pulled, self.library.SyncByteStream), {})(chunks, response)


class Waiting(_Library):
    """The transport of a client that awaits: all goes out through the HTTP client it had."""

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

    def beside(self) -> Callable[[Coroutine[Any, Any, T]], Coroutine[Any, Any, T]]:
        home = asyncio.get_running_loop()  # its connections belong to it
        return lambda work: on_loop(home, work)

    def _streaming(self, chunks: Chunks, response: Any) -> Any:
        return type("Stream", (_Awaited, self.library.AsyncByteStream), {})(chunks, response)


class WrappedPathLine:
    """A line for requests whose model is in their path: the body that goes out does not name it."""

    def __init__(self, line: Any, model: str) -> None:
        self._line = line
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._line, name)

    def with_body(self, request: Any, content: bytes) -> Any:
        return self._line.with_body(request, without_model(content, self._model))


class _Pulled:
    def __init__(self, chunks: Chunks, response: Any) -> None:
        self._chunks = chunks
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        # As `finish` does; there is a chunk for each token.
        while True:
            try:
                self._chunks.__anext__().send(None)
            except StopIteration as got:
                yield got.value
            except StopAsyncIteration:
                return

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
