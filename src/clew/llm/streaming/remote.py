"""Speakers behind official SDKs: very bytes go out, past the SDK's typed methods, and events come in."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, ClassVar

from clew.core import rawjson
from clew.errors import BadRequest, ModelError
from clew.llm.remote import Remote
from clew.wire.streams.building import MISSHAPEN, AnswerBuilder, with_answer
from clew.wire.streams.events import END, Events, read
from clew.wire.streams.pieces import Piece

_CONNECT = 15.0  # seconds until a connection stands
_LINGER = 0.1  # seconds that a connection may take to end after the answer did; else it is not used again


class RemoteSpeaker(Remote):
    """A model behind an SDK's client; the time-out is for silence, before an answer and within it."""

    format: ClassVar[str]
    path: ClassVar[str]
    answer: ClassVar[type[AnswerBuilder]]
    patience = 300.0
    largest = 128_000_000  # bytes of an answer: each token may come in an event of its own

    @property
    def window(self) -> int | None:
        """As somebody said: what a catalog says of a name is no knowledge of this very server."""
        return self._window

    @property
    def address(self) -> str | None:
        return self._base_url

    def speak(self, body: Mapping[str, Any]) -> AsyncGenerator[Piece, None]:
        """Send exactly this body, streamed; `Spoken` is the last piece, and closing early hangs up."""
        answer = self.answer()
        return with_answer(self.name, self._pieces(body, answer), answer)

    async def _open(self, body: Mapping[str, Any]) -> Any:
        """The answer to these very bytes, of which nothing is read yet."""
        call = self._ready().post(
            self.path,
            content=rawjson.dumps({**body, "stream": True}),
            cast_to=object,
            # Not tried again here: how long to wait is for the agent to decide, and to tell.
            options={
                "headers": {"Content-Type": "application/json"},
                "max_retries": 0,
                "timeout": self.sdk.Timeout(None, connect=_CONNECT),
            },
            stream=True,
            stream_cls=self.sdk.AsyncStream[object],
        )
        try:
            async with asyncio.timeout(self.timeout):
                return (await call).response
        except (TimeoutError, self._root_error) as error:
            failure = self._failure(error)
        raise failure  # out here, so that nothing hangs on it: the SDK's error holds the request with its key

    async def _pieces(self, body: Mapping[str, Any], answer: AnswerBuilder) -> AsyncGenerator[Piece, None]:
        response = await self._open(body)
        events = Events()
        try:
            async with aclosing(self._chunks(response, answer)) as chunks:
                async for chunk in chunks:
                    heard = events.add(chunk) if chunk else events.end()
                    if events.is_other:
                        told = f"{self.name} answered with neither events nor JSON; is the base URL right?"
                        raise ModelError(told, "refused")
                    for event in heard:
                        for piece in self._hear(event, answer):
                            yield piece
        finally:
            await response.aclose()

    async def _chunks(self, response: Any, answer: AnswerBuilder) -> AsyncGenerator[bytes, None]:
        """The bytes of an answer as they come, with an empty chunk after the last."""
        coming = response.aiter_bytes()
        while True:
            try:
                # Read to its end, a connection can be used for the next request.
                chunk = await self._next(coming, _LINGER if answer.over else self.timeout)
            except ModelError:
                if not answer.over:
                    raise
                return
            yield chunk
            if not chunk:
                return

    async def _next(self, coming: Any, seconds: float) -> bytes:
        """The bytes that come next, none after the last."""
        try:
            async with asyncio.timeout(seconds):
                return bytes(await anext(coming, b""))
        except TimeoutError:
            failure = ModelError(f"{self.name} fell silent for {seconds:g} seconds", "timeout")
        except ModelError as error:
            failure = error
        except Exception as error:  # of the SDK's own HTTP client, whichever that is
            failure = ModelError(f"{self.name} broke off: {self._error_text(error)}", "network")
        raise failure

    def _hear(self, event: bytes, answer: AnswerBuilder) -> Sequence[Piece]:
        try:
            said = read(event)
            if said is not END:
                return answer.add(said)
            answer.over = True
            return ()
        except ModelError as error:
            raise ModelError(f"{self.name}: {self._error_text(error, len(str(error)))}", error.fault) from None
        except BadRequest as error:
            raise ModelError(f"{self.name}: the connection was lost: {error}", "network") from None
        except MISSHAPEN as error:
            raise ModelError(f"{self.name} sent an unreadable answer: {type(error).__name__}", "refused") from None
