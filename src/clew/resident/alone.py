"""The work of a resident in the process that a client started, where there is none: for one line, standard input."""

import asyncio
import os
import socket
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress

from clew.core.bridge import stay
from clew.resident.calling import Relay
from clew.resident.serving import ENDING, LONGEST_LINE

Talking = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def alone(talk: Talking) -> None:
    """Talk on standard input and output until its end; then this process ends."""
    own, line = socket.socketpair()
    failed: list[Exception] = []

    async def serve() -> None:
        stay()
        reader, writer = await asyncio.open_connection(sock=own, limit=LONGEST_LINE)
        try:
            await talk(reader, writer)
        except Exception as error:
            failed.append(error)
        finally:
            writer.close()

    work = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    work.start()
    with suppress(KeyboardInterrupt):
        Relay(line).run()
        work.join(ENDING)
    if failed:
        raise failed[0]
    os._exit(0)  # a thread may wait for more on standard input
