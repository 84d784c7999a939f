"""MCP servers for a chat to call: one by the SDK, started with `python mcp_servers.py`, and one that behaves badly."""

import json
import os
import sys
from pathlib import Path
from typing import Any

HOSTILE = "\x1b[2J\x1b]0;pwned\x07 [bold]loud[/bold] \u202eright to left"


def well_behaved() -> Any:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("reports")

    @server.tool()
    def shout(text: str) -> str:
        """Say it loudly."""
        return f"{text.upper()} {HOSTILE}"

    @server.tool()
    def fail() -> str:
        """Always fails."""
        raise ValueError("no paper left")

    return server


def badly_behaved() -> None:
    """Speak the protocol with no SDK: tools with odd names, of which one is too long and one answers endlessly much."""
    schema = {"type": "object", "anyOf": [{"required": ["a"]}]}
    names = ["read file/ütf", "x" * 200, "x" * 199 + "y", "read file/ütf"]
    tools = [{"name": name, "description": "d" * 9_000, "inputSchema": schema} for name in names]
    tools.append({"name": "huge", "inputSchema": {"type": "object", "title": "t" * 30_000}})
    for line in sys.stdin:
        asked = json.loads(line)
        match asked.get("method"):
            case "initialize":
                given = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
                came: Any = {"result": given | {"serverInfo": {"name": "bad", "version": "1"}}}
            case "tools/list":
                came = {"result": {"tools": tools}}
            case "tools/call":
                came = {"result": {"content": [{"type": "text", "text": "many " * 20_000}]}}
            case _:
                came = {"error": {"code": -32601, "message": "no such method"}}
        if "id" in asked:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **came}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    if noted := os.environ.get("PID_FILE"):
        Path(noted).write_text(str(os.getpid()))
    if "bad" in sys.argv:
        badly_behaved()
    elif "silent" in sys.argv:
        sys.stdin.read()
    elif "broken" in sys.argv:
        sys.exit("the reports are on paper")
    else:
        well_behaved().run()
