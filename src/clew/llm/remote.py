"""What the models behind official SDKs share: the SDKs have one maker, so their clients and errors are alike."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from functools import cache
from importlib import import_module
from typing import Any

from clew import catalog
from clew.core import rawjson
from clew.core.unpacking import Unpacker
from clew.errors import BadRequest, ModelError, TooLarge
from clew.wire.streams.faults import fault_of

_LIBRARIES = ("httpx", "httpx2")  # which is which differs with the SDK's release; they are used alike
_PLAIN = ("", "identity")
_PACKED = ("gzip", "x-gzip")


NO_KEY = "none"  # for a server of one's own: a key in the environment is for the provider, and goes nowhere else
_RETRIES = 1
_LONG = 300  # characters of what a provider says in an error
_WHOLE = 2_000  # of one about the length of a request: its numbers are wanted, and may stand at the end


class Remote:
    """A model behind an SDK's client, which is made when first used."""

    sdk: Any  # the module
    patience = 60.0  # seconds, where no time-out is given
    largest = 16_000_000  # bytes of an answer, unpacked; a client that was given has its own limits

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        window: int | None = None,
        timeout: float | None = None,
        client: Any = None,
    ) -> None:
        self.name = name
        self._base_url = base_url
        self._api_key = api_key
        self._window = window
        self.timeout = self.patience if timeout is None else timeout
        self._client = client
        self._own = client is None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    async def close(self) -> None:
        """Close the connections; a client that was given stays open."""
        if self._own and self._client is not None:
            client, self._client = self._client, None
            await client.close()

    def _connect(self) -> Any:
        raise NotImplementedError

    def _http(self) -> Any:
        """The HTTP client for an SDK's."""
        return client(self.sdk, self.name, self.largest)

    def _ready(self) -> Any:
        """The client; without a key there is none."""
        if self._client is not None:
            return self._client
        try:
            self._client = self._connect()
        except self._root_error as error:
            raise ModelError(f"{self.name}: {self._error_text(error)}", "auth") from None
        return self._client

    async def _post(self, path: str, body: Mapping[str, Any], **headers: str) -> dict[str, Any]:
        """What the API answers to these very bytes; a `ModelError` carries neither key nor request."""
        options = {
            "headers": {"Content-Type": "application/json", **headers},
            "max_retries": _RETRIES,
            "timeout": self.timeout,
        }
        # Past the SDK's methods, which know the parameters of one provider and refuse those of its imitators.
        call = self._ready().post(path, content=rawjson.dumps(body), cast_to=str, options=options)
        try:
            async with asyncio.timeout(self.timeout):  # the SDK's own starts anew with every byte and every try
                return self._read(await call)
        except (TimeoutError, self._root_error) as error:
            failure = self._failure(error)
        raise failure  # out here, so that nothing hangs on it: the SDK's error holds the request with its key

    def _failure(self, error: Exception) -> ModelError:
        """What the SDK says went wrong, with neither key nor request."""
        if isinstance(error, TimeoutError | self.sdk.APITimeoutError):
            return ModelError(f"{self.name} did not answer within {self.timeout:g} seconds", "timeout")
        if isinstance(error.__cause__, ModelError):  # said while it was read
            return error.__cause__
        if isinstance(error, self.sdk.APIConnectionError):
            return ModelError(f"{self.name} cannot be reached: {self._error_text(error.__cause__ or error)}", "network")
        if not isinstance(error, self.sdk.APIStatusError):
            return ModelError(f"{self.name}: {self._error_text(error)}", "auth")
        fault = fault_of(error.status_code, error)
        said = self._error_text(error, _WHOLE if fault == "overflow" else _LONG)
        wait = seconds_to_wait(error.response.headers) if fault == "busy" else None
        return ModelError(f"{self.name} answered {error.status_code}: {said}", fault, retry_after=wait)

    @property
    def _root_error(self) -> type[Exception]:
        """All that is left: a client without a key, or one that cannot get its token."""
        error: type[Exception] = self.sdk.APIError.__base__
        return error

    def _read(self, text: str) -> dict[str, Any]:
        try:
            answer = rawjson.loads(text)
        except BadRequest:
            answer = None
        if not isinstance(answer, dict):
            raise ModelError(f"{self.name} did not answer in JSON; is the base URL right?", "refused")
        return answer

    def _error_text(self, error: BaseException, long: int = _LONG) -> str:
        """What an error says, in short and without the key that it may quote."""
        said = " ".join(str(error).split()) or type(error).__name__
        for key in filter(None, (getattr(self._client, name, None) for name in ("api_key", "auth_token"))):
            said = said.replace(str(key), "[key]")
        return said[:long]


class RemoteModel(Remote):
    """One that is asked for a text."""

    @property
    def window(self) -> int:
        """The tokens it can read: as somebody said, else as the catalog does."""
        return self._window or catalog.window(self.name)


def seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """The seconds to wait that a busy provider asks for: in thousandths, in seconds, or until a time of day."""
    thousandths, given = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        wait = float(thousandths) / 1_000 if thousandths else float(given or "")
    except ValueError:
        try:
            wait = parsedate_to_datetime(given or "").timestamp() - time.time()
        except ValueError:
            return None
    return max(wait, 0.0) if math.isfinite(wait) else None


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
