"""Files of others: read if they may be changed, and written whole or not at all."""

import os
import stat
from hashlib import sha256
from pathlib import Path

from clew.agent.tools.files import save
from clew.errors import BadRequest


def checksum(data: bytes | None) -> str | None:
    """The checksum of what is in a file; None: there is none."""
    return None if data is None else sha256(data).hexdigest()


def text_in(data: bytes | None) -> str:
    """What is in a file as text, without the mark that some editors begin it with."""
    return (data or b"").decode("utf-8-sig")


def bytes_of(text: str, like: bytes | None) -> bytes:
    """A text as a file has it, with the same mark as before."""
    return (b"\xef\xbb\xbf" if like and like.startswith(b"\xef\xbb\xbf") else b"") + text.encode()


def content(file: Path) -> bytes | None:
    """What is in a file that may be changed; None: there is none. Raises `BadRequest`."""
    try:
        known = file.stat()
        if not stat.S_ISREG(known.st_mode):
            raise BadRequest(f"{file}: is not a regular file")
        if not stat.S_IMODE(known.st_mode) & 0o222 or not os.access(file, os.W_OK):
            raise BadRequest(f"{file}: is read-only; make it writable first (chmod u+w)")
        return file.read_bytes()
    except FileNotFoundError:
        if file.is_symlink():
            raise BadRequest(f"{file}: is a link to a file that is not there; make that file first") from None
        return None
    except OSError as error:
        raise BadRequest(f"{file}: cannot be read ({error.strerror})") from None


def write(file: Path, data: bytes) -> None:
    """Write a file whole or not at all; a link stays one."""
    try:
        save(file.resolve(), data.decode("utf-8", "surrogateescape"))
    except OSError as error:
        raise BadRequest(f"{file}: cannot be written ({error.strerror})") from None
