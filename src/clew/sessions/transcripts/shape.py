"""A session of some agent, whoever wrote it down: what was said, in stretches, and where its product compacted."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

from clew.clients.voices import by_message
from clew.core.items import Item
from clew.wire import decode
from clew.wire.convert.frame import declare
from clew.wire.formats import named

TranscriptMessage = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TranscriptCompaction:
    """The product put something shorter in the place of what was said before."""

    summary: str | None = None  # what it wrote instead; None where it is sealed or was not kept
    trigger: str = ""  # auto, manual, or as the product has it
    tokens_before: int | None = None
    kept: int = 0  # how many of the last messages before it stayed in view as they were
    at: str = ""
    # Places of earlier messages that stayed too, where the reader knows them; writers have no words for it.
    also: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class TranscriptStretch:
    """What was said between two compactions."""

    messages: tuple[TranscriptMessage, ...]
    began: TranscriptCompaction | None = None  # None: the session began here


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session: its messages are the whole history, and no summary is among them."""

    format: str  # the wire format of the messages
    stretches: tuple[TranscriptStretch, ...] = ()
    name: str = ""  # the source's own id of the session
    title: str = ""
    agent: str = ""
    model: str = ""
    system: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()  # as this wire format declares them
    cwd: str = ""
    began: str = ""  # times are as the source has them: ISO 8601
    ended: str = ""
    parent: str = ""  # the name of the session it came from
    cause: Literal["", "subagent", "fork"] = ""
    call: str = ""  # the id of the parent's call that started it
    shared: int = 0  # messages at its beginning that are its parent's, for a fork
    children: tuple["Transcript", ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()  # what the reader left out or could not place

    @property
    def messages(self) -> list[TranscriptMessage]:
        """All that was said, in order."""
        return list(chain.from_iterable(s.messages for s in self.stretches))

    @property
    def compactions(self) -> list[tuple[int, TranscriptCompaction]]:
        """Each compaction, with the number of messages that were said before it."""
        found, said = [], 0
        for stretch in self.stretches:
            if stretch.began is not None:
                found.append((said, stretch.began))
            said += len(stretch.messages)
        return found

    def items(self) -> list[list[Item]]:
        """What each message says, with who said it."""
        codec = named(self.format)
        said = [codec.read(message, f"{codec.LIST}[{n}]") for n, message in enumerate(self.messages)]
        return by_message(said, self.agent, begins=True)

    def body(self) -> dict[str, Any]:
        """The request that would send all of it."""
        body: dict[str, Any] = {"model": self.model} if self.model else {}
        codec = named(self.format)
        if self.system:
            body |= codec.system(self.system)
        if self.tools:
            body |= codec.declaring([*self.tools])
        body[codec.LIST] = [*codec.lead(self.system), *self.messages]
        return body if self.tools else _declaring(body, self.format)


def _declaring(body: dict[str, Any], format: str) -> dict[str, Any]:
    """The body with the tools declared that it calls, where its provider wants that; few files keep them."""
    if not named(format).declares_calls:
        return body
    frame, items = decode(body, format)
    declared = declare(frame, (item.name for item in items if item.kind == "call"))
    return named(format).join(declared, body["messages"])


class Script:
    """What is said, while it is read."""

    __slots__ = ("cuts", "messages")

    def __init__(
        self, messages: Iterable[TranscriptMessage] = (), cuts: Iterable[tuple[int, TranscriptCompaction]] = ()
    ) -> None:
        self.messages = list(messages)
        self.cuts = list(cuts)

    def say(self, *messages: TranscriptMessage) -> None:
        """Add what comes next."""
        self.messages += messages

    def compact(self, compaction: TranscriptCompaction) -> None:
        """All that was said so far is compacted here."""
        self.cuts.append((len(self.messages), compaction))

    @property
    def stretches(self) -> tuple[TranscriptStretch, ...]:
        """What was said, cut where it was compacted."""
        places = [place for place, _ in self.cuts]
        began = [None, *(compaction for _, compaction in self.cuts)]
        edges = zip([0, *places], [*places, len(self.messages)], began, strict=True)
        return tuple(TranscriptStretch(tuple(self.messages[start:stop]), why) for start, stop, why in edges)
