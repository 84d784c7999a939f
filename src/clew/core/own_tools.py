"""The names under which clients know clew's own tools: what stands in their answers was said before."""

SUMMARY_LINE = "[clew log "  # how the line begins by which clew signs a summary that it gives a client
_PREFIXES = ("mcp__clew__", "mcp_clew_", "clew__", "clew_")  # of MCP servers and plugins
_NAMES = ("search_history",)  # as clew offers it itself; others have a tool named recall, too


def is_own_tool(name: str) -> bool:
    """Whether a call of this name asks clew."""
    return name.startswith(_PREFIXES) or name in _NAMES
