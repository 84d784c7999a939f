"""The bytes of a session file, which may be packed."""

import gzip
import io
import zlib
from pathlib import Path

from clew.errors import BadRequest

UNPACKED = 512_000_000  # bytes of a .gz: far more than sessions have; a file that is not packed may have any size
READ_BYTES = 1 << 20


def data_of(file: Path) -> bytes:
    """What is in a file, unpacked."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise BadRequest(f"{file}: {error.strerror or error}; give the path of a file") from None
    try:
        return unpacked(file, data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError, zlib.error) as error:
        raise BadRequest(f"{file}: cannot be unpacked ({error})") from None


def unpacked(file: Path, data: bytes, most: int = UNPACKED) -> bytes:
    """What is in a .gz, read bit by bit: a few bytes of one can say gigabytes."""
    blocks, size = [], 0
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
        while block := packed.read(READ_BYTES):
            blocks.append(block)
            size += len(block)
            if size > most:
                raise BadRequest(
                    f"{file}: unpacks to more than {most:,} bytes; to allow that, unpack it first: gunzip -k {file}"
                )
    return b"".join(blocks)
