"""The conversations of a task as bytes, one at a time: no more of a file is in memory than the one that is read."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from clew.batch.sources import LONGEST_CONVERSATION, BatchTask, is_conversation_line
from clew.core import unpacking
from clew.errors import BadRequest
from clew.sessions.transcripts import opencode_store

BLANK_BYTES = b" \t\r\n\x00"
SKIPPED_BYTES = 1 << 20  # at a time, of a line that is too long


class RawConversation(NamedTuple):
    """What a file has of a conversation, or why it cannot be read."""

    source: str
    position: int  # of its first byte in the file, once unpacked; of a database, the number of the session
    data: bytes
    fault: str = ""

    @property
    def place(self) -> str:
        """Where it is, in one word."""
        return f"{self.source}#{self.position}"


def conversations(root: Path, task: BatchTask) -> Iterator[RawConversation]:
    """All of a task, in order; what cannot be read is said, and the rest goes on."""
    for name, size in task.files:
        at = 0
        try:
            for raw in _of_file(root / name, name, size, task):
                at = raw.position
                yield raw
        except (BadRequest, OSError) as error:
            yield RawConversation(name, at, b"", _why(error, root / name))


def _why(error: Exception, path: Path) -> str:
    told = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return told.removeprefix(str(path)).lstrip(":, ") or type(error).__name__


def _of_file(path: Path, name: str, size: int, task: BatchTask) -> Iterator[RawConversation]:
    if path.name == opencode_store.DATABASE:
        yield from (RawConversation(name, n, data) for n, data in enumerate(opencode_store.exports(path)))
        return
    with path.open("rb") as opened:
        if (there := path.stat().st_size) < size:
            raise BadRequest(f"had {size:,} bytes when this run began, and has {there:,} now")
        if task.stop:
            yield from _lines(opened, name, size, task.start, task.stop)
            return
        packed = opened.peek(2)[:2] == unpacking.GZIP
        file = unpacking.opened(opened) if packed else opened
        size = -1 if packed else size  # one that grew meanwhile is read as far as it was known
        first = file.readline(LONGEST_CONVERSATION)
        if is_conversation_line(first):
            yield from _lines(file, name, size, 0, 0, first)
        else:
            yield RawConversation(name, 0, _rest_of_file(file, first, size))


def _rest_of_file(file: BinaryIO, first: bytes, size: int) -> bytes:
    """The rest of a file, with the line that was read before."""
    most = LONGEST_CONVERSATION if size < 0 else size
    if most > LONGEST_CONVERSATION:
        raise BadRequest(_too_long(size))
    data = first + file.read(max(0, most - len(first)))
    if size < 0 and file.read(1):
        raise BadRequest(_too_long(len(data) + 1))
    return data[:most]


def _too_long(size: int) -> str:
    return (
        f"{size:,} bytes or more in one piece, and {LONGEST_CONVERSATION:,} can be read; of a list of conversations, "
        "make lines: jq -c '.[]'"
    )


def _lines(
    file: BinaryIO, name: str, size: int, start: int, stop: int, first: bytes = b""
) -> Iterator[RawConversation]:
    """The lines that begin in a stretch of a file; a last one that `size` cuts off was being written."""
    at = start
    if start:  # the line that begins before belongs to the stretch before
        file.seek(start - 1)
        at = start - 1 + _skip(file)
    while not stop or at < stop:
        line = first or file.readline(LONGEST_CONVERSATION)
        first = b""
        if 0 <= size < at + len(line):
            line = line[: size - at]
        if not line:
            return
        begin, at = at, at + len(line)
        if len(line) >= LONGEST_CONVERSATION and not line.endswith(b"\n"):
            at += _skip(file)
            yield RawConversation(name, begin, b"", _too_long(at - begin))
        elif text := line.removeprefix(b"\xef\xbb\xbf").strip(BLANK_BYTES):
            yield RawConversation(name, begin, text)


def _skip(file: BinaryIO) -> int:
    """Go behind the end of the line; how many bytes that was."""
    done = 0
    while part := file.readline(SKIPPED_BYTES):
        done += len(part)
        if part.endswith(b"\n"):
            break
    return done
