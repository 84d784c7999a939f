"""Claude Code: the MCP server in the file where it keeps its own, the hooks and the status line in its settings."""

import sys
from pathlib import Path

from clew.config import Places
from clew.installing.formats import EACH
from clew.installing.plugs import ClewCommand, Plug, in_home, shell_line, starting_line

LARGE_RESULTS = "Bash|Grep|Glob|WebFetch|WebSearch|mcp__.*"  # not Read: its results are what edits go by


def plugs(clew: ClewCommand) -> tuple[Plug, ...]:
    """What has to be where."""

    def hook(matcher: str) -> dict[str, object]:
        line = shell_line(*clew, "hook", "claude", platform=sys.platform)
        return {"matcher": matcher, "hooks": [{"type": "command", "command": line, "timeout": 30}]}

    server = {"type": "stdio", "command": clew[0], "args": [*clew[1:], "mcp"]}
    status = {"type": "command", "command": shell_line(*clew, "hook", "claude-status", platform=sys.platform)}
    hooks = {
        ("hooks", "SessionStart", EACH): hook("compact"),
        ("hooks", "PostToolUse", EACH): hook(LARGE_RESULTS),
        ("statusLine",): status,
    }
    return (
        Plug(_own_state, (".claude.json",), {("mcpServers", "clew"): server}),
        Plug(in_home(".claude", "CLAUDE_CONFIG_DIR"), ("settings.json",), hooks, gentle=frozenset({("statusLine",)})),
    )


def starting(clew: ClewCommand, url: str) -> tuple[Plug, ...]:
    """What starts the gateway before it is asked."""
    run = {"type": "command", "command": starting_line(clew, url, "claude"), "timeout": 30}
    hooks = {("hooks", "UserPromptSubmit", EACH): {"hooks": [run]}}
    return (Plug(in_home(".claude", "CLAUDE_CONFIG_DIR"), ("settings.json",), hooks),)


def _own_state(places: Places) -> Path:
    """The home folder, or the one that holds its settings if that is another."""
    said = places.env.get("CLAUDE_CONFIG_DIR")
    return places.path(said, places.folder) if said else places.home
