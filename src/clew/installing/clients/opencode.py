"""opencode: the plugin in the folder where it looks for some, the MCP server in its settings."""

from clew.installing.clients.scripts import script
from clew.installing.formats import own_file
from clew.installing.plugs import ClewCommand, Plug, in_config


def plugs(clew: ClewCommand) -> tuple[Plug, ...]:
    """What has to be where."""
    folder = in_config("opencode")
    server = {"type": "local", "command": [*clew, "mcp"]}
    return (
        Plug(folder, ("plugin/clew.ts",), {own_file.OWN_TEXT: script("opencode", clew)}, own_file),
        Plug(folder, ("opencode.jsonc", "opencode.json"), {("mcp", "clew"): server}),
    )
