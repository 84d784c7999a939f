"""What an agent does, as whoever watches it hears: the pieces of an answer, and what happens between answers."""

from dataclasses import dataclass
from typing import Any

from clew.llm.streaming import Called, Text, Thought

__all__ = ["AgentEvent", "Answered", "Called", "Compacted", "Ran", "Retrying", "Running", "Text", "Thought"]


@dataclass(frozen=True, slots=True)
class Compacted:
    """What is sent is shorter from here on: clew compacted, or the agent began a new session."""

    session: str
    cause: str  # compaction, handoff
    before: int  # tokens
    after: int


@dataclass(frozen=True, slots=True)
class Running:
    """A tool is run."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ran:
    """A tool was run."""

    id: str
    name: str
    text: str
    failed: bool


@dataclass(frozen=True, slots=True)
class Retrying:
    """A call failed and is made again."""

    why: str  # busy, network, overflow ...
    seconds: float


@dataclass(frozen=True, slots=True)
class Answered:
    """The agent has said what it had to say, or stopped."""

    text: str
    stop: str  # end, length, refused, steps
    steps: int


AgentEvent = Text | Thought | Called | Compacted | Running | Ran | Retrying | Answered
