"""A client's connection: how large the head of a request may be, and how long it may take to send one, or to listen."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

LARGEST_HEAD = 1 << 16  # bytes: clients put whole JSON texts into headers

TOO_LARGE = f"the head of a request is larger than {LARGEST_HEAD:,} bytes"


class ClientConnection(HttpToolsProtocol):
    """A connection that ends with a client who keeps it without using it."""

    silence = 60.0  # seconds

    _slow: asyncio.TimerHandle | None = None  # ends a head that does not come
    _deaf: asyncio.TimerHandle | None = None  # ends an answer that nobody takes
    _between = True  # no request is being read: what comes next is a head
    _head = 0  # bytes of the one that is being read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._slow = self.loop.call_later(self.silence, self._end_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._slow is None and self._between:
            self._slow = self.loop.call_later(self.silence, self._end_slow)
        if self._slow is not None:
            self._head += len(data)
        super().data_received(data)
        if self._slow is not None and self._head > LARGEST_HEAD:
            self._refuse(431, TOO_LARGE)

    def on_headers_complete(self) -> None:
        if self._head > LARGEST_HEAD and self._size() > LARGEST_HEAD:  # else what came is a body, too
            self._refuse(431, TOO_LARGE)
            raise ValueError(TOO_LARGE)  # to whoever reads on
        self._stop()
        self._head, self._between = 0, False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._between = True
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            super().send_400_response(msg)

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
        if self.transport.is_closing() or self._is_answering():
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

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete


def connection(silence: float) -> type[asyncio.Protocol]:
    """Connections whose clients may be silent for so long."""
    made: dict[str, Any] = {"silence": silence}
    return type("ClientConnection", (ClientConnection,), made)
