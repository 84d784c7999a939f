"""Qwen Code: the MCP server and the hook in its settings."""

import json
import sys

from clew.installing.formats import EACH
from clew.installing.plugs import ClewCommand, ClientProgram, Plug, in_home, shell_line, starting_line


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
    run = {
        "name": "clew-gateway",
        "type": "command",
        "command": starting_line(clew, url, "qwen", _refusal),
        "timeout": 30_000,
    }
    values = {("hooks", "UserPromptSubmit", EACH): {"hooks": [run]}}
    return (Plug(in_home(".qwen", "QWEN_HOME"), ("settings.json",), values),)


def _refusal(why: str) -> str:
    """Without a screen it is silent about what it keeps back, and says soon that nobody answers."""
    return json.dumps({"systemMessage": why})


PROGRAM = ClientProgram(
    "qwen",
    "Qwen Code",
    in_home(".qwen"),
    ("settings.json",),
    gateway={("env", "OPENAI_BASE_URL"): "@/v1", ("env", "ANTHROPIC_BASE_URL"): "@"},
    paste=("export OPENAI_BASE_URL=@/v1", "qwen --auth-type openai"),
    project=(".qwen/settings.json",),
    variables=("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"),
    rivals=(("modelProviders",), ("security", "auth", "baseUrl")),
    plugs=plugs,
    starting=starting,
    refusal=_refusal,
)
