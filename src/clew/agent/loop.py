"""The loop: ask the model, run what it calls, and again, until it has nothing more to call."""

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Protocol
from uuid import uuid4

from clew.agent.events import AgentEvent, Answered, Compacted, Ran, Retrying, Running
from clew.agent.tools import Permissions, Toolbox
from clew.config.places import environment
from clew.control import ContextController, SentBody
from clew.core.items import Frame, Scope
from clew.core.view import View
from clew.engine.append import Addition
from clew.errors import ClewError, ModelError
from clew.llm.own import OwnModel
from clew.llm.requests import RequestBody
from clew.llm.streaming import Speaker, Spoken, Text, ToolCall
from clew.steps.chapters.allowance import Allowance, may_ask_own
from clew.steps.chapters.by_model import ByModel
from clew.store.records import Origin
from clew.wire.convert.extras import with_tools
from clew.wire.formats import named, openai_responses
from clew.wire.formats.base import CallResult
from clew.wire.formats.tools import ToolDeclaration

REASONS = re.compile(r"(?:^|/)(?:o\d|gpt-[5-9]|codex)")  # models that refuse nothing by being asked for their thoughts


STEPS = 200  # calls of the model for one word of the user
CALL_TRIES = 4  # of one call
ANSWER_TOKENS = 8_192  # tokens of an answer
CANCELLED = "Cancelled by the user before it was done."
AGAIN = ("busy", "network", "timeout")  # faults after which a call is made again


class Hook(Protocol):
    """Hears what an agent does, and may act on it."""

    async def __call__(self, agent: "Agent", event: AgentEvent, /) -> None: ...


class Agent:
    """A conversation with a model that may use tools. All of it is in the log as soon as it is said."""

    def __init__(
        self,
        speaker: Speaker,
        controller: ContextController,
        toolbox: Toolbox | None = None,
        *,
        system: str = "",
        session: str | None = None,
        scope: Scope = "default",
        origin: Origin | None = None,
        steps: int = STEPS,
        limit: int = ANSWER_TOKENS,
        hooks: Sequence[Hook] = (),
    ) -> None:
        self.speaker = speaker
        self.controller = controller
        self.toolbox = toolbox or Toolbox((), Permissions())
        self.system = system
        self.session = session or f"agent-{uuid4().hex[:8]}"
        self.scope = scope
        self.origin = origin
        self.hooks = tuple(hooks)
        self._steps = steps
        self._limit = limit
        self._last: SentBody | None = None
        self._allowance = Allowance()
        self._running: AsyncGenerator[AgentEvent, None] | None = None
        limits = controller.engine.limits.windows
        if speaker.window:
            limits.tell(speaker.name, speaker.window)
        if speaker.address:
            limits.place(speaker.name, speaker.address)

    def child(self, name: str, toolbox: Toolbox | None = None, system: str | None = None) -> "Agent":
        """An agent for a part of the work, with a lineage of its own that hangs under this one's."""
        if self._last is None:
            raise ClewError("child() needs a parent request: send one first")
        return Agent(
            self.speaker,
            self.controller,
            self.toolbox if toolbox is None else toolbox,
            system=self.system if system is None else system,
            session=f"{self.session}-{name}-{uuid4().hex[:8]}",
            scope=self.scope,
            origin=Origin("subagent", self._last.view.branch),
            steps=self._steps,
            limit=self._limit,
            hooks=self.hooks,
        )

    def run(self, text: str) -> AsyncGenerator[AgentEvent, None]:
        """Say something to the agent; what it does comes as events, the last of which is `Answered`.

        To close it, or to cancel whoever waits for it, ends the turn: what was said until then is in the log.
        """
        self._running = self._run(text, self._running)
        return self._running

    async def _run(
        self, text: str, before: AsyncGenerator[AgentEvent, None] | None
    ) -> AsyncGenerator[AgentEvent, None]:
        if before is not None:  # somebody stopped listening in its middle
            await before.aclose()
        new: list[dict[str, Any]] = [named(self.speaker.format).asked(text)]
        with self.controller.turn():
            for step in range(1, self._steps + 1):
                spoken: Spoken | None = None
                async with aclosing(self._speak(new)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, Spoken):
                            spoken = piece
                        else:
                            yield await self._heard(piece)
                assert spoken is not None, "or an error was raised"
                if not spoken.calls:
                    yield await self._heard(Answered(spoken.text, spoken.stop, step))
                    return
                async with aclosing(self._use(spoken.calls)) as used:
                    async for event in used:
                        yield await self._heard(event)
                new = []
            yield await self._heard(Answered("", "steps", self._steps))

    async def _heard(self, event: AgentEvent) -> AgentEvent:
        """Let hooks hear of an event before anybody else does; what one raises ends the turn."""
        for hook in self.hooks:
            await hook(self, event)
        return event

    # --- one call of the model ----------------------------------------------------------------------------------------

    async def _speak(self, new: Sequence[dict[str, Any]]) -> AsyncGenerator[AgentEvent | Spoken, None]:
        """What the model says after this; tried again where that helps, with less where it was too much."""
        heard: list[str] = []
        for left in range(CALL_TRIES - 1, -1, -1):
            sent = await self._prepare(new)
            if told := await self._compacted(sent):
                yield told
            self._last, new = sent, ()
            heard.clear()
            try:
                async with aclosing(self.speaker.speak(sent.body)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, Spoken):
                            heard.clear()
                            await self._say(piece.messages)
                            if piece.usage:
                                await self.controller.engine.observe(sent.view, piece.usage)
                        elif isinstance(piece, Text):
                            heard.append(piece.delta)
                        yield piece
                return
            except ModelError as error:
                yield await self._again(sent, error, left)
            except (asyncio.CancelledError, GeneratorExit):
                await asyncio.shield(self._say(partial("".join(heard), self.speaker.format)))
                raise

    async def view(self) -> View:
        """The conversation as it stands, and would be sent. Raises `NotFound` where nothing was said yet."""
        return await self.controller.open(await self._addition(named(self.speaker.format).lead(self.system)))

    async def _prepare(self, new: Sequence[dict[str, Any]]) -> SentBody:
        return await self.controller.prepare(
            await self._addition([*named(self.speaker.format).lead(self.system), *new])
        )

    async def _addition(self, said: Sequence[dict[str, Any]]) -> Addition:
        format = self.speaker.format
        tools = [ToolDeclaration(t.name, t.description, t.parameters) for t in self.toolbox.tools.values()]
        body = frame(format, self.speaker.name, self.system, tools, await self._answer())
        own = self._own() if self.controller.engine.settings.author == "own" and may_ask_own(environment()) else None
        return Addition(
            {**body, named(format).LIST: list(said)}, self.session, format, self.scope, self.origin, own=own
        )

    def _own(self) -> ByModel:
        """The model that this agent talks to, as one that writes chapters."""
        speaker = self.speaker

        async def speak(body: RequestBody) -> Spoken:
            spoken: Spoken | None = None
            async with aclosing(speaker.speak(body)) as pieces:
                async for piece in pieces:
                    spoken = piece if isinstance(piece, Spoken) else spoken
            assert spoken is not None, "or an error was raised"
            return spoken

        return ByModel(OwnModel(speaker.name, speaker.format, speak, limit=speaker.window), allowance=self._allowance)

    async def _answer(self) -> int:
        """The tokens that an answer may take: not more than are kept free for it, or a full window has no room."""
        frame = Frame(self.speaker.format, self.speaker.name)
        branch = self._last.view.branch if self._last else ""
        kept_free = (await self.controller.engine.limits.target_after_refusal(self.scope, frame, branch)).kept_free
        return min(self._limit, kept_free or self._limit)

    async def _again(self, sent: SentBody, error: ModelError, left: int) -> Retrying:
        """Get ready for another try. Raises the error where there is none, or where it would not help."""
        engine = self.controller.engine
        if error.fault == "overflow" and left:
            before = await self._answer()
            await engine.refused(sent.view, error)
            # Where the error named the window, the next request is made for that.
            if await self._answer() == before and await engine.compact(sent.view, method="reactive") is sent.view:
                raise error
            return Retrying("overflow", 0.0)
        if error.fault not in AGAIN or not left:
            raise error
        seconds = error.retry_after or random.uniform(0.5, 1.0) * 2 ** (CALL_TRIES - left - 1)  # noqa: S311
        await asyncio.sleep(seconds)
        return Retrying(error.fault, seconds)

    async def _compacted(self, sent: SentBody) -> Compacted | None:
        """Whether what is sent became shorter since the last call, and why."""
        was = self._last.view if self._last else None
        known = len(was.edits) if was and was.branch == sent.view.branch else 0
        new = [e.by for e in sent.view.edits[known:] if not e.by.startswith(("Repair", "Expan", "Quote"))]
        if not new:
            return None
        engine = self.controller.engine
        cause = "handoff" if any(by.startswith("Handoff") for by in new) else "compaction"
        before = await engine.expected(was) if was else 0
        return Compacted(self.session, cause, before, await engine.expected(sent.view))

    async def _say(self, said: Sequence[dict[str, Any]]) -> None:
        """Write down what was said, whatever happens next."""

        async def write() -> None:
            await self.controller.engine.append(await self._addition(said))

        if said:
            await asyncio.shield(write())

    # --- the tools ----------------------------------------------------------------------------------------------------

    async def _use(self, calls: Sequence[ToolCall]) -> AsyncGenerator[AgentEvent, None]:
        """Run what the model called; every call is answered, also where somebody cancels."""
        results: list[CallResult] = []
        try:
            for call in calls:
                yield Running(call.id, call.name, call.arguments or {})
                results.append(await self._result(call))
                yield Ran(*results[-1])
        finally:
            left = [CallResult(call.id, call.name, CANCELLED, failed=True) for call in calls[len(results) :]]
            await self._say(named(self.speaker.format).results([*results, *left]))

    async def _result(self, call: ToolCall) -> CallResult:
        if self.controller.is_ours(call.name) and self._last is not None:
            came = await self.controller.answer(self._last.view, call.name, call.arguments or {})
        else:
            came = await self.toolbox.call(call.name, call.raw or "{}")
        return CallResult(call.id, call.name, *came)


def partial(text: str, format: str) -> list[dict[str, Any]]:
    """What the assistant had said when somebody cancelled."""
    return [named(format).begun(text)] if text.strip() else []


def frame(format: str, model: str, system: str, tools: Sequence[ToolDeclaration], limit: int) -> dict[str, Any]:
    """A request without its messages."""
    codec = named(format)
    body = {codec.model_key: model, **codec.with_parameters({"limit": limit}), **codec.fixed}
    if format == openai_responses.NAME and REASONS.search(model):
        body["include"] = ["reasoning.encrypted_content"]  # it keeps none: they come sealed, and go back so
    return with_tools(body | (codec.system(system) if system else {}), format, tools)
