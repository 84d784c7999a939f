"""The server under the gateway: uvicorn, with the fastest loop and parser there are."""

import asyncio
import os
import socket
import threading
from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.util import find_spec
from types import FrameType, TracebackType
from typing import Any

import uvicorn

from clew.errors import BadRequest, ClewError
from clew.gateway.app import Gateway
from clew.gateway.connection import connection

BACKLOG = 1_024

Asgi = Callable[[Any, Any, Any], Awaitable[None]]


def loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the fastest event loop that is installed; None: Python's own."""
    return import_module("uvloop").new_event_loop if find_spec("uvloop") else None


def listening(host: str, port: int, options: str = "--port or --host") -> socket.socket:
    """A socket that listens. Raises `BadRequest`, with the options of the command that choose another place."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise BadRequest(f"cannot listen on {host}, port {port} ({why}): choose another with {options}") from None


class _EndingServer(uvicorn.Server):
    """A server that says when it ends, to those whose answers would have no end, and ends at once.

    uvicorn asks itself ten times a second whether it should end, and waits a tenth of a second where nobody is left.
    """

    def __init__(self, config: uvicorn.Config, ending: Callable[[], None]) -> None:
        super().__init__(config)
        self._ending, self._end = ending, asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def end(self) -> None:
        """Take no more requests and stop; from any thread."""
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._end.set)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self.end()

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        if not await self.on_tick(0):
            await self._end.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ending()
        state = self.server_state
        for listener in (*self.servers, *(sockets or ())):
            listener.close()
        for client in list(state.connections):
            client.shutdown()
        try:
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                pause = 0.001
                while (state.connections or state.tasks) and not self.force_exit:
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, 0.1)
        except TimeoutError:
            for task in state.tasks:
                task.cancel()
        if not self.force_exit:
            await self.lifespan.shutdown()


def server(
    app: Asgi,
    silence: float,
    host: str = "127.0.0.1",
    port: int = 0,
    graceful: int = 30,
    ending: Callable[[], None] = lambda: None,
) -> _EndingServer:
    """A server for a gateway, or for what stands around one; `silence` are the seconds in which something must come.

    It stops taking requests when it is told to end, calls `ending`, and waits `graceful` seconds for those that are
    being answered.
    """
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=connection(silence),
        ws="none",
        lifespan="on",
        access_log=False,
        log_level="critical",
        server_header=False,
        date_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=graceful,
    )
    return _EndingServer(config, ending)


class GatewayThread:
    """A gateway on a free port of loopback, in a thread of its own, for a `with` block; or an app around it."""

    def __init__(self, gateway: Gateway, around: Asgi | None = None) -> None:
        self._app, self._silence = around or gateway, gateway.settings.client_silence

    def __enter__(self) -> str:
        listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        self._server = server(self._app, self._silence, graceful=1)
        self._thread = threading.Thread(target=self._run, args=(listener,), name="clew-gateway")
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            threading.Event().wait(0.005)
        if not self._server.started:
            listener.close()
            raise ClewError("the gateway did not start; why is above")
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.end()
        self._thread.join()

    def _run(self, listener: socket.socket) -> None:
        with asyncio.Runner(loop_factory=loop()) as runner:
            runner.run(self._server.serve(sockets=[listener]))
