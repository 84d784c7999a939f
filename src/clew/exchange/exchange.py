"""One request of a caller, and as many to the provider as it takes."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from clew.core import rawjson
from clew.core.view import View
from clew.errors import ClewError, OverBudget, SecretFound
from clew.exchange.answers import AnswerReader, without, without_offers
from clew.exchange.asides import Asides
from clew.exchange.own_calls import OwnCalls
from clew.exchange.thread import Thread, warn
from clew.exchange.transport import Chunks, Transport
from clew.llm.streaming import Spoken
from clew.store.waiting import patience
from clew.wire import named
from clew.wire.formats import openai_responses
from clew.wire.streams.joined import HeardEvent, JoinedStream

T = TypeVar("T")


class NotATurn(ClewError):
    """A request that is no turn of a conversation: whoever has it checked for that knows what to do with it."""


BUSY = (429, 503, 529)
MENDS = 3  # times that a request is made shorter because its provider refused it
TOOL_ROUNDS = 20  # calls of clew's own tools before an answer
OPENING_EVENTS, OPENING_BYTES = 8, 1 << 20  # of a stream, comments too, after which no refusal is waited for
RAISED = (OverBudget, SecretFound, NotATurn)  # to send it all the same would not do


def failed_open(error: Exception) -> None:
    """Say that a request goes out as it came."""
    warn("clew failed; the original request is sent unchanged", error)


@dataclass(frozen=True, slots=True)
class HeardResponse:
    """A response, as much of it as was read, and what was heard in that."""

    response: Any
    heard: AnswerReader
    read: bytes
    rest: Chunks | None = None  # what is still to come, where it is passed on as it comes
    events: Sequence[HeardEvent] = ()  # of what was read, where more is to come
    refusal: str = ""  # what was said instead of an answer


class Caller(NamedTuple):
    """Who is told what comes of it beside the response."""

    sent: Callable[[View], None]
    passable: Callable[[ClewError], ClewError]  # an error as one that an SDK lets pass
    failed: Callable[[Exception], None] = failed_open  # what kept clew from its part; to raise is to refuse the request
    refused: tuple[type[ClewError], ...] = RAISED  # for what a request is not sent


class Exchange:
    """One request of a caller, and as many to the provider as it takes."""

    def __init__(
        self,
        thread: Thread,
        asides: Asides | None,
        line: Transport,
        request: Any,
        format: str,
        body: Mapping[str, Any] | bytes,  # as a mapping, where tools are offered
        caller: Caller,
    ) -> None:
        self._thread = thread
        self._offers = asides is not None  # tools of clew's
        self._line = line
        self._request = request
        self._format = format
        self._body = body
        self._caller = caller
        self._streams = not isinstance(body, bytes) and body.get("stream")
        self._own = OwnCalls(thread, asides, format, body, self._work)
        self._refused: HeardResponse | None = None  # instead of an answer, after asides

    async def run(self) -> Any:
        """The response for the caller."""
        heard = False
        try:
            response = await self._run()
            heard = response.status_code < 400
            return response
        finally:
            if not heard:
                self._own.begin()

    async def _run(self) -> Any:
        for left in range(TOOL_ROUNDS, -1, -1):
            reply = await self._ask()
            if reply.rest is not None:
                return await (self._joined(reply) if self._offers else self._streamed(self._passed(reply), reply))
            spoken = reply.heard.spoken() if reply.response.status_code < 400 else None
            await self._observe(spoken)
            ours = self._own.among(spoken)
            if not ours or not left or (spoken and len(ours) < len(spoken.calls)):
                await self._own.keep(spoken, ours)
                told = (
                    without(reply.read, self._format, ours, len(ours) < len(spoken.calls))
                    if spoken and ours
                    else reply.read
                )
                if self._offers and self._format == openai_responses.NAME:
                    told = without_offers(told, self._own.is_ours)
                return self._line.answered(reply.response, told)
            await self._own.answer(spoken, ours)
        raise AssertionError("unreachable")

    # --- streams ------------------------------------------------------------------------------------------------------

    async def _streamed(self, chunks: Chunks, reply: HeardResponse) -> Any:
        return self._line.answered(reply.response, chunks)

    async def _passed(self, reply: HeardResponse) -> Chunks:
        """A stream as it comes, which is listened to."""
        try:
            if reply.read:
                yield reply.read
            async with aclosing(reply.rest or self._line.chunks(reply.response)) as chunks:
                async for chunk in chunks:
                    reply.heard.hear(chunk)
                    yield chunk
        finally:  # an SDK hangs up once it heard the last event
            if not sys.is_finalizing():  # else nobody is left to be told
                reply.heard.hear(b"")
                await self._observe(reply.heard.spoken())

    async def _joined(self, reply: HeardResponse) -> Any:
        """A stream with all answers in it, as soon as there is something to see."""
        told = self._after_first(self._parts(reply))
        await anext(told)
        if self._refused:
            await told.aclose()
            return self._line.answered(self._refused.response, self._refused.read)
        return await self._streamed(told, reply)

    async def _after_first(self, parts: Chunks) -> Chunks:
        """Nothing once there is something to tell, and then all of it: an SDK may also hang up without reading any."""
        async with aclosing(parts):
            first = await anext(parts, b"")
            yield b""
            if first:
                yield first
            try:
                async for part in parts:
                    yield part
                return
            except RAISED as error:
                failure = self._caller.passable(error)
            raise failure

    async def _parts(self, reply: HeardResponse) -> Chunks:
        """What the caller gets of each answer, as it comes."""
        joined = named(self._format).joined(self._own.is_ours)
        whole = False
        try:
            for left in range(TOOL_ROUNDS, -1, -1):
                async with aclosing(self._answer_parts(reply, joined)) as parts:
                    async for part in parts:
                        yield part
                spoken = reply.heard.spoken()
                ours = self._own.among(spoken)
                if not ours or not left or (spoken and len(ours) < len(spoken.calls)):
                    # Kept before it is told: whoever heard the end may ask at once.
                    await self._own.keep(spoken, ours)
                    whole = spoken is not None
                    end = joined.end(muted=spoken is not None and 0 < len(ours) == len(spoken.calls))
                    self._own.rename(joined.alias)
                    if end:
                        yield end
                    return
                await self._own.answer(spoken, ours)
                if rest := joined.again():
                    yield rest
                reply = await self._ask()
                if reply.rest is None:
                    if joined.shown:
                        yield joined.failed(reply.read, reply.response.status_code)
                    else:
                        self._refused = reply
                    return
        finally:
            if not whole:
                self._own.begin()

    async def _answer_parts(self, reply: HeardResponse, joined: JoinedStream) -> Chunks:
        """What of one answer can be told before its end."""
        try:
            async with aclosing(reply.rest or self._line.chunks(reply.response)) as chunks:
                if part := joined.add(reply.events):
                    yield part
                async for chunk in chunks:
                    if part := joined.add(reply.heard.add(chunk)):
                        yield part
            if part := joined.add(reply.heard.add(b"")):
                yield part
        except Exception:
            if not joined.over:  # a connection that fails after the last word does no harm
                raise
        finally:
            await self._line.drop(reply.response)
            if not sys.is_finalizing():
                await self._observe(reply.heard.spoken())

    async def _work(self, work: Coroutine[Any, Any, T]) -> T:
        """Have clew do something; a store that is locked may take half of the request's own time-out."""
        allowed = self._line.seconds(self._request)
        with patience(allowed / 2) if allowed else nullcontext():
            return await self._line.work(work)

    # --- asking the provider ------------------------------------------------------------------------------------------

    async def _ask(self) -> HeardResponse:
        """What the provider says; where it was too much for it, to less."""
        for left in range(MENDS, -1, -1):
            request = await self._fitted()
            try:
                reply = await self._hear(await self._line.send(request))
            except (Exception, asyncio.CancelledError):  # nobody is there, or nobody waits any more
                await self._unanswered()
                raise
            if not reply.refusal and reply.response.status_code < 400:
                return reply
            if reply.response.status_code in BUSY:
                self._thread.busy()
            mended = reply.refusal and left and await self._mended(reply.refusal)
            await self._unanswered()
            if not mended:
                return reply
            await self._line.drop(reply.response)
        raise AssertionError("unreachable")

    async def _fitted(self) -> Any:
        """The request to send; the caller's own where nothing is to be changed, or clew fails."""
        try:
            body = await self._work(self._own.full_body()) if self._offers else self._body
            sent = await self._work(self._thread.fit(body, self._format))
        except self._caller.refused:
            raise
        except Exception as error:
            self._thread.last = None
            self._caller.failed(error)
            return self._request
        self._caller.sent(sent.view)
        if sent.is_unchanged and body is self._body:
            return self._request
        written = sent.body
        if sent.is_same_in_meaning and not isinstance(
            body, bytes
        ):  # tools alone were added: its messages stay to the letter
            codec = named(self._format)
            said = body[codec.LIST]
            if codec.added_tools(body):  # which stand before it
                said = [*written[codec.LIST][:1], *said[1:]]
            written = {**written, codec.LIST: said}
        return self._line.with_body(self._request, rawjson.dumps(written))

    async def _hear(self, response: Any) -> HeardResponse:
        heard = AnswerReader(self._format, only_usage=not self._offers)
        if response.status_code >= 400:
            content = await self._line.read(response)
            return HeardResponse(response, heard, content, refusal=content.decode("utf-8", "replace"))
        kind = response.headers.get("content-type", "")
        if "event-stream" not in kind and ("json" in kind or not self._streams):
            content = await self._line.read(response)
            heard.add(content)
            heard.add(b"")
            return HeardResponse(response, heard, content, refusal=heard.refusal)
        chunks, read = self._line.chunks(response), list[bytes]()
        events: list[HeardEvent] = []
        size = ends = 0
        # A refusal may stand in the stream: until something is said, nothing is passed on.
        while not heard.begun and ends < OPENING_EVENTS and size < OPENING_BYTES:
            if not (chunk := await anext(chunks, b"")):
                break
            events += heard.add(chunk)
            read.append(chunk)
            size += len(chunk)
            ends += chunk.count(b"\n\n")
        heard.begun = True
        return HeardResponse(response, heard, b"".join(read), chunks, events, heard.refusal)

    async def _mended(self, refusal: str) -> bool:
        try:
            return await self._work(self._thread.refused(refusal))
        except Exception as error:
            warn("clew could not shorten a refused request", error)
            return False

    async def _unanswered(self) -> None:
        try:
            await self._work(self._thread.unanswered())
        except Exception as error:
            warn("clew could not record that there was no answer", error)

    async def _observe(self, spoken: Spoken | None) -> None:
        try:
            await self._work(self._thread.heard(spoken.usage if spoken else None))
        except Exception as error:
            warn("clew could not record the reported usage", error)
