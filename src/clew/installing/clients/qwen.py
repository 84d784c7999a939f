"""Qwen Code: the MCP server and the hook in its settings."""

import sys

from clew.installing.formats import EACH
from clew.installing.plugs import ClewCommand, Plug, in_home, shell_line, starting_line


def plugs(clew: ClewCommand) -> tuple[Plug, ...]:
    """What has to be where."""
    line = shell_line(*clew, "hook", "qwen", platform=sys.platform)
    run = {"name": "clew", "type": "command", "command": line, "timeout": 30_000}
    values: dict[tuple[str, ...], object] = {
        ("mcpServers", "clew"): {"command": clew[0], "args": [*clew[1:], "mcp"]},
        ("hooks", "SessionStart", EACH): {"matcher": "compact", "hooks": [run]},
    }
    return (Plug(in_home(".qwen", "QWEN_HOME"), ("settings.json",), values),)


def starting(clew: ClewCommand, url: str) -> tuple[Plug, ...]:
    """What starts the gateway before it is asked."""
    run = {"name": "clew-gateway", "type": "command", "command": starting_line(clew, url, "qwen"), "timeout": 30_000}
    values = {("hooks", "UserPromptSubmit", EACH): {"hooks": [run]}}
    return (Plug(in_home(".qwen", "QWEN_HOME"), ("settings.json",), values),)
