"""One request of a caller, and as many to the provider as it takes."""

import sys
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass
from dataclasses import replace as with_
from typing import Any, TypeVar

from clew import wire
from clew.adapters.thread import Thread, warn
from clew.adapters.wrapping.answers import Hearing, Muted
from clew.adapters.wrapping.asides import AnswerAside, Asides
from clew.adapters.wrapping.lines import Chunks, Transport, answered, with_body
from clew.agent.results import CallResult, Outcome, messages
from clew.core import rawjson
from clew.core.items import Item
from clew.errors import OverBudget, SecretFound
from clew.llm.streaming import Spoken, ToolCall
from clew.store.waiting import patience

T = TypeVar("T")

MENDS = 3  # times that a request is made shorter because its provider refused it
TOOL_ROUNDS = 20  # calls of clew's own tools before an answer
CANDIDATES = 4  # conversations that began alike, in which asides are looked for
RAISED = (OverBudget, SecretFound)  # to send it all the same would not do


@dataclass(frozen=True, slots=True)
class HeardResponse:
    """A response, as much of it as was read, and what was heard in that."""

    response: Any
    heard: Hearing
    read: bytes
    rest: Chunks | None = None  # what is still to come, where it is passed on as it comes
    refusal: str = ""  # what was said instead of an answer


class Exchange:
    """One request of a caller, and as many to the provider as it takes."""

    def __init__(
        self, thread: Thread, asides: Asides | None, line: Transport, request: Any, format: str, body: Mapping[str, Any]
    ) -> None:
        self._thread = thread
        self._asides = asides  # where tools of clew are offered
        self._line = line
        self._request = request
        self._format = format
        self._body = body
        self._said: list[Item] = []  # what the caller sent
        self._aside: list[Item] = []  # and what he will not see

    async def run(self) -> Any:
        """The response for the caller."""
        heard = False
        try:
            response = await self._run()
            heard = response.status_code < 400
            return response
        finally:
            if self._asides and self._aside and not heard:
                self._asides.begin(self._said, self._aside)

    async def _run(self) -> Any:
        for left in range(TOOL_ROUNDS, -1, -1):
            reply = await self._ask()
            if reply.rest is not None:
                stream = self._line.streaming(self._passed(reply), reply.response)
                return answered(self._line.library, reply.response, stream)
            spoken = reply.heard.spoken() if reply.response.status_code < 400 else None
            await self._observe(spoken)
            calls = spoken.calls if spoken else []
            ours = [call for call in calls if self._thread.last and self._thread.controller.is_ours(call.name)]
            if not ours or not left or len(ours) < len(calls):
                content = await self._told(reply.read, spoken, ours)
                return answered(self._line.library, reply.response, content)
            self._aside += [*self._items(spoken.messages if spoken else ()), *await self._results(ours)]
        raise AssertionError("unreachable")

    async def _work(self, work: Coroutine[Any, Any, T]) -> T:
        """Have clew do something; a store that is locked may take half of the request's own time-out."""
        allowed = (self._request.extensions.get("timeout") or {}).get("read")
        with patience(allowed / 2) if allowed else nullcontext():
            return await self._line.work(work)

    # --- asking the provider ------------------------------------------------------------------------------------------

    async def _ask(self) -> HeardResponse:
        """What the provider says; where it was too much for it, to less."""
        for left in range(MENDS, -1, -1):
            reply = await self._hear(await self._line.send(await self._fitted()))
            if not reply.refusal or not left or not await self._mended(reply.refusal):
                return reply
            await self._line.drop(reply.response)
        raise AssertionError("unreachable")

    async def _fitted(self) -> Any:
        """The request to send; the caller's own where nothing is to be changed, or clew fails."""
        try:
            body = await self._work(self._whole(self._asides)) if self._asides else self._body
            sent = await self._work(self._thread.fit(body, self._format))
        except RAISED:
            raise
        except Exception as error:
            self._thread.last = None
            warn("clew failed; the original request is sent unchanged", error)
            return self._request
        if sent.body == self._body:
            return self._request
        return with_body(self._line.library, self._request, rawjson.dumps(sent.body))

    async def _hear(self, response: Any) -> HeardResponse:
        heard = Hearing(self._format)
        if response.status_code >= 400:
            content = await self._line.read(response)
            return HeardResponse(response, heard, content, refusal=content.decode("utf-8", "replace"))
        if self._asides or "event-stream" not in response.headers.get("content-type", ""):
            content = await self._line.read(response)
            heard.add(content)
            heard.add(b"")
            return HeardResponse(response, heard, content, refusal=heard.refusal)
        chunks, read = self._line.chunks(response), b""
        # A refusal may stand in the stream: until something is said, nothing is passed on.
        while not heard.begun and (chunk := await anext(chunks, b"")):
            heard.add(chunk)
            read += chunk
        return HeardResponse(response, heard, read, chunks, heard.refusal)

    async def _passed(self, reply: HeardResponse) -> Chunks:
        """A stream as it comes, which is listened to."""
        try:
            if reply.read:
                yield reply.read
            async with aclosing(reply.rest or self._line.chunks(reply.response)) as chunks:
                async for chunk in chunks:
                    reply.heard.add(chunk)
                    yield chunk
        finally:  # an SDK hangs up once it heard the last event
            if not sys.is_finalizing():  # else nobody is left to be told
                reply.heard.add(b"")
                await self._observe(reply.heard.spoken())

    async def _mended(self, refusal: str) -> bool:
        try:
            return await self._work(self._thread.refused(refusal))
        except Exception as error:
            warn("clew could not shorten a refused request", error)
            return False

    async def _observe(self, spoken: Spoken | None) -> None:
        try:
            await self._work(self._thread.heard(spoken.usage if spoken else None))
        except Exception as error:
            warn("clew could not record the reported usage", error)

    # --- what the model asks clew -------------------------------------------------------------------------------------

    async def _whole(self, asides: Asides) -> Mapping[str, Any]:
        """The request with all that the caller does not know of."""
        frame, self._said = wire.decode(self._body, self._format)
        self._aside = self._aside or asides.begun(self._said)
        if not asides.knows(self._said):
            await self._remember(asides)
        woven = [*asides.weave(self._said), *self._aside]
        return wire.encode(frame, woven) if len(woven) > len(self._said) else self._body

    async def _remember(self, asides: Asides) -> None:
        """Look in the log for what was asked aside in another process."""
        thread, store = self._thread, self._thread.controller.engine.store
        if thread.session is None:
            found = [f.branch for f in await store.find(thread.scope, asides.chains(self._said))]
        else:
            found = [await store.session(thread.scope, thread.session) or ""]
        for branch in [*dict.fromkeys(filter(None, found))][:CANDIDATES]:
            said = (await store.load(thread.scope, branch)).said
            nodes = await store.nodes(thread.scope, [place.id for place in said])
            asides.learn([nodes[place.id].item for place in said], thread.controller.is_ours)

    async def _told(self, content: bytes, spoken: Spoken | None, ours: Sequence[ToolCall]) -> bytes:
        """What the caller gets of an answer; the rest is remembered, for the model is to hear it again."""
        if self._asides is None or spoken is None or not (ours or self._aside):
            return content
        ids = {call.id for call in ours}
        answer = self._items(spoken.messages)
        theirs = [item for item in answer if item.call_id not in ids]
        calls = [with_(item, opens=None) for item in answer if item.call_id in ids]
        results = await self._results(ours)
        if self._format == "anthropic":  # one message has all results
            results = [with_(result, opens=None) for result in results]
        self._asides.keep(self._said, theirs, AnswerAside(tuple(self._aside), calls, results))
        return Muted(ids, len(ours) < len(spoken.calls)).written(content) if ours else content

    async def _results(self, calls: Sequence[ToolCall]) -> list[Item]:
        results = []
        for call in calls:
            try:
                came = await self._work(self._thread.answer(call.name, call.arguments or {}))
            except Exception as error:
                warn(f"clew could not answer a call of {call.name}", error)
                came = Outcome("Error: recall is unavailable right now; continue without it", failed=True)
            results.append(CallResult(call.id, call.name, *came))
        return self._items(messages(results, self._format))

    def _items(self, said: Sequence[Mapping[str, Any]]) -> list[Item]:
        return wire.decode({wire.named(self._format).LIST: list(said)}, self._format)[1]
