"""Requests that clients make beside their conversation, told by their shape: sum it up, name it; and what follows."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from clew.clients.known import SIDES, SummaryForm
from clew.clients.voices import kind_of
from clew.core.items import Frame, Item

# `request`: asked once, amid a conversation that then goes on without it; `agent`: one that does nothing else.
Aside = Literal["request", "agent"]


class SideRequest(NamedTuple):
    """What a client asks beside its conversation."""

    aside: Aside
    form: SummaryForm | None = None  # of the summary that it asks for; None: it asks for a name
    begins: int = 0  # the item that asks, and is no part of the conversation; no item does: as many as there are


SNAPSHOT = "<state_snapshot>"  # with which such a summary begins
# What a user types may begin so, too: then it is answered on a branch of its own, and nothing else is different.
_REQUESTS = {side.begins: side.form for side in SIDES if side.begins}
_AGENTS = {side.system: side.form for side in SIDES if side.system}
ASKED_FIRST = "What did we do so far?"  # the summary is the answer to it
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
        if item.kind != "text" or item.role != "user":
            continue
        if item.text.lstrip().startswith(ASKED_FIRST):
            return min(n + 1, len(items) - 1)
        if kind_of(item) == "summary":
            return n
    return None
