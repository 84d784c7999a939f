"""A connection to one MCP server, by the protocol's SDK, which only this module imports: that takes seconds."""

import asyncio
import json
import math
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, TextIO

import anyio
import httpx2
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from clew import __version__
from clew.chat.servers.declared import ServerDeclaration
from clew.errors import ToolError

START_SECONDS = 30
CALL_SECONDS = 300
PAGES = 20  # of a list of tools
STDERR_CHARACTERS = 2_000  # the end of what a server wrote beside its answers


class ServerConnection:
    """A server from its start to its end, all in one task, as the SDK wants it."""

    def __init__(self, declared: ServerDeclaration, folder: Path) -> None:
        self.tools: list[types.Tool] = []
        self._declared = declared
        self._folder = folder
        self._client: Client | None = None
        self._stop = asyncio.Event()
        self._starting = anyio.CancelScope()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None
        self._stderr = ""

    async def start(self) -> None:
        """Connect, and learn which tools there are. Raises `ToolError`, in one line."""
        self._task = asyncio.create_task(self._live())
        await asyncio.shield(self._ready)

    async def close(self) -> None:
        """End the server; the SDK kills one that does not end by itself within seconds."""
        self._stop.set()
        if not self._ready.done():
            self._starting.cancel()
        if self._task:
            await asyncio.shield(self._task)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """What a tool answers, as text. Raises `ToolError`."""
        if self._client is None:
            raise ToolError(f"the MCP server {self._declared.name} has ended: start the chat again to start it")
        try:
            came = await self._client.call_tool(tool, dict(arguments), CALL_SECONDS)
        except Exception as error:
            raise ToolError(f"the MCP server {self._declared.name} did not answer: {_words(error)}") from error
        text = answered(came)
        if came.is_error:
            raise ToolError(text or "the tool failed, and did not say why")
        return text

    async def _live(self) -> None:
        try:
            self._starting.deadline = anyio.current_time() + START_SECONDS
            with self._starting as starting:
                async with self._connected() as client:
                    self.tools = await _listed(client)
                    starting.deadline = math.inf
                    self._client = client
                    if not self._ready.done():
                        self._ready.set_result(None)
                    await self._stop.wait()
                    self._client = None
            if starting.cancelled_caught and not self._stop.is_set():
                raise TimeoutError(f"it did not answer within {START_SECONDS} seconds")
        except Exception as error:
            if not self._ready.done():
                self._ready.set_exception(ToolError(self._why(error)))
        finally:
            self._client = None
            if not self._ready.done():
                self._ready.set_exception(ToolError("it was ended"))
            self._ready.exception()  # whoever started it may be gone

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        declared = self._declared
        info = types.Implementation(name="clew", version=__version__)
        if declared.url:
            timeout = httpx2.Timeout(START_SECONDS, read=CALL_SECONDS)
            async with (
                httpx2.AsyncClient(headers=dict(declared.headers), timeout=timeout) as http,
                Client(streamable_http_client(declared.url, http_client=http), client_info=info) as client,
            ):
                yield client
            return
        with self._errors() as log:
            command = StdioServerParameters(
                command=declared.command, args=list(declared.args), env=dict(declared.env), cwd=self._folder
            )
            command.encoding_error_handler = "replace"
            async with Client(stdio_client(command, log), client_info=info) as client:
                yield client

    @contextmanager
    def _errors(self) -> Iterator[TextIO]:
        """Where a server writes beside its answers: the end of it says why one did not start."""
        read, write = os.pipe()
        # Not waited for: something that the server left running may hold the other end.
        Thread(target=self._read, args=(read,), daemon=True).start()
        with os.fdopen(write, "w") as log:
            yield log

    def _read(self, end: int) -> None:
        with os.fdopen(end, encoding="utf-8", errors="replace") as lines:
            while piece := lines.readline(STDERR_CHARACTERS):
                self._stderr = (self._stderr + piece)[-STDERR_CHARACTERS:]

    def _why(self, error: BaseException) -> str:
        """Why it did not start, in one line, with the last that it wrote itself."""
        last = self._stderr.strip().rpartition("\n")[2]
        return f"{_words(error)} ({last})" if last else _words(error)


def _words(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(str(error).split()) or type(error).__name__


async def _listed(client: Client) -> list[types.Tool]:
    tools: list[types.Tool] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return tools


def answered(came: types.CallToolResult) -> str:
    """What a tool gave, as text; what is no text is named."""
    texts = [_text(block) for block in came.content]
    if not texts and came.structured_content is not None:
        texts = [json.dumps(came.structured_content, ensure_ascii=False)]
    return "\n".join(texts)


def _text(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            return resource.text
        case types.ResourceLink():
            return f"({block.name}: {block.uri})"
        case types.ImageContent() | types.AudioContent():
            return f"(a {block.type} of type {block.mime_type}, {len(block.data) * 3 // 4:,} bytes, which is not shown)"
    return f"({block.type}, which is not shown)"
