"""Requests that clients make beside their conversation, told by their shape: sum it up, name it; and what follows."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from clew.core.items import Frame, Item

# `request`: asked once, amid a conversation that then goes on without it; `agent`: one that does nothing else.
Aside = Literal["request", "agent"]
# How a summary is to be written: as text, at length or briefly, in a tag of this name, or as an item that only its
# provider reads.
SummaryForm = Literal["text", "brief", "summary", "state_snapshot", "item"]


class SideRequest(NamedTuple):
    """What a client asks beside its conversation."""

    aside: Aside
    form: SummaryForm | None = None  # of the summary that it asks for; None: it asks for a name
    begins: int = 0  # the item that asks, and is no part of the conversation; no item does: as many as there are


SNAPSHOT = "<state_snapshot>"  # with which such a summary begins
# How the newest message of such a request begins, or the system prompt of such an agent. What a user types may
# begin so, too: then it is answered on a branch of its own, and nothing else is different.
_REQUESTS: dict[str, SummaryForm | None] = {
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.": "summary",
    "Your task is to create a detailed summary of the conversation so far": "summary",
    "You are performing a CONTEXT CHECKPOINT COMPACTION": "text",
    "Please create a detailed summary of the conversation so far. The history is being compacted": "text",
    "Generate a new <state_snapshot>": "state_snapshot",
    "Critically evaluate the <state_snapshot>": "state_snapshot",
    "You are the component that summarizes": "state_snapshot",
    "Generate a title for this conversation:": None,
}
_AGENTS: dict[str, SummaryForm | None] = {
    "You are a context summarization agent": "text",
    "You are a context summarization assistant": "text",
    "You are a specialized system component responsible for distilling chat history": "state_snapshot",
    "You are the component that summarizes": "state_snapshot",
    "You are summarizing a conversation to preserve context": "text",
    "*Briefly* summarize this partial conversation about programming": "brief",
    "You are a title generator": None,
    "you will generate a short title based on the first message": None,
    "You are an expert software engineer that generates concise, one-line Git commit messages": None,
}
# How the first message begins once a client has replaced its own past by a summary.
ASKED_FIRST = "What did we do so far?"  # the summary is the answer to it
_CONTINUED = (
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem and produced a summary",
    "The conversation history before this point was compacted into the following summary",
    ASKED_FIRST,
    "Some of the conversation history has been summarized to free up context",
    "I spoke to you previously about a number of things.",
    SNAPSHOT,
)
_TRIGGER = "compaction_trigger"  # the item by which a client asks its provider to do it
FIRST = 16  # items among which the message with the summary is: reminders may stand before it
LEADING = 512  # the same while nobody has answered yet: Codex keeps all that the user said before it


def side_request(frame: Frame, items: Sequence[Item]) -> SideRequest | None:
    """What a request asks beside its conversation; None if it is a turn of it."""
    at = len(items) - 1
    last = items[at] if items else None
    if last is not None and last.kind == "opaque" and last.name == _TRIGGER:
        return SideRequest("request", "item", at)
    asked = last.text.lstrip() if last is not None and last.kind == "text" and last.role != "assistant" else ""
    for words, form in _REQUESTS.items():
        if asked.startswith(words):
            return SideRequest("request", form, _first_asked(items))
    for words, form in _AGENTS.items():
        if frame.system.lstrip("- \t\r\n").startswith(words):
            return SideRequest("agent", form, at if asked else len(items))
    return None


def _first_asked(items: Sequence[Item]) -> int:
    """Where a client begins to ask: Gemini CLI asks twice, and shows at the second time what it was told."""
    at = len(items) - 1
    while at > 0 and items[at - 1].kind == "text":
        said, ours = items[at - 1].text.lstrip(), items[at - 1].role == "assistant"
        if not said.startswith(SNAPSHOT if ours else tuple(_REQUESTS)):
            break
        at -= 1
    return at


def aside(frame: Frame, items: Sequence[Item]) -> Aside | None:
    """What a request is beside its conversation; None if it is a turn of it."""
    found = side_request(frame, items)
    return found.aside if found else None


def is_continued(items: Sequence[Item]) -> bool:
    """Whether a history begins with a summary by which its client replaced what came before."""
    return summary_at(items) is not None


def summary_at(items: Sequence[Item], before: int = 0, is_answered: bool = False) -> int | None:
    """Where in a history the summary is by which its client replaced what came before; None where there is none.

    `before`: so many items stand before these; `is_answered`: and answers among them.
    """
    for n, item in enumerate(items[:LEADING]):
        is_answered |= item.role == "assistant"
        if is_answered and n + before >= FIRST:
            return None
        said = item.text.lstrip() if item.kind == "text" and item.role == "user" else ""
        if said.startswith(_CONTINUED):
            return n + 1 if said.startswith(ASKED_FIRST) and n + 1 < len(items) else n
    return None
