"""What a host adds to a body that a client made: tools of its own, and a word at the very end; what it asks for."""

from collections.abc import Mapping, Sequence
from typing import Any

from clew.core.items import Frame
from clew.errors import BadRequest
from clew.wire.convert.tools import declared
from clew.wire.formats import named
from clew.wire.formats.plain import Block
from clew.wire.formats.tools import ToolDeclaration


def answer_of(frame: Frame) -> int:
    """Tokens that a request asks for and that its provider adds to what it reads; 0 where it adds none."""
    asked = (frame.body.get(key) for key in named(frame.format).counted_answer)
    return next((n for n in asked if isinstance(n, int) and not isinstance(n, bool) and n > 0), 0)


def with_tools(body: Mapping[str, Any], format: str, tools: Sequence[ToolDeclaration]) -> Block:
    """The body with these tools after its own. Raises `BadRequest` where it has one of the same name."""
    if not tools:
        return dict(body)
    if taken := declared(body, format) & {tool.name for tool in tools}:
        raise BadRequest(
            f"the request has its own tools named {', '.join(sorted(taken))}: rename them, or do not offer clew's"
        )
    return named(format).with_tools(body, list(tools))


def with_tail(body: Mapping[str, Any], format: str, text: str) -> Block:
    """The body with a trailing system message, or a trailing text of the user's where its format forbids one."""
    codec = named(format)
    said = body.get(codec.LIST) or []
    messages: list[Any] = [{"role": "user", "content": said}] if isinstance(said, str) else list(said)
    return {**body, codec.LIST: codec.with_tail(messages, text)}
