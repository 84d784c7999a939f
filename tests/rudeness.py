"""Those who do not keep to HTTP: an upstream that says what it likes, and clients who stop in the middle."""

import json
import queue
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from clew.gateway.settings import GatewaySettings
from serving import Served, serving

Act = Callable[[socket.socket], None]
OK = b"HTTP/1.1 200 OK\r\n"
JSON = OK + b"content-type: application/json\r\n"
EVENTS = OK + b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def whole(said: Any, head: bytes = JSON) -> bytes:
    """An answer in one piece."""
    raw = said if isinstance(said, bytes) else json.dumps(said).encode()
    return head + b"content-length: %d\r\n\r\n" % len(raw) + raw


def chunk(said: bytes) -> bytes:
    """A piece of a stream."""
    return b"%x\r\n%b\r\n" % (len(said), said)


def spoken(text: str, **usage: Any) -> dict[str, Any]:
    """An answer as Chat has it."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    about = {"id": "x", "object": "chat.completion", "created": 1, "model": "gpt-5"}
    return {**about, "choices": [choice], "usage": usage or {"prompt_tokens": 9, "completion_tokens": 2}}


class RudeUpstream:
    """A server that reads a request and then does as it likes with the connection, which ends there."""

    def __init__(self, act: Act) -> None:
        self.act = act
        self.heard: list[bytes] = []
        self.told: queue.Queue[str] = queue.Queue()  # "asked" and "ended", as they happen
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._lines: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> "RudeUpstream":
        self._begin(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for line in self._lines:
            with line:
                _close(line)
        for thread in self._threads:
            thread.join()

    def _begin(self, work: Callable[..., None], *given: Any) -> None:
        self._threads.append(threading.Thread(target=work, args=given))
        self._threads[-1].start()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            self._lines.append(line)
            self._begin(self._serve, line)

    def _serve(self, line: socket.socket) -> None:
        try:
            self.heard.append(request(line))
            self.told.put("asked")
            self.act(line)
        except OSError:  # who asked is gone
            pass
        _close(line)
        self.told.put("ended")


def _close(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


def request(line: socket.socket) -> bytes:
    """A request to its end."""
    raw = b""
    while b"\r\n\r\n" not in raw:
        if not (more := line.recv(1 << 16)):
            raise ConnectionError("gone")
        raw += more
    head, _, body = raw.partition(b"\r\n\r\n")
    length = next((int(h.split(b":")[1]) for h in head.lower().split(b"\r\n") if h.startswith(b"content-length")), 0)
    while len(body) < length:
        body += line.recv(1 << 20)
    return head + b"\r\n\r\n" + body


def says(*parts: bytes) -> Act:
    """One who says this, and hangs up."""

    def act(line: socket.socket) -> None:
        for part in parts:
            line.sendall(part)

    return act


def stalls(*parts: bytes) -> Act:
    """One who says this, and then nothing until the other one hangs up."""

    def act(line: socket.socket) -> None:
        says(*parts)(line)
        while line.recv(1 << 16):
            pass

    return act


@contextmanager
def rude(
    act: Act, settings: GatewaySettings | None = None, store: str | Path = ":memory:"
) -> Iterator[tuple[Served, RudeUpstream]]:
    """A gateway before such an upstream."""
    upstream = RudeUpstream(act)
    with serving(store, cast(Any, upstream), settings=settings) as served:
        yield served, upstream


def dialled(served: Served, sent: bytes = b"") -> socket.socket:
    """A connection of a client, over which something was said."""
    parts = urlsplit(served.url)
    line = socket.create_connection((parts.hostname, parts.port))
    line.sendall(sent)
    return line


def post(path: str, body: Any, length: int | None = None, headers: Mapping[str, str] = {}) -> bytes:
    """A request as bytes; `length` is what its head says."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    told = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\n{told}content-length: {length or len(raw)}\r\n\r\n"
    return head.encode() + raw


def heard(line: socket.socket) -> bytes:
    """All that comes until the connection ends."""
    raw = b""
    try:
        while more := line.recv(1 << 16):
            raw += more
    except ConnectionError:
        pass
    return raw
