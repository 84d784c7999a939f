"""MCP servers of a chat: where they are declared, how they are started and called."""
