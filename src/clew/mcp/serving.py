"""The server by HTTP, on this machine, with the protocol's SDK."""

import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from clew import __version__
from clew.errors import BadRequest
from clew.mcp.library import Library
from clew.mcp.server import ABOUT, SERVER_NAME, McpError, McpServer
from clew.mcp.tools import prompt_text

MCP_PATH = "/mcp"
OWN_HOSTS = ("127.0.0.1", "localhost", "[::1]")  # by which this machine is named to itself

R = TypeVar("R", bound=BaseModel)


def by_sdk(library: Library) -> Server[Any]:
    """The server as the protocol's SDK runs it."""
    made = McpServer(lambda: library)

    def answering(method: str, kind: type[R]) -> Callable[[Any, Any], Awaitable[R]]:
        async def answer(context: Any, asked: Any) -> R:
            params = asked.model_dump(by_alias=True, mode="json", exclude_none=True) if asked else {}
            try:
                return kind.model_validate(await made.answer(method, params))
            except McpError as error:
                raise MCPError(error.code, str(error)) from None

        return answer

    return Server(
        SERVER_NAME,
        version=__version__,
        title=SERVER_NAME,
        description=ABOUT,
        instructions=prompt_text("server"),
        on_list_tools=answering("tools/list", types.ListToolsResult),
        on_call_tool=answering("tools/call", types.CallToolResult),
        on_list_resources=answering("resources/list", types.ListResourcesResult),
        on_list_resource_templates=answering("resources/templates/list", types.ListResourceTemplatesResult),
        on_read_resource=answering("resources/read", types.ReadResourceResult),
        on_list_prompts=answering("prompts/list", types.ListPromptsResult),
        on_get_prompt=answering("prompts/get", types.GetPromptResult),
    )


def listen(host: str, port: int) -> socket.socket:
    """A socket on this machine only. Raises `BadRequest`."""
    if host not in ("127.0.0.1", "localhost", "::1"):
        raise BadRequest(f"{host or 'every address'} can be reached from elsewhere: clew mcp serves 127.0.0.1 only")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise BadRequest(f"cannot listen on {host}, port {port} ({why}): choose another with --port") from None


async def serve_http(library: Library, listener: socket.socket) -> None:
    """Answer by streamable HTTP, to programs of this machine that name it as such, until it is ended."""
    port = listener.getsockname()[1]
    known = TransportSecuritySettings(
        allowed_hosts=[f"{host}:{port}" for host in OWN_HOSTS],
        allowed_origins=[f"http://{host}:{port}" for host in OWN_HOSTS],
    )
    app = by_sdk(library).streamable_http_app(streamable_http_path=MCP_PATH, transport_security=known)
    config = uvicorn.Config(
        app, lifespan="on", ws="none", access_log=False, log_level="critical", timeout_graceful_shutdown=1
    )
    try:
        if library.indexer:
            library.indexer.start()
        await uvicorn.Server(config).serve(sockets=[listener])
    finally:
        listener.close()
        await library.close()
