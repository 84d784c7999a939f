"""Conversations of public data sets: ShareGPT's `conversations` of `from` and `value`; `conversation` of messages."""

from collections.abc import Mapping
from typing import Any

from clew.errors import BadRequest
from clew.sessions.transcripts.source import string

TURNS, CONVERSATION = "conversations", "conversation"
# Calls and their results have no ids there: they are read as what they are, text of who wrote them.
SPEAKERS: Mapping[str, str] = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("observation", "tool", "function_response"), "function"),
    **dict.fromkeys(("gpt", "assistant", "chatgpt", "bing", "bard", "model", "function_call"), "assistant"),
    "system": "system",
}


def as_body(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The conversation as a body with `messages`; one that has other names for its parts, as it is."""
    if "messages" in value:
        return value
    if isinstance(turns := value.get(TURNS), list):
        said = [_message(turn, n) for n, turn in enumerate(turns)]
    elif isinstance(turns := value.get(CONVERSATION), list):
        said = turns
    else:
        return value
    return {key: part for key, part in value.items() if key not in (TURNS, CONVERSATION)} | {"messages": said}


def _message(turn: Any, n: int) -> dict[str, Any]:
    if not isinstance(turn, Mapping) or not isinstance(turn.get("value"), str):
        raise BadRequest(f"{TURNS}[{n}]: expected an object with `from` and `value`")
    role = SPEAKERS.get(string(turn.get("from")).lower())
    if role is None:
        raise BadRequest(f"{TURNS}[{n}].from: unknown {turn.get('from')!r}; expected one of {', '.join(SPEAKERS)}")
    named = {"name": string(turn["from"]).lower()} if role == "function" else {}
    return {"role": role, **named, "content": turn["value"]}
