"""How a plugin reaches clew: one question a line on standard input, one answer a line on standard output."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, BinaryIO

from clew.core import rawjson
from clew.core.bridge import stay
from clew.errors import BadRequest, ClewError, SecretFound
from clew.exchange.thread import warn

Answering = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


async def converse(answer: Answering, source: BinaryIO, sink: BinaryIO) -> None:
    """Answer every line, several at once, until there are no more; what fails is said, and the plugin goes on alone."""
    stay()
    running = set[asyncio.Task[None]]()
    while line := await asyncio.to_thread(source.readline):
        task = asyncio.create_task(_answer(answer, line, sink))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)


async def _answer(answer: Answering, line: bytes, sink: BinaryIO) -> None:
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
    with suppress(BrokenPipeError):  # it ended, and what it asked is written down
        sink.write(rawjson.dumps(told) + b"\n")
        sink.flush()
