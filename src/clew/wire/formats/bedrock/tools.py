"""Tools of Converse."""

from collections.abc import Mapping
from typing import Any

from clew.wire.formats.plain import Block
from clew.wire.formats.tools import Choice, ToolDeclaration, object_at, plain_name


def read_choice(body: Mapping[str, Any]) -> Choice:
    """Which of its tools a body wants to be called."""
    match object_at(body, "toolConfig").get("toolChoice"):
        case {"tool": {"name": str(name)}}:
            return Choice(only=plain_name(name))
        case {"any": _}:
            return Choice("any")
        case {"auto": _}:
            return Choice("auto")
    return Choice()


def write_tools(tools: list[ToolDeclaration], choice: Choice) -> Block:
    """These tools as a body declares them, with the choice among them."""
    config: Block = {"tools": [{"toolSpec": {**t.about, "inputSchema": {"json": t.takes}}} for t in tools]}
    if choice.only:
        config["toolChoice"] = {"tool": {"name": choice.only}}
    elif choice.mode in ("auto", "any"):  # that no tool may be called cannot be said here
        config["toolChoice"] = {choice.mode: {}}
    return {"toolConfig": config}
