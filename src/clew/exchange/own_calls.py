"""What a model asks clew on the way to an answer."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace as with_
from itertools import accumulate
from typing import Any

from clew import wire
from clew.core.items import Frame, Item
from clew.errors import BadRequest
from clew.exchange.asides import AnswerAside, Asides, WovenHistory, leads, marks
from clew.exchange.thread import Thread, answered
from clew.llm.streaming import Spoken, ToolCall
from clew.recognition.agents import same_instructions
from clew.wire.formats import named
from clew.wire.formats.base import CallResult
from clew.wire.formats.tools import Outcome

FREE_CALL = "custom_tool_call"  # of Responses: a call with any text, whose result is of a type of its own
CANDIDATES = 4  # conversations that began alike, in which asides are looked for


class OwnCalls:
    """The calls of clew's tools in the answers to one request: done here, and told to the model alone."""

    def __init__(
        self,
        thread: Thread,
        asides: Asides | None,
        format: str,
        body: Mapping[str, Any] | bytes,
        work: Callable[[Coroutine[Any, Any, Outcome]], Awaitable[Outcome]],
    ) -> None:
        self._thread = thread
        self._asides = asides  # where tools of clew are offered
        self._format = format
        self._body = body
        self._work = work
        self._sent: tuple[Frame, WovenHistory] | None = None  # what the caller sent
        self._before: Sequence[Any] = ()  # messages before that which are known to have no asides
        self._aside: list[Item] = []  # and what he will not see

    async def full_body(self) -> Mapping[str, Any] | bytes:
        """The request with all that the caller does not know of."""
        if self._asides is None or isinstance(self._body, bytes):
            return self._body
        if self._sent is None:
            frame, messages = wire.named(self._format).split(self._body)
            woven = await self._woven(self._asides, frame, messages)
            self._asides.see(woven.chain)
            self._asides.last = self._asides.start(frame)
            self._sent = frame, woven
            self._aside = self._asides.begun(woven.chain)
        frame, woven = self._sent
        if not woven.changed and not self._aside:
            return self._body
        return wire.encode(frame, [*_flat(self._read(self._before)), *woven.items, *self._aside])

    async def _woven(self, asides: Asides, frame: Frame, messages: Sequence[Any]) -> WovenHistory:
        """The history with its asides; what is known to have none is not read again."""
        start = asides.start(frame)
        found = marks(start, messages)
        count, chain = asides.plain(found)
        read = self._read(messages[count:])
        woven = asides.woven(_flat(read), chain or start)
        if count and (woven.changed or not woven.known):
            count, read = 0, self._read(messages)
            woven = asides.woven(_flat(read), start)
        if not woven.known:
            await self._remember(asides, frame, _flat(read))
            woven = asides.woven(_flat(read), start)
        if not woven.changed:
            places = accumulate(map(len, read), initial=0)
            begun = [(n, woven.starts[place]) for n, place in enumerate(places) if place in woven.starts]
            if begun and (last := count + begun[-1][0]):
                asides.pass_over(found[last - 1], begun[-1][1])
        self._before = messages[:count]
        return woven

    def _read(self, messages: Sequence[Any]) -> list[list[Item]]:
        """The items of each message."""
        codec = wire.named(self._format)
        try:
            return [codec.read(message, f"{codec.LIST}[{i}]") for i, message in enumerate(messages)]
        except RecursionError:
            raise BadRequest("the body is nested too deeply to read") from None

    async def _remember(self, asides: Asides, frame: Frame, said: Sequence[Item]) -> None:
        """Look in the log for what was asked aside in another process, under the same system prompt."""
        thread, store = self._thread, self._thread.controller.engine.store
        if thread.session is None:
            found = [f.branch for f in await store.find(thread.scope, asides.chains(said))]
        else:
            found = [await store.session(thread.scope, thread.session) or ""]
        for branch in [*dict.fromkeys(filter(None, found))][:CANDIDATES]:
            if not await thread.controller.engine.lineage.may_look(thread.scope, branch, thread.origin):
                continue
            trace = await store.load(thread.scope, branch)
            if trace.format != self._format:
                continue
            if not same_instructions(await store.frame(thread.scope, trace.frame), frame):
                continue
            nodes = await store.nodes(thread.scope, [place.id for place in trace.said])
            items = [nodes[place.id].item for place in trace.said]
            asides.learn(items, thread.controller.is_ours, asides.start(frame))

    def is_ours(self, name: str) -> bool:
        """Whether a call is for clew, which was offered it."""
        return self._thread.last is not None and self._thread.controller.is_ours(name)

    def among(self, spoken: Spoken | None) -> Mapping[str, ToolCall]:
        """The calls of clew's tools in an answer, by their ids."""
        return {call.id: call for call in spoken.calls if self.is_ours(call.name)} if spoken else {}

    async def answer(self, spoken: Spoken | None, ours: Mapping[str, ToolCall]) -> None:
        """Do what an answer calls for: the model is to hear it next."""
        self._aside += [*self._items(spoken.messages if spoken else ()), *await self._results(spoken, ours.values())]

    async def keep(self, spoken: Spoken | None, ours: Mapping[str, ToolCall]) -> None:
        """Remember what the caller gets nothing of, for the model is to hear it again."""
        if self._asides is None or self._sent is None or spoken is None or not (ours or self._aside):
            return
        answer = self._items(spoken.messages)
        theirs = [item for item in answer if item.call_id not in ours]
        calls = [with_(item, opens=None) for item in answer if item.call_id in ours]
        results = await self._results(spoken, ours.values())
        form = named(self._format)
        if form.joins_results:
            results = [with_(result, opens=None) for result in results]
        first = form.signs_first_call and leads(answer, ours)
        aside = AnswerAside(tuple(self._aside), theirs, calls, results, first)
        self._asides.keep(self._sent[1].chain, aside)

    def rename(self, alias: tuple[str, str] | None) -> None:
        """Remember by which id a provider goes on from an answer that was told under another one."""
        if self._asides and alias:
            self._asides.rename(*alias)

    def begin(self) -> None:
        """Remember what was asked aside where no answer came of it."""
        if self._asides and self._sent and self._aside:
            self._asides.begin(self._sent[1].chain, self._aside)
            self._aside = []

    async def _results(self, spoken: Spoken | None, calls: Iterable[ToolCall]) -> list[Item]:
        free = {m.get("call_id") for m in spoken.messages if m.get("type") == FREE_CALL} if spoken else set()
        results = []
        for call in calls:
            came = await self._work(answered(self._thread, call.name, call.arguments or {}))
            results.append(CallResult(call.id, call.name, *came))
        told = named(self._format).results(results)
        return self._items([{**m, "type": f"{FREE_CALL}_output"} if m.get("call_id") in free else m for m in told])

    def _items(self, said: Sequence[Mapping[str, Any]]) -> list[Item]:
        return wire.decode({wire.named(self._format).LIST: list(said)}, self._format)[1]


def _flat(read: Sequence[Sequence[Item]]) -> list[Item]:
    return [item for items in read for item in items]
