"""For hosts whose histories keep what was said and drop what was done: calls and results are put back."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clew import rawjson
from clew.engine import Engine
from clew.errors import BadRequest
from clew.items import Scope
from clew.wire import encode

Message = dict[str, Any]


def woven(history: Sequence[Message], told: Sequence[Message]) -> list[Message]:
    """A history with the calls and results that stood between its messages when they were `told`.

    Where it differs from what was told, the host has changed it, and from there on its word holds.
    """
    out: list[Message] = []
    at = 0
    for message in history:
        stop = at
        while stop < len(told) and _is_work(told[stop]):
            stop += 1
        out += [*told[at:stop], message]
        at = stop + 1 if stop < len(told) and _says(told[stop]) == _says(message) else len(told)
    return out


async def told_in(engine: Engine, scope: Scope, session: str | None) -> list[Message]:
    """All that was said in a session of OpenAI's format so far, as it was said."""
    branch = await engine.store.session(scope, session) if session else None
    if branch is None:
        return []
    said = [place.id for place in (await engine.store.load(scope, branch)).said]
    nodes = await engine.store.nodes(scope, said)
    view = await engine.view(scope, branch)
    body: dict[str, list[Message]] = encode(view.frame, (nodes[id].item for id in said))
    return [m for m in body["messages"] if m.get("role") not in ("system", "developer")]


def plain(messages: Iterable[Mapping[str, Any]]) -> list[Message]:
    """Messages as JSON has them, where a host put an SDK's own objects for calls."""
    return [_with_calls(dict(m)) for m in messages]


def unquoted(messages: Iterable[Message]) -> list[Message]:
    """Messages whose results are texts, where a host wrote each text as a JSON string.

    In a string within a string there are no lines, and previews, searches and excerpts are made of lines.
    """
    return [{**m, "content": _text(m["content"])} if m.get("role") == "tool" else m for m in messages]


def _with_calls(message: Message) -> Message:
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


def _is_work(message: Message) -> bool:
    return message.get("role") == "tool" or bool(message.get("tool_calls"))


def _says(message: Message) -> tuple[Any, Any]:
    return message.get("role"), message.get("content")
