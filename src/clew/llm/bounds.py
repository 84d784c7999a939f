"""What a server may send: so much, packed in a way that can be unpacked bit by bit, and from where it was asked.

The SDKs follow a redirect anywhere, with the prompt, and read all that comes, an error's body too. Their HTTP client
lets one look at an answer before that.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

from clew.core.unpacking import Unpacker
from clew.errors import BadRequest, ModelError, TooLarge

_LIBRARIES = ("httpx", "httpx2")  # which is which differs with the SDK's release; they are used alike
_PLAIN = ("", "identity")
_PACKED = ("gzip", "x-gzip")


def client(sdk: Any, name: str, most: int) -> Any:
    """An HTTP client for an SDK: of an answer it reads so many bytes, unpacked, and it is sent to no other server."""

    async def look(response: Any) -> None:
        if response.has_redirect_location:
            _stay(response, name)
        response.stream = _stream(response, name, most)

    made = sdk.DefaultAsyncHttpxClient
    verify = _certificates(next(n for kind in made.__mro__ if (n := kind.__module__.partition(".")[0]) in _LIBRARIES))
    # Asked for gzip alone: others unpack as much at once as they like.
    return made(headers={"Accept-Encoding": "gzip"}, event_hooks={"response": [look]}, verify=verify)


@cache
def _certificates(library: str) -> Any:
    """Whom to believe, read once for all clients: each would take 30 ms to read it."""
    return import_module(library).create_ssl_context()


def _stay(response: Any, name: str) -> None:
    """Refuse a redirect to another server: the prompt was not meant for it."""
    asked = response.request.url
    where = asked.join(response.headers["location"])
    if (where.scheme, where.host, where.port) != (asked.scheme, asked.host, asked.port):
        origin = f"{where.scheme}://{where.netloc.rpartition(b'@')[2].decode(errors='replace')}"
        raise ModelError(
            f"{name} redirects from {asked.host} to {origin}, which is not followed: the prompt was not meant for it; "
            "if that is the right server, give its address as the base URL",
            "refused",
        )


def _stream(response: Any, name: str, most: int) -> Any:
    """The bytes of an answer, unpacked; more than may be is an error."""
    packing = response.headers.get("content-encoding", "").strip().lower()
    if packing not in (*_PLAIN, *_PACKED):
        raise ModelError(
            f"{name} answered with the content encoding {packing[:40]}, which was not requested", "refused"
        )
    if packing:
        del response.headers["content-encoding"]  # it is done here
    source, library = response.stream, import_module(type(response).__module__.partition(".")[0])

    class Bounded(library.AsyncByteStream):  # type: ignore[misc, name-defined] # which library, the SDK knows
        async def __aiter__(self) -> AsyncIterator[bytes]:
            pieces = _counted(name, most, packing in _PACKED)
            async for chunk in source:
                for piece in pieces(chunk):
                    yield piece

        async def aclose(self) -> None:
            await source.aclose()

    return Bounded()


def _counted(name: str, most: int, packed: bool) -> Callable[[bytes], Iterator[bytes]]:
    """What gives the pieces of a chunk, unpacked, while there are not too many bytes."""
    unpacker = Unpacker(most, f"an answer of {name}", "no answer is so long")
    unpack = unpacker.stream()

    def pieces(chunk: bytes) -> Iterator[bytes]:
        try:
            if packed:
                yield from unpack(chunk)
            else:
                unpacker.take(len(chunk))
                yield chunk
        except TooLarge:
            raise ModelError(f"{name} sent more than {most:,} bytes, the limit for an answer", "refused") from None
        except BadRequest as error:
            raise ModelError(f"{name} sent data that cannot be decompressed: {error}", "network") from None

    return pieces
