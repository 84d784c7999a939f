"""Tools of Chat Completions; Responses has the same words for which to call."""

from collections.abc import Mapping
from typing import Any

from clew.wire.formats.plain import Block
from clew.wire.formats.tools import Choice, ToolDeclaration, plain_name


def read_choice(body: Mapping[str, Any]) -> Choice:
    """Which of its tools a body wants to be called."""
    alone = body.get("parallel_tool_calls") is False
    match body.get("tool_choice", body.get("function_call")):
        case str(mode):
            return Choice({"required": "any", "auto": "auto", "none": "none"}.get(mode, ""), alone=alone)
        case {"function": {"name": str(name)}} | {"custom": {"name": str(name)}} | {"name": str(name)}:
            return Choice(only=plain_name(name), alone=alone)
        case {"allowed_tools": {"mode": "required"}} | {"type": "allowed_tools", "mode": "required"}:
            return Choice("any", alone=alone)
    return Choice(alone=alone)


def write_tools(tools: list[ToolDeclaration], choice: Choice) -> Block:
    """These tools as a body declares them, with the choice among them."""
    functions = [t.about | {"parameters": t.takes} | ({"strict": True} if t.strict else {}) for t in tools]
    body: Block = {"tools": [{"type": "function", "function": function} for function in functions]}
    only = {"type": "function", "function": {"name": choice.only}}
    return body | with_choice(choice, only)


def with_choice(choice: Choice, only: Block) -> Block:
    """The choice in OpenAI's words; `only` is how its API names the one tool."""
    alone = {"parallel_tool_calls": False} if choice.alone else {}
    if choice.only:
        return {"tool_choice": only, **alone}
    return ({"tool_choice": "required" if choice.mode == "any" else choice.mode} if choice.mode else {}) | alone
