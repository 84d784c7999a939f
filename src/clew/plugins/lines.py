"""How a plugin reaches clew: one question a line, one answer a line."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from clew.core import rawjson
from clew.errors import BadRequest, ClewError, SecretFound
from clew.exchange.thread import warn

Answering = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


async def converse(answer: Answering, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer every line, several at once, until there are no more; what fails is said, and the plugin goes on alone."""
    running = set[asyncio.Task[None]]()
    try:
        while line := await reader.readline():
            task = asyncio.create_task(_answer(answer, line, writer))
            running.add(task)
            task.add_done_callback(running.discard)
    finally:
        await asyncio.gather(*running)  # also what a program asked that has ended: it is written down


async def _answer(answer: Answering, line: bytes, writer: asyncio.StreamWriter) -> None:
    told: dict[str, Any] = {}
    try:
        asked = rawjson.loads(line)
        if not isinstance(asked, dict):
            raise BadRequest("expected a JSON object a line")
        told = {"id": asked.get("id")}
        told |= await answer(asked)
    except SecretFound as error:  # somebody said that such a thing must not be sent
        told["refused"] = str(error)
    except Exception as error:
        warn("clew failed; the client goes on without it", error)
        told["failed"] = str(error) if isinstance(error, ClewError) else type(error).__name__
    writer.write(rawjson.dumps(told) + b"\n")
