"""What an agent hears of a model: pieces as they come, and at the end what was said."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from uuid import uuid4

from clew.core import rawjson
from clew.errors import BadRequest, Fault, ModelError

AnswerMessage = dict[str, Any]
StopReason = Literal["end", "calls", "length", "refused", "cut"]  # cut: only of what came before an answer broke off


@dataclass(frozen=True, slots=True)
class Text:
    """Some more of what the model says."""

    delta: str


@dataclass(frozen=True, slots=True)
class Thought:
    """Some more of what the model thinks."""

    delta: str


@dataclass(frozen=True, slots=True)
class Called:
    """Some more of the arguments of a call; the first piece of one may have none."""

    id: str
    name: str
    delta: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants run; without `arguments` where `raw` is no JSON object."""

    id: str
    name: str
    arguments: dict[str, Any] | None
    raw: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """What the assistant said, as messages to send back, and as an agent reads it."""

    messages: list[AnswerMessage]  # none where it said nothing that could be sent
    text: str
    calls: list[ToolCall]
    stop: StopReason
    reason: str | None  # the provider's own word for it
    usage: Mapping[str, Any] | None  # the provider's own report


Piece = Text | Thought | Called | Spoken


class BrokenOff(ModelError):
    """A model stopped in the middle of its answer; `partial` has whole calls and thoughts, and all of the text."""

    def __init__(self, message: str, fault: Fault, partial: Spoken, *, retry_after: float | None = None) -> None:
        super().__init__(message, fault, retry_after=retry_after)
        self.partial = partial


def call(id: str, name: str, raw: str) -> ToolCall:
    """A call with its arguments read; no arguments at all are an empty object."""
    try:
        arguments = rawjson.loads(raw) if raw.strip() else {}
    except BadRequest:
        arguments = None
    return ToolCall(id, name, arguments if isinstance(arguments, dict) else None, raw)


def new_id() -> str:
    """An id for a call of a server that gives none: its result must name one."""
    return f"call_{uuid4().hex[:24]}"
