"""Who speaks, by what clients say of themselves in headers and bodies; what they do not say is told from their past."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

from clew.core import rawjson
from clew.core.items import Scope
from clew.errors import BadRequest
from clew.gateway.http import GatewayRequest
from clew.store.records import Method, Origin

SESSION_HEADER = "x-clew-session"  # with which anybody may name a conversation
# Headers in which clients name their conversation, the surest first.
_NAMES = ("x-claude-code-session-id", "thread-id", "session-id", "session_id", "x-session-id")
# What a body has where its `metadata` does. `prompt_cache_key` does not: one may serve all users of a program.
_IN_BODY = b"session_id"
LONGEST_NAME = 200  # characters of a name


class NamedConversation(NamedTuple):
    """Whose request it is; without a name, its past tells."""

    name: str | None = None
    parent: str | None = None  # the conversation that it works for
    compacts: bool = False  # it says that it asks for a compaction


class KnownConversation(NamedTuple):
    """What is known of the conversation that a call belongs to."""

    scope: Scope
    name: str | None
    method: Method
    origin: Origin | None  # should it begin now


def speaker(asked: GatewayRequest, raw: bytes) -> NamedConversation:
    """Who says this."""
    headers = asked.headers
    if own := headers.get(SESSION_HEADER):
        return NamedConversation(
            _short(own), _short(headers["x-clew-parent"]) if headers.get("x-clew-parent") else None
        )
    name = next((headers[key] for key in _NAMES if headers.get(key)), None) or _name_in_body(raw)
    if name is None:
        return NamedConversation()
    name = _short(name)
    if agent := headers.get("x-claude-code-agent-id"):
        return NamedConversation(_short(f"{name}/{agent}"), name)
    if headers.get("thread-id"):
        return _codex(headers, name)
    parent = headers.get("x-parent-session-id")  # opencode's sub-agents
    return NamedConversation(name, _short(parent) if parent else None)


def _codex(headers: Mapping[str, str], name: str) -> NamedConversation:
    """A thread of Codex; that of a sub-agent has the session of who sent it."""
    turn = _object(headers.get("x-codex-turn-metadata", ""))
    compacts = turn.get("request_kind") == "compaction"
    session = headers.get("session-id") or name
    if session != name:
        return NamedConversation(name, _short(session), compacts)
    if other := headers.get("x-openai-subagent"):
        return NamedConversation(_short(f"{name}/{other}"), name, compacts)
    return NamedConversation(name, None, compacts)


def _name_in_body(raw: bytes) -> str | None:
    """The name that a body has for its conversation."""
    if _IN_BODY not in raw:  # to read all of it takes longer than to look
        return None
    try:
        body = rawjson.loads(raw)
    except BadRequest:
        return None
    about = body.get("metadata") if isinstance(body, dict) else None
    if not isinstance(about, dict):
        return None
    user = _object(about.get("user_id"))
    found = user.get("session_id") or about.get("session_id")
    return found if isinstance(found, str) and found else None


def _object(text: Any) -> Mapping[str, Any]:
    """JSON in a string; nothing where it is no object."""
    try:
        found = rawjson.loads(text) if isinstance(text, str) and text.startswith("{") else {}
    except BadRequest:
        return {}
    return found if isinstance(found, dict) else {}


def _short(name: str) -> str:
    """A name; of a long one the beginning, and the digest of all of it: two that differ at their end are two."""
    name = name.strip()
    if len(name) <= LONGEST_NAME:
        return name
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{name[: LONGEST_NAME - len(digest) - 1]}~{digest}"
