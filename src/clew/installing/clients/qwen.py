"""Qwen Code: the MCP server and the hooks in its settings."""

from clew.installing.plugs import Command, Plug, in_home


def plugs(clew: Command) -> tuple[Plug, ...]:
    """What has to be where."""
    server = {"command": clew[0], "args": [*clew[1:], "mcp"]}
    return (Plug(in_home(".qwen"), ("settings.json",), {("mcpServers", "clew"): server}),)
