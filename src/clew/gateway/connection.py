"""A client's connection: how large the head of a request may be, and how long it may take to send one, or to listen."""

import asyncio
import re
from collections.abc import Iterator
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

LARGEST_HEAD = 1 << 16  # bytes: clients put whole JSON texts into headers

TOO_LARGE = f"the head of a request is larger than {LARGEST_HEAD:,} bytes"
TOO_LARGE_CHUNK = "a chunk of the body is said to have a terabyte or more"

# The line before a chunk that is said to be as large as nobody sends. The parser waits for all of it, and tells nobody
# how much that is; but it says where it has read such a line.
_HUGE = re.compile(rb"(?:\A|(?<=\n))0*[1-9a-f][0-9a-f]{10,}(?:[;\s][^\n]*)?\n", re.IGNORECASE)
_LINE = 64  # bytes that are kept of a line whose end has not come


class ClientConnection(HttpToolsProtocol):
    """A connection that ends with a client who keeps it without using it."""

    silence = 60.0  # seconds

    _slow: asyncio.TimerHandle | None = None  # ends a head that does not come
    _deaf: asyncio.TimerHandle | None = None  # ends an answer that nobody takes
    _between = True  # no request is being read: what comes next is a head
    _head = 0  # bytes of the one that is being read
    _cycles: tuple[RequestResponseCycle, ...] = ()  # requests that were read, and are not all answered
    _chunked = False  # the body that is being read comes in chunks
    _line = b""  # of what is looked at for their sizes: the last line, without an end
    _was_size = False  # what was read last ended the line before a chunk

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._slow = self.loop.call_later(self.silence, self._end_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self.resume_writing()
        for cycle in self._cycles:  # uvicorn tells the newest alone, and an earlier one may still be answered
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._slow is None and self._between:
            self._slow = self.loop.call_later(self.silence, self._end_slow)
        if self._slow is not None:
            self._head += len(data)
        for part in self._parts(data) if self._between or self._chunked else (data,):
            self._was_size = False
            super().data_received(part)
            if self._was_size and part == b"\n":
                self._refuse(400, TOO_LARGE_CHUNK)
            if self.transport.is_closing():
                return
        if self._slow is not None and self._head > LARGEST_HEAD:
            self._refuse(431, TOO_LARGE)

    def _parts(self, data: bytes) -> Iterator[bytes]:
        """What came, with the ends of such lines apart as may stand before a huge chunk."""
        text, begun, read = self._line + data, len(self._line), 0
        for found in _HUGE.finditer(text):
            end = found.end() - begun
            yield from filter(None, (data[read : end - 1], data[end - 1 : end]))
            read = end
        self._line = text[text.rfind(b"\n") + 1 :][:_LINE]
        yield data[read:] if read else data

    def on_headers_complete(self) -> None:
        if self._head > LARGEST_HEAD and self._size() > LARGEST_HEAD:  # else what came is a body, too
            self._refuse(431, TOO_LARGE)
            raise ValueError(TOO_LARGE)  # to whoever reads on
        self._stop()
        self._head, self._between = 0, False
        self._chunked = any(name == b"transfer-encoding" for name, _ in self.headers)
        super().on_headers_complete()
        self._cycles = (*(cycle for cycle in self._cycles if not cycle.response_complete), self.cycle)

    def on_chunk_header(self) -> None:
        self._was_size = True

    def on_message_complete(self) -> None:
        self._between = True
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "this is not HTTP as it should be")

    def pause_writing(self) -> None:
        super().pause_writing()
        self._deaf = self._deaf or self.loop.call_later(self.silence, self.transport.abort)

    def resume_writing(self) -> None:
        if self._deaf is not None:
            self._deaf.cancel()
            self._deaf = None
        super().resume_writing()

    def _end_slow(self) -> None:
        self._slow = None
        if self._is_answering():
            self._slow = self.loop.call_later(self.silence, self._end_slow)
        elif self._head:
            self._refuse(408, f"the head of a request took longer than {self.silence:g} seconds")
        else:
            self.transport.close()

    def _refuse(self, status: int, why: str) -> None:
        """Say why in the shape that most clients read: what they speak is not known yet."""
        self._stop()
        if self.transport.is_closing() or (self._is_answering() and not self._is_awaited()):
            self.transport.close()
            return
        said = b'{"error":{"message":"%b","type":"invalid_request_error","param":null,"code":null}}' % why.encode()
        head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(said)
        self.transport.write(STATUS_LINE[status] + head + said)
        self.transport.close()

    def _size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def _stop(self) -> None:
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None

    def _is_awaited(self) -> bool:
        """Whether the request that is being read is the one whose answer comes next, and that has not begun."""
        return not self._between and not self.pipeline and not self.cycle.response_started

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete


def connection(silence: float) -> type[asyncio.Protocol]:
    """Connections whose clients may be silent for so long."""
    made: dict[str, Any] = {"silence": silence}
    return type("ClientConnection", (ClientConnection,), made)
