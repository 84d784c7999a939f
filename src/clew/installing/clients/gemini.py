"""Gemini CLI: the MCP server and the hooks in its settings.

It says when it is about to compress a history, and takes nothing then. So what was dropped is put back with the first
result of a tool that follows, or with the next prompt.
"""

import json
import sys

from clew.installing.formats import EACH, dotenv
from clew.installing.plugs import ClewCommand, ClientProgram, Plug, in_home, shell_line, starting_line

EVENTS = {"PreCompress": "*", "BeforeAgent": "*", "AfterTool": ".*"}  # each with what it is to match


def plugs(clew: ClewCommand) -> tuple[Plug, ...]:
    """What has to be where."""
    line = shell_line(*clew, "hook", PROGRAM.name, platform=sys.platform)
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
        "command": starting_line(clew, url, PROGRAM.name, _refusal),
        "timeout": 30_000,
    }
    values = {("hooks", "BeforeAgent", EACH): {"matcher": "*", "hooks": [run]}}
    return (Plug(in_home("", "GEMINI_CLI_HOME"), (".gemini/settings.json",), values),)


def _refusal(why: str) -> str:
    return json.dumps({"decision": "deny", "reason": why})


PROGRAM = ClientProgram(
    "gemini",
    "Gemini CLI",
    in_home("", "GEMINI_CLI_HOME"),
    (".gemini/.env", ".env", ".gemini/.env"),  # one file is read: a new one would hide the other
    dotenv,
    {("GOOGLE_GEMINI_BASE_URL",): "@"},
    paste=("export GOOGLE_GEMINI_BASE_URL=@", "gemini"),
    project=(".gemini/.env", ".env"),
    hides=True,
    variables=("GOOGLE_GEMINI_BASE_URL",),
    note="Gemini CLI reads this in folders it trusts, and uses it with an API key, not with a Google login",
    plugs=plugs,
    starting=starting,
    refusal=_refusal,
)
