"""The names under which models know clew's own tools: what stands in their answers was said before."""

SUMMARY_LINE = "[clew log "  # how the line begins by which clew signs a summary that it gives a client
RECALL, SEARCH = "recall", "search_history"  # as clew offers them itself
_PREFIXES = ("mcp__clew__", "mcp__plugin_clew_clew__", "mcp_clew_", "clew__", "clew_")  # of MCP servers and plugins
_NAMES = (SEARCH,)  # others have a tool named recall, too


def is_own_tool(name: str) -> bool:
    """Whether a call of this name asks clew."""
    return name.startswith(_PREFIXES) or name in _NAMES


def is_own_recall(name: str) -> bool:
    """Whether a tool of this name recalls, by an MCP server or a plugin of clew's."""
    return name.startswith(_PREFIXES) and name.endswith(RECALL)
