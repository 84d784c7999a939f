"""What a host adds to a body that a client made: tools of its own, and a word at the very end; what it asks for."""

from collections.abc import Mapping, Sequence
from typing import Any

from clew.core.items import Frame
from clew.errors import BadRequest
from clew.wire.convert.tools import Choice, ToolDeclaration, declared, tool_item, written
from clew.wire.formats import named
from clew.wire.formats.plain import Block

# The formats whose providers refuse a request that does not fit together with the answer it asks for.
ADDED = {"openai_chat": ("max_completion_tokens", "max_tokens"), "anthropic": ("max_tokens",)}


def answer_of(frame: Frame) -> int:
    """Tokens that a request asks for and that its provider adds to what it reads; 0 where it adds none."""
    asked = (frame.body.get(key) for key in ADDED.get(frame.format, ()))
    return next((n for n in asked if isinstance(n, int) and not isinstance(n, bool) and n > 0), 0)


def with_tools(body: Mapping[str, Any], format: str, tools: Sequence[ToolDeclaration]) -> Block:
    """The body with these tools after its own. Raises `BadRequest` where it has one of the same name."""
    if not tools:
        return dict(body)
    if taken := declared(body, format) & {tool.name for tool in tools}:
        raise BadRequest(
            f"the request has its own tools named {', '.join(sorted(taken))}: rename them, or do not offer clew's"
        )
    new = written(list(tools), Choice(), format)
    if format == "bedrock":
        config = body.get("toolConfig") or {}
        return {**body, "toolConfig": {**config, "tools": [*config.get("tools", ()), *new["toolConfig"]["tools"]]}}
    if not body.get("tools") and (place := tool_item(body, format)) is not None:
        items = list(body["input"])
        items[place] = {**items[place], "tools": [*(items[place].get("tools") or ()), *new["tools"]]}
        return {**body, "input": items}
    return {**body, "tools": [*(body.get("tools") or ()), *new["tools"]]}


def with_tail(body: Mapping[str, Any], format: str, text: str) -> Block:
    """The body with a trailing system message, or a trailing text of the user's where its format forbids one.

    Nothing may follow the item with which a client has its provider compact.
    """
    key = named(format).LIST
    said = body.get(key) or []
    messages: list[Any] = [{"role": "user", "content": said}] if isinstance(said, str) else list(said)
    match format:
        case "openai_responses" if messages and messages[-1].get("type") == "compaction_trigger":
            return dict(body)
        case "openai_chat" | "openai_responses":
            return {**body, key: [*messages, {"role": "system", "content": text}]}
        case "gemini":  # results must stand by themselves there
            return {**body, key: [*messages, {"role": "user", "parts": [{"text": text}]}]}
    block = {"text": text} if format == "bedrock" else {"type": "text", "text": text}
    if not messages or messages[-1].get("role") != "user":
        return {**body, key: [*messages, {"role": "user", "content": [block]}]}
    last = messages[-1]
    content = last.get("content") or []
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    return {**body, key: [*messages[:-1], {**last, "content": [*blocks, block]}]}
