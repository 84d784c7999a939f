"""From the bytes of an answer to its events, as they come."""

from collections.abc import Iterator

END = "[DONE]"


class Events:
    """Server-sent events, or one JSON text of a server that does not stream: then that is the only event.

    Names of events are not needed: where an API has them, the data says the same in its `type`.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self.raw = b""  # of the event that was given last, and of what stood before it
        self._lines: list[bytes] = []  # of an event that has not ended
        self._rest: list[bytes] = []  # of a line that has not ended
        self._data: list[bytes] = []
        self._whole: list[bytes] | None = None

    def add(self, chunk: bytes) -> Iterator[str]:
        """The data of every event that ends in this chunk."""
        if not self.bytes:
            chunk = chunk.lstrip(b"\xef\xbb\xbf \r\n")
            self._whole = [] if chunk.startswith((b"{", b"[")) else None
        self.bytes += len(chunk)
        if self._whole is not None:
            self._whole.append(chunk)
            return
        # Not by a decoder of text: to those a line ends at U+2028, too, which may stand in JSON as it is.
        first, *lines = chunk.split(b"\n")
        self._rest.append(first)
        for more in lines:
            line, self._rest = b"".join(self._rest), [more]
            self._lines.append(line)
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                yield self._ended()

    def end(self) -> Iterator[str]:
        """The data of an event that no empty line ended."""
        if self._whole:
            self.raw = b"".join(self._whole)
            yield self.raw.decode("utf-8", "replace")
        else:
            yield from self.add(b"\n\n")
            left = b"\n".join(self._lines)
            if left.lstrip().startswith(b"{"):  # Gemini says so, outside of any event, that it failed
                self.raw, self._lines = left, []
                yield left.decode("utf-8", "replace")

    def _ended(self) -> str:
        self.raw = b"\n".join([*self._lines, b""])
        data = b"\n".join(self._data).decode("utf-8", "replace")
        self._lines, self._data = [], []
        return data
