"""Requests that clients make beside their conversation, told by their shape: sum it up, name it; and what follows."""

from collections.abc import Sequence
from typing import Literal

from clew.core.items import Frame, Item

# `request`: asked once, amid a conversation that then goes on without it; `agent`: one that does nothing else.
Aside = Literal["request", "agent"]

# How the newest message of such a request begins, or the system prompt of such an agent. What a user types may
# begin so, too: then it is answered on a branch of its own, and nothing else is different.
_REQUESTS = (
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.",
    "Your task is to create a detailed summary of the conversation so far",
    "You are performing a CONTEXT CHECKPOINT COMPACTION",
    "Generate a new <state_snapshot>",
    "Critically evaluate the <state_snapshot>",
    "You are the component that summarizes",
    "Generate a title for this conversation:",
)
_AGENTS = (
    "You are a context summarization agent",
    "You are a context summarization assistant",
    "You are a specialized system component responsible for distilling chat history",
    "You are the component that summarizes",
    "You are summarizing a conversation to preserve context",
    "You are a title generator",
)
# How the first message begins once a client has replaced its own past by a summary.
_CONTINUED = (
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem and produced a summary",
    "The conversation history before this point was compacted into the following summary",
    "What did we do so far?",
    "<state_snapshot>",
)
_TRIGGER = "compaction_trigger"  # the item by which a client asks its provider to do it
FIRST = 16  # items among which the message with the summary is: reminders may stand before it


def aside(frame: Frame, items: Sequence[Item]) -> Aside | None:
    """What a request is beside its conversation; None if it is a turn of it."""
    last = items[-1] if items else None
    if last is not None and last.kind == "opaque" and last.name == _TRIGGER:
        return "request"
    asked = last.text.lstrip() if last is not None and last.kind == "text" and last.role != "assistant" else ""
    if asked.startswith(_REQUESTS):
        return "request"
    return "agent" if frame.system.lstrip().startswith(_AGENTS) else None


def is_continued(items: Sequence[Item]) -> bool:
    """Whether a history begins with a summary by which its client replaced what came before."""
    return any(i.kind == "text" and i.role == "user" and i.text.lstrip().startswith(_CONTINUED) for i in items[:FIRST])
