"""The loop: ask the model, run what it calls, and again, until it has nothing more to call."""

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol
from uuid import uuid4

from clew.additions import Addition
from clew.agent.events import Answered, Compacted, Event, Ran, Retrying, Running
from clew.agent.results import Result, asked, frame, lead, messages
from clew.agentic import Helm, Sent
from clew.errors import ClewError, ModelError, ToolError
from clew.items import Scope
from clew.speaking import BrokenOff, Call, Speaker, Spoken
from clew.store.records import Origin
from clew.wire.convert_frame import Tool
from clew.wire.formats import named

STEPS = 200  # calls of the model for one word of the user
TRIES = 4  # of one call
LIMIT = 8_192  # tokens of an answer
CANCELLED = "Cancelled by the user before it was done."
AGAIN = ("busy", "network", "timeout")  # faults after which a call is made again


class Usable(Protocol):
    """A tool that an agent may call; what goes wrong in it is a `ToolError`."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...
    async def run(self, arguments: Mapping[str, Any]) -> str: ...


class Agent:
    """A conversation with a model that may use tools. All of it is in the log as soon as it is said."""

    def __init__(
        self,
        speaker: Speaker,
        helm: Helm,
        tools: Sequence[Usable] = (),
        *,
        system: str = "",
        session: str | None = None,
        scope: Scope = "default",
        origin: Origin | None = None,
        steps: int = STEPS,
        limit: int = LIMIT,
    ) -> None:
        self.speaker = speaker
        self.helm = helm
        self.tools = {tool.name: tool for tool in tools}
        self.system = system
        self.session = session or f"agent-{uuid4().hex[:8]}"
        self.scope = scope
        self.origin = origin
        self._steps = steps
        self._limit = limit
        self._last: Sent | None = None

    def child(self, name: str, tools: Sequence[Usable] | None = None, system: str | None = None) -> "Agent":
        """An agent for a part of the work, with a lineage of its own that hangs under this one's."""
        if self._last is None:
            raise ClewError("nothing was said yet that a sub-agent could come of")
        return Agent(
            self.speaker,
            self.helm,
            list(self.tools.values()) if tools is None else tools,
            system=self.system if system is None else system,
            session=f"{self.session}-{name}-{uuid4().hex[:4]}",
            scope=self.scope,
            origin=Origin("subagent", self._last.view.branch),
            steps=self._steps,
            limit=self._limit,
        )

    async def run(self, text: str) -> AsyncIterator[Event]:
        """Say something to the agent; what it does comes as events, the last of which is `Answered`."""
        format = self.speaker.format
        new: list[dict[str, Any]] = [asked(text, format)]
        with self.helm.turn():
            for step in range(1, self._steps + 1):
                spoken: Spoken | None = None
                async for event in self._speak(new):
                    if isinstance(event, Spoken):
                        spoken = event
                    else:
                        yield event
                assert spoken is not None, "or an error was raised"
                await self._say(spoken.messages)
                if not spoken.calls:
                    yield Answered(spoken.text, spoken.stop, step)
                    return
                async for event in self._use(spoken.calls):
                    yield event
                new = []
            yield Answered("", "steps", self._steps)
