"""How the server is reached: by standard input and output, or by HTTP on this machine."""

import os
import socket

import uvicorn
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from clew.errors import BadRequest
from clew.mcp.library import Library
from clew.mcp.server import server

MCP_PATH = "/mcp"
OWN_HOSTS = ("127.0.0.1", "localhost", "[::1]")  # by which this machine is named to itself


async def serve_stdio(library: Library) -> None:
    """Answer on standard input and output until the client closes them; nothing else is written there."""
    made = server(library)
    try:
        if library.indexer:
            library.indexer.start()
        async with stdio_server() as (read, write):
            await made.run(read, write, made.create_initialization_options())
    finally:
        await library.close()


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
    app = server(library).streamable_http_app(streamable_http_path=MCP_PATH, transport_security=known)
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
