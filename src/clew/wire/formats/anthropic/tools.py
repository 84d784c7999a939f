"""Tools of Anthropic's."""

from collections.abc import Mapping
from typing import Any

from clew.wire.formats.plain import Block, string
from clew.wire.formats.tools import Choice, ToolDeclaration, object_at, plain_name


def read_choice(body: Mapping[str, Any]) -> Choice:
    """Which of its tools a body wants to be called."""
    choice = object_at(body, "tool_choice")
    alone = choice.get("disable_parallel_tool_use") is True
    if choice.get("type") == "tool":
        return Choice(only=plain_name(string(choice.get("name"))), alone=alone)
    return Choice(string(choice.get("type")), alone=alone)


def write_tools(tools: list[ToolDeclaration], choice: Choice) -> Block:
    """These tools as a body declares them, with the choice among them."""
    body: Block = {"tools": [{**t.about, "input_schema": t.takes} for t in tools]}
    wish = {"type": "tool", "name": choice.only} if choice.only else {"type": choice.mode or "auto"}
    if choice.alone and choice.mode != "none":
        wish["disable_parallel_tool_use"] = True  # type: ignore[assignment]
    return body | ({"tool_choice": wish} if choice != Choice() else {})
