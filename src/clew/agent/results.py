"""What tools gave back, as messages of each wire format."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from clew.errors import BadRequest
from clew.wire.convert.extras import with_tools
from clew.wire.convert.media import Media, write_media
from clew.wire.convert.tools import ToolDeclaration
from clew.wire.formats.gemini import identified

REASONS = re.compile(r"(?:^|/)(?:o\d|gpt-[5-9]|codex)")  # models that refuse nothing by being asked for their thoughts


class Outcome(NamedTuple):
    """What a model is told of its call."""

    text: str
    failed: bool = False


class CallResult(NamedTuple):
    """The outcome of one call among others."""

    id: str
    name: str
    text: str
    failed: bool = False


def messages(results: Sequence[CallResult], format: str) -> list[dict[str, Any]]:
    """The messages that answer calls: all of them together, as providers want it."""
    match format:
        case "openai_chat":
            return [{"role": "tool", "tool_call_id": r.id, "content": r.text} for r in results]
        case "openai_responses":
            return [{"type": "function_call_output", "call_id": r.id, "output": r.text} for r in results]
        case "anthropic":
            blocks = [
                {"type": "tool_result", "tool_use_id": r.id, "content": r.text}
                | ({"is_error": True} if r.failed else {})
                for r in results
            ]
            return [{"role": "user", "content": blocks}] if blocks else []
        case "gemini":
            parts = [
                {
                    "functionResponse": identified(r.id)
                    | {"name": r.name, "response": {"error" if r.failed else "result": r.text}}
                }
                for r in results
            ]
            return [{"role": "user", "parts": parts}] if parts else []
    raise BadRequest(f"results of tools cannot be written in the format {format}")


def partial(text: str, format: str) -> list[dict[str, Any]]:
    """What the assistant had said when somebody cancelled."""
    if not text.strip():
        return []
    if format == "openai_responses":
        return [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]
    return [{"role": "assistant", "content": text}]


def asked(text: str, pictures: Sequence[Media], format: str) -> dict[str, Any]:
    """What a user typed, as a message, with the pictures that go with it. Raises `BadRequest`."""
    if not pictures:
        return {"role": "user", "content": text}
    blocks = [write_media(picture, format) for picture in pictures]
    if None in blocks:
        raise BadRequest("a picture is of a kind that providers do not take: PNG, JPEG, GIF and WebP are taken")
    words = {"type": "input_text" if format == "openai_responses" else "text", "text": text}
    return {"role": "user", "content": [words, *blocks]}


def frame(format: str, model: str, system: str, tools: Sequence[ToolDeclaration], limit: int) -> dict[str, Any]:
    """A request without its messages. Raises `BadRequest` for a format in which no agent of clew's speaks."""
    keys = {"openai_chat": "max_completion_tokens", "openai_responses": "max_output_tokens", "anthropic": "max_tokens"}
    if format not in keys:
        raise BadRequest(f"agents do not speak the format {format}: use {', '.join(keys)}")
    body: dict[str, Any] = {"model": model, keys[format]: limit}
    if format == "openai_responses":
        body["store"] = False
        if REASONS.search(model):  # it keeps no thoughts then: they come along sealed, and go back so
            body["include"] = ["reasoning.encrypted_content"]
    if system and format != "openai_chat":
        body["instructions" if format == "openai_responses" else "system"] = system
    return with_tools(body, format, tools)


def lead(format: str, system: str) -> list[dict[str, Any]]:
    """The system message, where it is one of the messages."""
    return [{"role": "system", "content": system}] if system and format == "openai_chat" else []
