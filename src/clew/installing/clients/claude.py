"""Claude Code: the MCP server in the file where it keeps its own, hooks and status line in its settings, and the mod.

The mod, which compacts, is in the folder of skills, where the client looks for plugins of the user's own. Versions that
know no mods pass over it.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from clew.config import Places
from clew.installing.clients.scripts import mod
from clew.installing.formats import EACH, own_file
from clew.installing.plugs import ClewCommand, ClientProgram, Plug, in_home, shell_line, starting_line

ABOUT = "Compacts without a model, or beside its summary, and loses nothing: what was said is recalled by its id."
SETTINGS = in_home(".claude", "CLAUDE_CONFIG_DIR")
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
        Plug(SETTINGS, ("settings.json",), hooks, gentle=frozenset({("statusLine",)})),
        *(Plug(SETTINGS, (f"skills/clew/{name}",), {own_file.OWN_TEXT: text}, own_file) for name, text in _mod(clew)),
    )


def _mod(clew: ClewCommand) -> Iterator[tuple[str, str]]:
    """The files of the plugin."""
    about = {"name": "clew", "description": ABOUT}
    yield ".claude-plugin/plugin.json", json.dumps(about, indent=2) + "\n"
    yield "hooks/hooks.json", json.dumps({"modules": ["./register.js"]}, indent=2) + "\n"
    yield "hooks/register.js", mod(clew)


def starting(clew: ClewCommand, url: str) -> tuple[Plug, ...]:
    """What starts the gateway before it is asked."""
    run = {"type": "command", "command": starting_line(clew, url, "claude"), "timeout": 30}
    hooks = {("hooks", "UserPromptSubmit", EACH): {"hooks": [run]}}
    return (Plug(SETTINGS, ("settings.json",), hooks),)


def _own_state(places: Places) -> Path:
    """The home folder, or the one that holds its settings if that is another."""
    said = places.env.get("CLAUDE_CONFIG_DIR")
    return places.path(said, places.folder) if said else places.home


PROGRAM = ClientProgram(
    "claude",
    "Claude Code",
    in_home(".claude", "CLAUDE_CONFIG_DIR"),
    ("settings.json",),
    gateway={("env", "ANTHROPIC_BASE_URL"): "@"},
    paste=("export ANTHROPIC_BASE_URL=@", "claude"),
    project=(".claude/settings.local.json", ".claude/settings.json"),
    rivals=(("env", "CLAUDE_CODE_USE_BEDROCK"), ("env", "CLAUDE_CODE_USE_VERTEX")),
    plugs=plugs,
    gets="clew's tools, hooks, and its compaction from 2.1.287 on",
    starting=starting,
)
