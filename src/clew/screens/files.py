"""The files that the command line writes."""

import os
import shutil
import tempfile
from pathlib import Path

from clew.errors import BadRequest


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
