"""What an agent says to its model, in the wire format of its speaker."""

import re
from collections.abc import Sequence
from typing import Any

from clew.wire.convert.extras import with_tools
from clew.wire.formats import named, openai_responses
from clew.wire.formats.tools import ToolDeclaration

REASONS = re.compile(r"(?:^|/)(?:o\d|gpt-[5-9]|codex)")  # models that refuse nothing by being asked for their thoughts


def partial(text: str, format: str) -> list[dict[str, Any]]:
    """What the assistant had said when somebody cancelled."""
    return [named(format).begun(text)] if text.strip() else []


def frame(format: str, model: str, system: str, tools: Sequence[ToolDeclaration], limit: int) -> dict[str, Any]:
    """A request without its messages."""
    codec = named(format)
    body = {codec.model_key: model, **codec.with_parameters({"limit": limit}), **codec.fixed}
    if format == openai_responses.NAME and REASONS.search(model):
        body["include"] = ["reasoning.encrypted_content"]  # it keeps none: they come sealed, and go back so
    return with_tools(body | (codec.system(system) if system else {}), format, tools)
