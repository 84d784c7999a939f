"""From the bytes of an answer to its events, as they come."""

import re
from typing import Any

from clew.core import rawjson

END: dict[str, Any] = {}  # what the event says after which nothing comes

_DONE = b"[DONE]"
_BLANK = re.compile(rb"\n\r?\n")  # not by a decoder of text: to those a line ends at U+2028, too, which JSON may have


class Events:
    """Server-sent events, or one JSON text of a server that does not stream: then that is the only event.

    Names of events are not needed: where an API has them, the data says the same in its `type`.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self._idle: list[bytes] = []  # what ended without being one: it goes with the next
        self._rest: list[bytes] = []  # of an event that has not ended
        self._tail = b""  # its last bytes: a blank line may come in two chunks
        self._is_json = False
        self._found = False  # there was an event
        self.is_other = False  # it ended, and neither events nor JSON came

    def add(self, chunk: bytes) -> list[bytes]:
        """Every event that ends in this chunk, as it came, with what stood before it and is none."""
        if not self.bytes:
            chunk = chunk.lstrip(b"\xef\xbb\xbf \r\n")
            self._is_json = chunk.startswith((b"{", b"["))
        self.bytes += len(chunk)
        if self._rest or self._is_json:
            self._rest.append(chunk)
            if self._is_json or not _BLANK.search(self._tail + chunk):
                self._tail = (self._tail + chunk[-2:])[-2:]
                return []
            chunk, self._rest = b"".join(self._rest), []
        events, start = [], 0
        for blank in _BLANK.finditer(chunk):
            part, start = chunk[start : blank.end()], blank.end()
            self._idle.append(part)
            if part.startswith(b"data:") or b"\ndata:" in part:
                events.append(b"".join(self._idle))
                self._idle.clear()
        if start < len(chunk):
            self._rest, self._tail = [chunk[start:]], chunk[-2:]
        self._found = self._found or bool(events)
        return events

    def end(self) -> list[bytes]:
        """The event that no empty line ended."""
        if self._is_json:
            whole, self._rest = b"".join(self._rest), []
            return [whole] if whole else []
        events = self.add(b"\n\n")
        left, self._idle, self._rest = b"".join(self._idle + self._rest), [], []
        # Gemini says so, outside of any event, that it failed.
        if left.lstrip().startswith(b"{"):
            return [*events, left]
        # Where nothing is an event, this is something else under a false name: whoever passes it on must have it.
        self.is_other = not self._found and bool(left.strip())
        return [left.removesuffix(b"\n\n")] if self.is_other else events


def data_of(event: bytes) -> bytes:
    """The data of an event."""
    if not event.startswith(b"data:") and b"\ndata:" not in event:
        return event
    lines = [line.removesuffix(b"\r") for line in event.split(b"\n")]
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))


def read(event: bytes) -> Any:
    """What an event says, `END` if that it was the last; raises `BadRequest`."""
    # Of most events the data is one line and the last, and to JSON blanks around it are nothing.
    at = 5 if event.startswith(b"data:") else event.find(b"\ndata:") + 6
    said = rawjson.attempt(event[at:] if at >= 6 or event.startswith(b"data:") else event)
    if said is not None:
        return said
    data = data_of(event)
    return END if data.strip() == _DONE else rawjson.loads(data.decode("utf-8", "replace"))
