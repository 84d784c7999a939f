"""Gemini CLI: the MCP server and the hooks in its settings.

It says when it is about to compress a history, and takes nothing then. So what was dropped is put back with the first
result of a tool that follows, or with the next prompt.
"""

import sys

from clew.installing.formats import EACH
from clew.installing.plugs import ClewCommand, Plug, in_home, shell_line, starting_line

EVENTS = {"PreCompress": "*", "BeforeAgent": "*", "AfterTool": ".*"}  # each with what it is to match


def plugs(clew: ClewCommand) -> tuple[Plug, ...]:
    """What has to be where."""
    line = shell_line(*clew, "hook", "gemini", platform=sys.platform)
    run = {"name": "clew", "type": "command", "command": line, "timeout": 30_000}
    values: dict[tuple[str, ...], object] = {
        ("mcpServers", "clew"): {"command": clew[0], "args": [*clew[1:], "mcp"]},
        **{("hooks", event, EACH): {"matcher": matcher, "hooks": [run]} for event, matcher in EVENTS.items()},
    }
    return (Plug(in_home("", "GEMINI_CLI_HOME"), (".gemini/settings.json",), values),)


def starting(clew: ClewCommand, url: str) -> tuple[Plug, ...]:
    """What starts the gateway before it is asked."""
    run = {
        "name": "clew-gateway",
        "type": "command",
        "command": starting_line(clew, url, "gemini"),
        "timeout": 30_000,
    }
    values = {("hooks", "BeforeAgent", EACH): {"matcher": "*", "hooks": [run]}}
    return (Plug(in_home("", "GEMINI_CLI_HOME"), (".gemini/settings.json",), values),)
