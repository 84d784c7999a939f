"""How requests go out and answers come in, whichever library does it."""

from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Chunks = AsyncGenerator[bytes, None]

ENCODED = frozenset({"content-encoding", "content-length"})  # headers of what is not sent on as it came


class Transport(Protocol):
    """How requests go out and answers come in; a request and a response are what its library has for them."""

    async def send(self, request: Any) -> Any:
        """The response to a request, of which nothing is read yet: with `status_code` and `headers`."""

    async def read(self, response: Any) -> bytes:
        """All that a response has to say."""

    def chunks(self, response: Any) -> Chunks:
        """The same as it comes."""

    async def drop(self, response: Any) -> None:
        """Read no more of it."""

    async def work(self, work: Coroutine[Any, Any, T]) -> T:
        """Have clew do something on its own loop."""

    def with_body(self, request: Any, content: bytes) -> Any:
        """The same request with other content."""

    def answered(self, response: Any, said: bytes | Chunks) -> Any:
        """A response like this one that says these bytes, or these as they come; to close it closes the one behind."""

    def beside(self) -> Callable[[Coroutine[Any, Any, T]], Coroutine[Any, Any, T]]:
        """What has something sent on this line later on, whichever loop asks for it then."""

    def seconds(self, request: Any) -> float | None:
        """How long whoever made the request waits for an answer, if he says so."""
