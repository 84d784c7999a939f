"""Models that an agent talks to: streamed, with tools, over the official SDKs.

`speaker` makes one from a short text. What it says comes in pieces, the last of which is `Spoken`:

    async with aclosing(speaker.speak(body)) as pieces:
        async for piece in pieces: ...
"""

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Protocol

from clew import llm as models
from clew.errors import BadRequest
from clew.wire.streams.pieces import BrokenOff, Called, Piece, Spoken, StopReason, Text, Thought, ToolCall

__all__ = [
    "BrokenOff",
    "Called",
    "Piece",
    "Speaker",
    "Spoken",
    "StopReason",
    "Text",
    "Thought",
    "ToolCall",
    "speaker",
]


class Speaker(Protocol):
    """A model that an agent talks to."""

    @property
    def name(self) -> str:
        """The model's, as the catalog knows it."""

    @property
    def format(self) -> str:
        """The wire format of its requests."""

    @property
    def window(self) -> int | None:
        """The tokens that it can read, where it knows that for sure or somebody said so."""

    @property
    def address(self) -> str | None:
        """Where its server is, if somebody said where: it may be asked for the window."""

    def speak(self, body: Mapping[str, Any]) -> AsyncGenerator[Piece, None]:
        """Send exactly this body, streamed; `Spoken` is the last piece, and closing early hangs up."""

    async def close(self) -> None: ...


_FORMATS = ("openai_responses", "openai_chat", "anthropic")


def speaker(text: str, *, format: str | None = None, **settings: Any) -> Speaker:
    """The speaker that a text names, as for `clew.llm.named`; `format` says which API, where a server has more."""
    meant = models.read(text)
    if meant.base_url:
        settings = {"base_url": meant.base_url, **settings}
    format = format or _usual(meant.provider, "base_url" in settings or "client" in settings)
    if format == "anthropic":
        from clew.llm.streaming.anthropic import AnthropicSpeaker

        return AnthropicSpeaker(meant.name, **settings)
    if format not in _FORMATS:
        raise BadRequest(f"format: expected one of {', '.join(_FORMATS)}, got {format}")
    from clew.llm.streaming.openai import ChatSpeaker, ResponsesSpeaker

    return (ResponsesSpeaker if format == "openai_responses" else ChatSpeaker)(meant.name, **settings)


def _usual(provider: str, elsewhere: bool) -> str:
    """OpenAI keeps a model's thoughts only over Responses; servers like it speak Chat."""
    if provider == "anthropic":
        return provider
    return "openai_chat" if elsewhere else "openai_responses"
