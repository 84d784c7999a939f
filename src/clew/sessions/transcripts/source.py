"""A session file as records: one JSON object each, with the line it stands on."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from clew.core import rawjson
from clew.core.unpacking import GZIP, Unpacker
from clew.errors import BadRequest, TooLarge
from clew.store.upkeep import Progress

UNPACKED = 512_000_000  # bytes of a .gz: far more than sessions have; a file that is not packed may have any size


NEVER = "1970-01-01T00:00:00.000Z"  # what we write where nobody knows the time
STRIDE = 1 << 20  # bytes between two reports of progress
SPACE = UUID("6f0d1c3e-7f1b-5a52-9b6d-2f4f0c1e7a11")
BLANK = b" \t\r\n\x00"  # a file that lost its end in a crash may end in zeros


class SessionFolder(NamedTuple):
    """Where an agent keeps its session files."""

    variable: str  # of the environment, which names its own folder
    usual: str  # that folder, in the user's own, unless the variable says otherwise
    below: str


class Record(NamedTuple):
    """One object of a file."""

    line: int
    value: Mapping[str, Any]


@dataclass(slots=True)
class Source:
    """The records of a file, and what there is to say about them."""

    name: str
    records: Sequence[Record]
    notes: list[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    def where(self, line: int) -> str:
        """A place in the file, for an error."""
        return f"{self.name or 'the file'}, line {line}"

    def all_notes(self) -> tuple[str, ...]:
        """The notes, those that count among them."""
        counted = [f"{count:,} × {what}" for what, count in sorted(self.skipped.items())]
        return (*self.notes, *counted)


def parse(data: bytes, name: str = "", progress: Progress | None = None) -> Source:
    """The records of a file: JSON in one piece, or one object a line."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    source = Source(name, [])
    if not data.strip(BLANK):
        raise BadRequest(f"{name or 'the file'}: empty; expected a session: JSON, or one JSON object per line")
    whole = _one_document(data, source)
    source.records = [Record(1, v) for v in whole] if whole is not None else list(_lines(data, source, progress))
    if progress is not None:
        progress(len(data), len(data))
    return source


def _one_document(data: bytes, source: Source) -> list[Mapping[str, Any]] | None:
    """What a file in one piece holds; None where its lines stand for themselves."""
    start = data.lstrip(BLANK)
    head, _, rest = start.partition(b"\n")
    if rest.strip(BLANK) and _is_object(head):
        return None
    if start[:1] == b"{" and not rest.strip(BLANK):
        return None  # one line: whole or half-written
    try:
        value = rawjson.loads(data.rstrip(BLANK))
    except BadRequest as error:
        raise BadRequest(f"{source.where(1)}: {error}; expected a session: JSON, or one JSON object per line") from None
    values = value if isinstance(value, list) else [value]
    for value in values:
        if not isinstance(value, Mapping):
            raise BadRequest(f"{source.where(1)}: expected objects in a list, got {type(value).__name__}")
    return values


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(rawjson.loads(line), dict)
    except BadRequest:
        return False


def _lines(data: bytes, source: Source, progress: Progress | None) -> Iterator[Record]:
    start, line, reported = 0, 0, 0
    size = len(data.rstrip(BLANK))
    while start < size:
        end = data.find(b"\n", start)
        end = size if end < 0 else end
        line += 1
        text = data[start:end].strip(BLANK)
        start = end + 1
        if text and (value := _object(text, line, source, is_last=start >= size)) is not None:
            yield Record(line, value)
        if progress is not None and start - reported >= STRIDE:
            reported = start
            progress(start, len(data))


def _object(text: bytes, line: int, source: Source, is_last: bool) -> Mapping[str, Any] | None:
    try:
        value = rawjson.loads(text)
    except BadRequest as error:
        if is_last and line > 1:
            source.notes.append(f"line {line}: half-written, skipped ({len(text):,} bytes)")
            return None
        raise BadRequest(f"{source.where(line)}: {error}; expected one JSON object per line") from None
    if not isinstance(value, Mapping):
        raise BadRequest(f"{source.where(line)}: expected a JSON object, got {type(value).__name__}")
    return value


def string(value: Any) -> str:
    """A string, or none."""
    return value if isinstance(value, str) else ""


def objects(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; none of anything else."""
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, list) else []


def mapping(value: Any) -> Mapping[str, Any]:
    """An object, or an empty one."""
    return value if isinstance(value, Mapping) else {}


def number(value: Any) -> int | None:
    """A count, where there is one."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def time(value: Any) -> str:
    """A time in ISO 8601; milliseconds since 1970 become one."""
    if (ms := number(value)) and 0 < ms < 1 << 43:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return "" if value == NEVER else string(value)


def milliseconds(value: str) -> int:
    """A time in ISO 8601 as milliseconds since 1970; 0 where it is none."""
    try:
        return int(datetime.fromisoformat(value).timestamp() * 1000)
    except ValueError:
        return 0


def uuid_for(name: str) -> str:
    """The name itself where it is a UUID, as some agents want it, else one made from it."""
    try:
        return str(UUID(name))
    except ValueError:
        return str(uuid5(SPACE, name))


def data_of(file: Path, most: int = UNPACKED) -> bytes:
    """What is in a file, unpacked."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise BadRequest(f"{file}: {error.strerror or error}; give the path of a file") from None
    if data[: len(GZIP)] != GZIP:
        return data
    try:
        remedy = f"to allow that, unpack it first: gunzip -k {file}"
        return Unpacker(most, f"{file}: it has {len(data):,} bytes, and", remedy).file(BytesIO(data))
    except TooLarge:
        raise
    except BadRequest as error:
        raise BadRequest(f"{file}: {error}") from None
