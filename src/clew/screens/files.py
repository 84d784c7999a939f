"""The files that the command line reads and writes."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import typer

from clew.core import rawjson
from clew.core.unpacking import GZIP
from clew.errors import BadRequest


@dataclass(frozen=True, slots=True)
class FileConversation:
    """A conversation as a file holds it."""

    shape: Literal["body", "list", "lines"]
    body: Mapping[str, Any]

    def written(self, body: Mapping[str, Any]) -> bytes:
        """Another body in the same shape."""
        match self.shape:
            case "body":
                values = [body]
            case "list":
                values = [body["messages"]]
            case "lines":
                values = body["messages"]
        return b"".join(rawjson.dumps(v) + b"\n" for v in values)


def read(file: str) -> str:
    """The text of a file, or of standard input for `-`."""
    try:
        data = typer.get_binary_stream("stdin").read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise BadRequest(f"{file}: {error.strerror or error}; give the path of a file, or - for input") from None
    if data[:2] == GZIP:
        raise BadRequest(f"{file}: is compressed; unpack it with gunzip -c and give - as the file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRequest(f"{file}: not UTF-8 at byte {error.start:,}; convert it with iconv -t UTF-8") from None


def parse(file: str, text: str) -> FileConversation:
    """The conversation in a text: a body, a list of messages, or one message a line."""
    try:
        value = rawjson.loads(text)
    except BadRequest as error:
        value = _messages(file, text, error)
        return FileConversation("lines", {"messages": value})
    match value:
        case {"messages": list()}:
            return FileConversation("body", value)
        case [{"role": _}, *_]:
            return FileConversation("list", {"messages": value})
        case {"role": _}:
            return FileConversation("lines", {"messages": [value]})
    raise BadRequest(
        f"{file}: not a conversation; expected an object with `messages`, a list of messages, or one message per line"
    )


def _messages(file: str, text: str, whole: BadRequest) -> list[Any]:
    rows = [(n, row) for n, row in enumerate(text.split("\n"), 1) if row.strip()]
    found: list[Any] = []
    for n, row in rows:
        try:
            value = rawjson.loads(row)
        except BadRequest as error:
            # Not even one line reads by itself: then the file was meant as a whole.
            told = f"line {n}: {error}" if found else str(whole)
            raise BadRequest(f"{file}: {told}; expected JSON, or one message per line") from None
        if not isinstance(value, dict) or "role" not in value:
            raise BadRequest(f"{file}: line {n} is not a message; give one conversation, one message per line")
        found.append(value)
    if not found:
        raise BadRequest(f"{file}: is empty; expected JSON, or one message per line")
    return found


def save(out: Path, data: bytes) -> None:
    """Write a file whole or not at all: it may be the only copy of what it holds."""
    target = out.resolve()
    try:
        if target.exists() and not target.is_file():  # a pipe or a device is written to, not replaced
            target.write_bytes(data)
            return
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        part = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if target.exists():
            shutil.copymode(target, part)
        part.replace(target)
    except OSError as error:
        raise BadRequest(f"{out}: cannot be written ({error.strerror}); choose another place") from None
