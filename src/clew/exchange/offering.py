"""In which requests tools to recall with can be offered: what is asked here has one answer for a whole session.

Tools stand before all else that a provider caches.
"""

from collections.abc import Callable, Mapping
from typing import Any

from clew import wire
from clew.core.items import Frame
from clew.errors import ClewError
from clew.wire.convert.tools import choice_of, declared, object_at

_SCHEMAS = ("json_schema", "json_object")
_GEMINI_SCHEMAS = ("responseSchema", "response_schema", "responseJsonSchema", "response_json_schema")


def are_offerable(body: Mapping[str, Any], format: str, is_ours: Callable[[str], bool], always: bool = False) -> bool:
    """Whether tools of clew's may join those of a body: one answer comes, and now, and no name is taken.

    `always`: who decides needs them to act, or somebody asked for them, whatever the answer must be.
    """
    try:
        names = declared(body, format)
        return _is_answered_once(body) and not any(map(is_ours, names)) and (always or _is_free(body, format))
    except ClewError:  # what is wrong with it is its provider's to say
        return False


def taken(body: Mapping[str, Any], format: str, is_ours: Callable[[str], bool]) -> list[str]:
    """The names of clew's tools that a body has for tools of its own; none where nobody can tell."""
    try:
        return sorted(filter(is_ours, declared(body, format)))
    except ClewError:
        return []


def _is_answered_once(body: Mapping[str, Any]) -> bool:
    """Whether one answer comes, and now: a call of clew's in one of several could not be answered."""
    config = object_at(body, "generationConfig") or object_at(body, "generation_config")
    several = config.get("candidateCount", config.get("candidate_count", body.get("n")))
    return several in (None, 1) and not body.get("background")


def _is_free(body: Mapping[str, Any], format: str) -> bool:
    """Whether its model may call tools as it likes. Raises `ClewError` for a body that is none.

    Who has no tools is asked for a text or an object, and nobody expects a call; nor where the answer must be a certain
    call or object. Who has clew's tools by MCP gets them all the same: a server beside the client may not know which
    conversation this is.
    """
    return bool(declared(body, format)) and not _is_bound(body, format)


def _is_bound(body: Mapping[str, Any], format: str) -> bool:
    """Whether the answer must be a certain call, or an object of a certain shape."""
    choice = choice_of(_split(body, format)[0])
    return bool(choice.only) or choice.mode == "any" or wants_object(body)


def wants_object(body: Mapping[str, Any]) -> bool:
    """Whether the answer must be an object of a certain shape."""
    asked = (
        object_at(body, "response_format"),
        object_at(object_at(body, "text"), "format"),
        object_at(body, "output_format"),
        object_at(object_at(body, "output_config"), "format"),
    )
    if any(one.get("type") in _SCHEMAS for one in asked):
        return True
    config = object_at(body, "generationConfig") or object_at(body, "generation_config")
    return any(config.get(key) for key in _GEMINI_SCHEMAS)


def _split(body: Mapping[str, Any], format: str) -> tuple[Frame, Any]:
    return wire.named(format).split(body)
