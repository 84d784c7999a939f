"""Crush: the MCP server, and the hook that tells its agent how full the window is, in its settings."""

import sys
from pathlib import Path

from clew.config import Places
from clew.installing.formats import EACH
from clew.installing.plugs import ClewCommand, ClientProgram, Plug, in_config, shell_line


def plugs(clew: ClewCommand) -> tuple[Plug, ...]:
    """What has to be where."""
    server = {"type": "stdio", "command": clew[0], "args": [*clew[1:], "mcp"]}
    hook = {"command": shell_line(*clew, "hook", "crush", platform=sys.platform), "timeout": 10}
    values = {("mcp", "clew"): server, ("hooks", "PreToolUse", EACH): hook}
    return (Plug(settings_folder, ("crush.json",), values),)


def settings_folder(places: Places) -> Path:
    """The folder that the user's settings of Crush are in."""
    if said := places.env.get("CRUSH_GLOBAL_CONFIG"):
        return Path(said)
    if places.platform == "win32" and not places.env.get("XDG_CONFIG_HOME"):
        return Path(places.env.get("LOCALAPPDATA") or places.home / "AppData" / "Local") / "crush"
    return in_config("crush")(places)


PROGRAM = ClientProgram(
    "crush",
    "Crush",
    settings_folder,
    ("crush.json",),
    gateway={
        ("providers", "anthropic", "base_url"): "@",
        ("providers", "openai", "base_url"): "@/v1",
        ("providers", "gemini", "base_url"): "@",
    },
    project=(".crush.json", "crush.json"),
    plugs=plugs,
)
