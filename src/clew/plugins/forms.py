"""What clew needs to know of the messages of a client."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from clew.sessions.transcripts.shape import TranscriptMessage

OwnMessage = Mapping[str, Any]  # as the client has it
# Places of messages of a client, and what is sent of them, in Anthropic's form; nothing: they are not sent.
HostUnit = tuple[tuple[int, ...] | TranscriptMessage, list[TranscriptMessage]]


class HostReport(NamedTuple):
    """What a provider reported."""

    answer: str  # for which
    usage: Mapping[str, Any]


class HostForm(Protocol):
    """The form of a client's messages."""

    def units(self, messages: Sequence[OwnMessage]) -> list[HostUnit]: ...

    def made(self, new: Sequence[TranscriptMessage], own: Sequence[OwnMessage]) -> list[OwnMessage]: ...

    def report(self, messages: Sequence[OwnMessage]) -> HostReport | None: ...
