"""The bytes of a session file, which may be packed."""

from io import BytesIO
from pathlib import Path

from clew.core.unpacking import GZIP, Unpacker
from clew.errors import BadRequest, TooLarge

UNPACKED = 512_000_000  # bytes of a .gz: far more than sessions have; a file that is not packed may have any size


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
