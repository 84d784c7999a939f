"""The formats there are, and which one a body is written in."""

from collections.abc import Mapping, Sequence
from typing import Any

from clew.core import extensions
from clew.errors import BadRequest
from clew.wire.formats import anthropic, bedrock, gemini, openai_chat, openai_responses
from clew.wire.formats.anthropic import Anthropic
from clew.wire.formats.base import Format
from clew.wire.formats.bedrock import Bedrock
from clew.wire.formats.gemini import Gemini
from clew.wire.formats.openai_chat import OpenAIChat
from clew.wire.formats.openai_responses import OpenAIResponses

FORMATS: dict[str, Format] = {
    one.NAME: one for one in (OpenAIChat(), Anthropic(), OpenAIResponses(), Bedrock(), Gemini())
}

PROVIDERS = {one.provider.kind: one.provider for one in FORMATS.values() if one.provider}

AMBIGUOUS = openai_chat.NAME  # what a body of plain text counts as


def named(format: str) -> Format:
    """The format of that name."""
    if format not in FORMATS:
        raise BadRequest(f"unknown format {format!r}: use one of {', '.join(FORMATS)}")
    return FORMATS[format]


def add(name: str) -> None:
    """Take in the format that an installed package brings under this name."""
    if name not in FORMATS:
        made = extensions.brought(extensions.FORMATS, name)
        if not isinstance(made, Format) or name != made.NAME:
            raise BadRequest(f"the entry point {name!r} in {extensions.FORMATS} makes no format of that name")
        FORMATS[name] = made


def detect(body: Mapping[str, Any]) -> str:
    """The format a body is written in; plain text fits several and counts as OpenAI's chat."""
    if not isinstance(body, Mapping):
        raise BadRequest(f"the body: expected an object with `messages`, got {type(body).__name__}")
    if "messages" not in body and "input" in body:
        return openai_responses.NAME
    if "contents" in body:
        return gemini.NAME
    if "modelId" in body or "toolConfig" in body or any(_is_converse(m) for m in _objects(body.get("messages"))):
        return bedrock.NAME
    if "system" in body or "anthropic_version" in body or any("input_schema" in t for t in _objects(body.get("tools"))):
        return anthropic.NAME
    for message in _objects(body.get("messages")):
        if message.get("role") in ("tool", "developer", "function") or "tool_calls" in message:
            return openai_chat.NAME
        if any(str(block.get("type")) not in _OPENAI_PARTS for block in _objects(message.get("content"))):
            return anthropic.NAME
    claude = "claude" in str(body.get("model")) and "max_tokens" in body
    return anthropic.NAME if claude else AMBIGUOUS


def detect_list(messages: Sequence[Any]) -> str:
    """The format of a history by itself."""
    for message in _objects(list(messages)):
        if "parts" in message:
            return gemini.NAME
        if "role" not in message and "type" in message:
            return openai_responses.NAME
        if any(
            str(b.get("type")).startswith(("input_t", "input_i", "output_")) for b in _objects(message.get("content"))
        ):
            return openai_responses.NAME
    return detect({"messages": list(messages)})


_OPENAI_PARTS = frozenset({"text", "image_url", "input_audio", "file", "refusal"})


def _is_converse(message: Mapping[str, Any]) -> bool:
    """Blocks without a `type`, each under the key that names it."""
    content = message.get("content")
    if type(content) is str or (
        type(content) is list and content and type(content[0]) is dict and "type" in content[0]
    ):
        return False
    blocks = _objects(content)
    return bool(blocks) and all("type" not in b and len(b) == 1 for b in blocks)


def _objects(value: Any) -> list[Mapping[str, Any]]:
    found = value if isinstance(value, list | tuple) else ()
    return [v for v in found if type(v) is dict or isinstance(v, Mapping)]
