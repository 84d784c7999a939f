"""What a request demands of its answer: how many, of what shape, by whose tools, and who keeps the history."""

from collections.abc import Mapping
from typing import Any

from clew.core.items import Frame
from clew.wire.convert.tools import flat
from clew.wire.formats import named
from clew.wire.formats.tools import object_at
from clew.wire.requests import is_elsewhere

_SCHEMAS = ("json_schema", "json_object")
_GEMINI_SCHEMAS = ("responseSchema", "response_schema", "responseJsonSchema", "response_json_schema")
# Keys of tools that their caller runs: of any other nobody here knows what a call would do, or cost.
_CALLERS = ("function", "custom", "namespace", "local_shell", "shell", "apply_patch", "tool_search")
_CALLERS_BY_DATE = ("bash_", "text_editor_", "computer_", "memory_")  # of Anthropic's, which end with a date
_DECLARED = ("toolSpec", "cachePoint", "functionDeclarations", "function_declarations")
_GUIDED = ("guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs", "grammar", "format")
_SERVERS = ("mcp_servers", "plugins", "container")  # under these a provider runs tools


def is_answered_once(body: Mapping[str, Any]) -> bool:
    """Whether one answer comes, and now: a call of clew's in one of several could not be answered."""
    config = object_at(body, "generationConfig") or object_at(body, "generation_config")
    several = config.get("candidateCount", config.get("candidate_count", body.get("n")))
    return several in (None, 1) and not body.get("background")


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
    kind = str(config.get("responseMimeType", config.get("response_mime_type")) or "text/plain")
    return kind != "text/plain" or any(config.get(key) for key in _GEMINI_SCHEMAS) or any(map(body.get, _GUIDED))


def is_bound(frame: Frame, body: Mapping[str, Any]) -> bool:
    """Whether the answer must be a certain call, or an object of a certain shape."""
    choice = named(frame.format).read_choice(frame.body)
    return bool(choice.only) or choice.mode == "any" or wants_object(body)


def may_be_followed(frame: Frame) -> bool:
    """Whether a model may be asked for a text right after a request in this frame.

    Not where another answer is due than a text, where its provider would run tools, or keeps the history.
    """
    body = frame.body
    if not is_answered_once(body) or is_bound(frame, body) or is_elsewhere(body) or any(map(body.get, _SERVERS)):
        return False
    if body.get("web_search_options") is not None:  # an empty object asks for it, too
        return False
    if any(str(mode).lower() != "text" for mode in _modes(body)):
        return False
    tools = body.get("tools")
    config = object_at(body, "toolConfig").get("tools")
    return all(map(_is_callers, flat([*_listed(tools), *_listed(config), *named(frame.format).added_tools(body)])))


def _modes(body: Mapping[str, Any]) -> list[Any]:
    """What the answer may be, where that is said: a text, a picture, a voice."""
    config = object_at(body, "generationConfig") or object_at(body, "generation_config")
    return [
        *_listed(body.get("modalities")),
        *_listed(config.get("responseModalities", config.get("response_modalities"))),
    ]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_callers(tool: Any) -> bool:
    """Whether whoever declares a tool runs it."""
    if not isinstance(tool, Mapping):
        return False
    kind = tool.get("type")
    if kind is None:
        return "name" in tool or any(key in tool for key in _DECLARED)
    return kind in _CALLERS or str(kind).startswith(_CALLERS_BY_DATE)
