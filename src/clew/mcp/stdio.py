"""The server on a line: a message a line, answered as soon as its answer is known."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from clew.errors import ClewError
from clew.mcp.server import McpError, McpServer

if TYPE_CHECKING:
    from clew.mcp.library import Library

LONGEST_MESSAGE = 4 << 20  # bytes of a message: what is asked is short
PART = 1 << 16
AT_ONCE = 16  # requests that are worked on
LAST_ANSWERS = 5.0  # seconds for what was asked before the client closed its end
PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603


async def serve_lines(
    make: "Callable[[], Library]", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer until the client closes its end, or goes."""
    library = cache(make)
    answering = _Conversation(McpServer(library), writer)
    begun = False
    try:
        async for line in _lines(reader):
            answering.hear(line)
            if answering.is_open and not begun:  # the client has what it waited for: imports take a moment
                begun = True
                with suppress(ClewError):  # whoever asks something is told so
                    if indexer := (await asyncio.to_thread(library)).indexer:
                        indexer.start()
        await answering.end(LAST_ANSWERS)
    finally:
        await answering.end()


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """What comes, line by line; one that is too long comes in parts."""
    rest = b""
    while part := await reader.read(PART):
        *whole, rest = (rest + part).split(b"\n")
        for line in whole:
            yield line
        if len(rest) > LONGEST_MESSAGE:
            yield rest
            rest = b""


class _Conversation:
    """Requests of one client, several at a time."""

    def __init__(self, server: McpServer, writer: asyncio.StreamWriter) -> None:
        self._server, self._writer = server, writer
        self._asked: dict[str | int, asyncio.Task[None]] = {}
        self._turn = asyncio.Semaphore(AT_ONCE)
        self.is_open = False  # the client has read what the server is

    def hear(self, line: bytes) -> None:
        """Take a message; its answer is written when it is known."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            if line.strip():
                self._write({"id": None, "error": {"code": PARSE_ERROR, "message": "this is no JSON"}})
            return
        method = message.get("method") if isinstance(message, dict) else None
        params = message.get("params") if isinstance(message, dict) else None
        params = params if isinstance(params, Mapping) else {}
        id = message.get("id") if isinstance(message, dict) else None
        if isinstance(message, dict) and method is None and ("result" in message or "error" in message):
            return  # nothing was asked of it
        if not isinstance(method, str) or (id is not None and not isinstance(id, str | int)):
            self._write({"id": None, "error": {"code": INVALID_REQUEST, "message": "this is no request"}})
        elif id is not None:
            self.is_open |= method == "tools/call"
            self._asked[id] = asyncio.create_task(self._answer(id, method, params))
        elif method == "notifications/cancelled":
            wanted = params.get("requestId")
            if isinstance(wanted, str | int) and wanted in self._asked:
                self._asked[wanted].cancel()
        elif method == "notifications/initialized":
            self.is_open = True

    async def _answer(self, id: str | int, method: str, params: Mapping[str, Any]) -> None:
        try:
            async with self._turn:
                self._write({"id": id, "result": await self._server.answer(method, params)})
        except McpError as error:
            self._write({"id": id, "error": {"code": error.code, "message": str(error)}})
        except Exception as error:  # one request that fails ends no conversation
            self._write(
                {"id": id, "error": {"code": INTERNAL_ERROR, "message": f"clew failed ({type(error).__name__})"}}
            )
        finally:
            self._asked.pop(id, None)

    async def end(self, patience: float = 0) -> None:
        """Let nothing be under way any more, after so many seconds."""
        if tasks := [*self._asked.values()]:
            _, late = await asyncio.wait(tasks, timeout=patience)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _write(self, message: Mapping[str, Any]) -> None:
        self._writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
