"""Texts of any size, bounded: what is kept, and how much was left out."""


class Ends:
    """The beginning and the end of a text that comes in pieces; what lies between is counted and not kept."""

    def __init__(self, size: int, tail: int | None = None) -> None:
        self._tail_size = size // 2 if tail is None else tail
        self._head_size = size - self._tail_size
        self._head = self._tail = ""
        self._length = 0

    def add(self, text: str) -> None:
        """Take the next piece."""
        self._length += len(text)
        room = self._head_size - len(self._head)
        self._head += text[:room]
        # The slice counts from the end, and all of a text is what -0 would give.
        self._tail = (self._tail + text[room:])[-self._tail_size :] if self._tail_size else ""

    @property
    def left_out(self) -> int:
        """How many characters were not kept."""
        return self._length - len(self._head) - len(self._tail)

    def text(self) -> str:
        """What was kept, with a note where something is missing."""
        if not self.left_out:
            return self._head + self._tail
        note = f"[… {self.left_out:,} of {self._length:,} characters left out …]"
        return "\n".join(part for part in (self._head, note, self._tail) if part)


def bounded(text: str, size: int) -> str:
    """At most about so many characters of a text: its beginning and its end."""
    ends = Ends(size)
    ends.add(text)
    return ends.text()


def clipped(line: str, most: int) -> str:
    """At most so many characters of a line, and a word of how many there were."""
    return line if len(line) <= most else f"{line[:most]} [… {len(line) - most:,} more characters]"
