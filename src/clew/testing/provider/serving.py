"""A small HTTP server on loopback that sends replies at the pace they ask for; it knows no provider."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any


@dataclass(frozen=True, slots=True)
class ServedRequest:
    """One request, as it came over the wire; the names of headers are in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    raw: bytes


@dataclass(frozen=True, slots=True)
class ServedReply:
    """What is sent, and how: `parts` that are a stream go out as they come."""

    status: int
    parts: Iterable[bytes]
    streamed: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0  # before anything is sent
    packet: int | None = None  # bytes at once; else part by part
    pause: float = 0  # seconds after each
    cut: int | None = None  # the connection ends after so many bytes


class LoopbackServer:
    """Answers every request by a function, each in a thread of its own, from `start` to `stop`."""

    def __init__(self, answer: Callable[[ServedRequest], ServedReply]) -> None:
        self._answer = answer
        self._over = Event()

    def start(self) -> None:
        """Listen on a free port of the loopback address."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # whose chunks tell a stream that was cut from one that ended

            def do_GET(self) -> None:
                server._serve(self)

            def do_POST(self) -> None:
                server._serve(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = _Listener(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self) -> None:
        """Close the port; whoever waits between two parts waits no longer."""
        self._over.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def _serve(self, request: BaseHTTPRequestHandler) -> None:
        raw = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        path, _, query = request.path.partition("?")
        asked = {name.lower(): value for name, value in request.headers.items()}
        reply = self._answer(ServedRequest(request.command, path, query, asked, raw))
        self._over.wait(reply.seconds)
        if reply.streamed:
            parts = reply.parts
            headers = {"Content-Type": "text/event-stream; charset=utf-8", "Transfer-Encoding": "chunked"}
        else:
            parts = [b"".join(reply.parts)]
            headers = {"Content-Type": "application/json", "Content-Length": str(len(parts[0]))}
        request.send_response(reply.status)
        for name, value in {**headers, **reply.headers, "Connection": "close"}.items():
            request.send_header(name, value)
        request.end_headers()
        self._write(request, reply, _packets(parts, reply.packet))

    def _write(self, request: BaseHTTPRequestHandler, reply: ServedReply, packets: Iterator[bytes]) -> None:
        left = reply.cut
        for whole in packets:
            packet = whole if left is None else whole[:left]
            left = None if left is None else left - len(packet)
            framed = b"%x\r\n%b\r\n" % (len(packet), packet) if reply.streamed else packet
            request.wfile.write(framed if packet else b"")
            if left == 0:
                return
            self._over.wait(reply.pause)
        if reply.streamed:
            request.wfile.write(b"0\r\n\r\n")


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def _packets(parts: Iterable[bytes], size: int | None) -> Iterator[bytes]:
    if size is None:
        yield from parts
        return
    whole = b"".join(parts)
    yield from (whole[i : i + size] for i in range(0, len(whole), size))
