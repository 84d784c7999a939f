"""Tools of MCP servers, as the agent calls them; and the servers of a chat together."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.agent.tools import RESULT_CHARACTERS, Arguments, Plan, Tool
from clew.agent.tools.bounds import bounded
from clew.chat.servers.declared import ServerDeclaration
from clew.chat.servers.naming import tool_name
from clew.errors import ToolError

if TYPE_CHECKING:
    from clew.chat.servers.connection import ServerConnection

MOST_TOOLS = 100  # of all servers together: OpenAI takes 128 in a request, and clew has some of its own
DESCRIPTION_CHARACTERS = 2_000
SCHEMA_CHARACTERS = 20_000
COMBINED = ("anyOf", "oneOf", "allOf")  # refused by providers at the top of a schema; the server checks them itself


@dataclass(frozen=True, slots=True)
class ServerTool(Tool):
    """A tool of an MCP server. Its server says what fits it, and checks that itself."""

    rule: str = ""  # what is written down where a user allows it for good: another server has another one

    async def plan(self, arguments: Arguments) -> Plan:
        if not isinstance(arguments, Mapping):
            raise ToolError(f"{self.name}: arguments must be a JSON object")
        plan: Plan = await self.planning(arguments)
        return plan


@dataclass(slots=True)
class ChatServer:
    """A server, and what came of starting it."""

    declared: ServerDeclaration
    state: str = "not started"
    tools: tuple[ServerTool, ...] = ()


class ChatServers:
    """The MCP servers of a chat; they end with it."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.all: list[ChatServer] = []
        self._folder = folder
        self._env = env
        self._connections: list[ServerConnection] = []

    @property
    def tools(self) -> list[ServerTool]:
        return [tool for server in self.all for tool in server.tools]

    async def start(self, declared: Iterable[ServerDeclaration]) -> list[str]:
        """Start servers, all at once; what is to be told of them, a line each."""
        new = [ChatServer(each) for each in declared]
        tried = [server.declared for server in new]
        self.all = [*(server for server in self.all if server.declared not in tried), *new]
        if new and find_spec("mcp") is None:
            for server in new:
                server.state = "needs pip install 'clew[mcp]'"
            return ["MCP servers need a package that is not installed: pip install 'clew[mcp]'"]
        if new:
            await asyncio.to_thread(import_module, "clew.chat.servers.connection")  # it takes seconds
        started = await asyncio.gather(*map(self._start, new))
        return [self._told(server, connection) for server, connection in zip(new, started, strict=True)]

    async def _start(self, server: ChatServer) -> "ServerConnection | None":
        from clew.chat.servers.connection import ServerConnection

        try:
            connection = ServerConnection(server.declared.filled(self._env), self._folder)
            self._connections.append(connection)
            await connection.start()
        except (ToolError, ValueError) as error:
            server.state = f"failed: {error}"
            return None
        server.state = "runs"
        return connection

    def _told(self, server: ChatServer, connection: "ServerConnection | None") -> str:
        """Take the tools of a server, in the order in which servers are declared, and say what came of it."""
        name = server.declared.name
        if connection is None:
            return f"MCP server {name} {server.state}"
        offered = {tool_name(name, tool.name): tool for tool in connection.tools}
        short = [own for own, tool in offered.items() if len(json.dumps(tool.input_schema)) <= SCHEMA_CHARACTERS]
        taken = short[: max(0, MOST_TOOLS - len(self.tools))]
        server.tools = tuple(self._tool(own, offered[own], server, connection) for own in taken)
        left = len(connection.tools) - len(taken)
        beside = f"; {left} left out, because they are too many, too long or listed twice" if left else ""
        return f"MCP server {name}: {len(taken)} {'tool' if len(taken) == 1 else 'tools'}{beside}"

    def _tool(self, own: str, tool: Any, server: ChatServer, connection: "ServerConnection") -> ServerTool:
        async def plan(arguments: Arguments) -> Plan:
            async def work() -> str:
                return bounded(await connection.call(tool.name, arguments), RESULT_CHARACTERS)

            given = json.dumps(arguments, ensure_ascii=False, indent=1)
            return Plan(f"{tool.name} of the MCP server {server.declared.name}\n{given}", work)

        schema = {key: value for key, value in tool.input_schema.items() if key not in COMBINED}
        return ServerTool(
            own,
            (tool.description or tool.title or tool.name)[:DESCRIPTION_CHARACTERS],
            {"properties": {}, **schema, "type": "object"},
            "run",
            plan,
            f"{own} of {server.declared.reached}",
        )

    async def close(self) -> None:
        """End all of them."""
        await asyncio.gather(*(connection.close() for connection in self._connections))
        self._connections.clear()
