"""Files as text: what can be read as such, and writing that is all or nothing."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from clew.agent.tools.root import Root
from clew.errors import ToolError

LARGEST_FILE = 20_000_000  # bytes of a file that is changed: it is held in memory several times
PROBE = 8_192  # bytes that tell text from what is none
STRANGE = 0.2  # share of characters that are no UTF-8, in what is no text


def regular(root: Root, path: Path) -> os.stat_result:
    """What is known of a file, if it is one: a pipe or a device could keep a reader for ever."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError(f"{root.name(path)} does not exist{_meant(root, path)}") from None
    if stat.S_ISDIR(found.st_mode):
        raise ToolError(f"{root.name(path)} is a folder: list_files shows what is in it")
    if not stat.S_ISREG(found.st_mode):
        raise ToolError(f"{root.name(path)} is not a regular file")
    return found


def _meant(root: Root, path: Path) -> str:
    with suppress(OSError):
        if near := get_close_matches(path.name, [file.name for file in path.parent.iterdir()]):
            return f"; there is {', '.join(root.name(path.parent / name) for name in near)}"
    return ""


def refuse_binary(name: str, start: bytes) -> None:
    """Raise if a file that starts so is no text."""
    if b"\0" in start:
        raise ToolError(f"{name} is a binary file: it has a NUL at byte {start.index(0):,}")
    text = start.decode("utf-8", "replace")
    if text.count("�") > 1 + STRANGE * len(text):
        raise ToolError(f"{name} is a binary file, or text that is not UTF-8")


def lines_of(file: BinaryIO, longest: int) -> Iterator[tuple[bytes, int]]:
    """Each line, of a long one only so many bytes, and how many it has."""
    while line := file.readline(longest):
        length, piece = len(line), line
        while not piece.endswith(b"\n") and (piece := file.readline(1 << 20)):
            length += len(piece)
        yield line, length


def load(root: Root, path: Path) -> str:
    """The whole text of a file that will be changed; bytes that are no UTF-8 survive as lone surrogates."""
    size = regular(root, path).st_size
    if size > LARGEST_FILE:
        raise ToolError(f"{root.name(path)} has {size:,} bytes, more than {LARGEST_FILE:,}: change it with a command")
    data = path.read_bytes()
    refuse_binary(root.name(path), data[:PROBE])
    return data.decode("utf-8", "surrogateescape")


def save(path: Path, text: str) -> None:
    """Put a text in place of a file at once, or leave the file as it is; its mode and owner stay."""
    old = path.stat() if path.exists() else None
    if old and not os.access(path, os.W_OK):  # a rename would not ask
        raise PermissionError(None, "the file is read-only", path.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.parent / f".{token_hex(8)}.tmp"
    file = os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o600 if old else 0o666)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(text.encode("utf-8", "surrogateescape"))
            out.flush()
            os.fsync(out.fileno())
        if old:
            _dress(new, old)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _dress(path: Path, like: os.stat_result) -> None:
    made = path.stat()
    if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
        with suppress(PermissionError):
            os.chown(path, like.st_uid, like.st_gid)
    path.chmod(stat.S_IMODE(like.st_mode))  # last: a change of owner takes bits away


def encodable(name: str, text: str) -> str:
    """The same text, if UTF-8 can hold it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ToolError(f"{name} has half of a surrogate pair at character {error.start:,}: no UTF-8") from None
    return text
