"""For hosts whose histories keep what was said and drop what was done: calls and results are put back."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clew.core import rawjson
from clew.core.items import Scope
from clew.engine.engine import Engine
from clew.errors import BadRequest
from clew.wire import encode

ChatMessage = dict[str, Any]


def woven(history: Sequence[ChatMessage], told: Sequence[ChatMessage]) -> list[ChatMessage]:
    """A history with the calls, results and pictures that stood between its messages when they were `told`.

    Where it differs from what was told, the host has changed it, and from there on its word holds.
    """
    out: list[ChatMessage] = []
    at = 0
    for message in history:
        stop = _end(told, at, message)
        known = stop < len(told) and is_same(told[stop], message)
        out += [*_done(told[at:stop]), told[stop] if known else message]
        at = stop + 1 if known else len(told)
    return out


def is_same(told: ChatMessage, kept: ChatMessage) -> bool:
    """Whether a host keeps this for what was told, perhaps without its pictures."""
    content = told.get("content")
    if isinstance(content, list) and isinstance(kept.get("content"), str):
        content = next((part["text"] for part in content if part.get("type") == "text"), "")
    return told.get("role") == kept.get("role") and content == kept.get("content")


async def messages_in(engine: Engine, scope: Scope, session: str | None) -> list[ChatMessage]:
    """All that was said in a session of OpenAI's format so far, as it was said."""
    branch = await engine.named(scope, session) if session else None
    if branch is None:
        return []
    view, said = await engine.view(scope, branch), await engine.history(scope, branch)
    body: dict[str, list[ChatMessage]] = encode(view.frame, (node.item for node in said))
    return [m for m in body["messages"] if m.get("role") not in ("system", "developer")]


def plain(messages: Iterable[Mapping[str, Any]]) -> list[ChatMessage]:
    """Messages as JSON has them, where a host put an SDK's own objects for calls."""
    return [_with_calls(dict(m)) for m in messages]


def unquoted(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Messages whose results are texts, where a host wrote each text as a JSON string.

    In a string within a string there are no lines, and previews, searches and excerpts are made of lines.
    """
    return [{**m, "content": _text(m["content"])} if m.get("role") == "tool" else m for m in messages]


def _with_calls(message: ChatMessage) -> ChatMessage:
    if calls := message.get("tool_calls"):
        made = [call if isinstance(call, dict) else call.model_dump(exclude_none=True) for call in calls]
        message["tool_calls"] = made
    return message


def _text(content: Any) -> Any:
    if not (isinstance(content, str) and content.startswith('"')):
        return content
    try:
        text = rawjson.loads(content)
    except BadRequest:
        return content
    return text if isinstance(text, str) else content


def _end(told: Sequence[ChatMessage], at: int, message: ChatMessage) -> int:
    """Where a turn's work ends that begins here: before its answer, or before what the history has next."""
    if at < len(told) and _is_work(told[at]):
        while at < len(told) and (_is_work(told[at]) or told[at].get("role") == "user"):
            if is_same(told[at], message):
                break
            at += 1
    return at


def _done(turn: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """What was done in a turn; what a host said in the end, to have its answer, is of no use any more."""
    end = len(turn)
    while end and isinstance(turn[end - 1].get("content"), str) and not _is_work(turn[end - 1]):
        end -= 1
    return turn[:end]


def _is_work(message: ChatMessage) -> bool:
    return message.get("role") == "tool" or bool(message.get("tool_calls"))
