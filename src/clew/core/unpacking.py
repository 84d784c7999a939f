"""The one place where something packed is unpacked: never more of it than there is room for.

A few bytes of packed data can say gigabytes. Whoever unpacks says how many there may be in all, and each one counts.
"""

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, Literal, cast

from clew.errors import BadRequest, MissingExtra, TooLarge

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    import pyzstd as zstd

__all__ = ["GZIP", "Packing", "Unpacker", "opened", "shipped", "zstd"]

Packing = Literal["gzip", "zlib", "deflate", "zstd", "br"]  # "deflate" has neither head nor sum
UnpackedPart = tuple[bytes, bool]  # what there is, and whether the data ends where it ends
ReadPacking = Callable[[bytes, int, Any], UnpackedPart]  # of data, so many bytes, with the dictionary that packed it

PIECE = 1 << 20  # bytes of a stream that are unpacked at a time
GZIP = b"\x1f\x8b"  # with which a .gz begins
SHIPPED = 16 << 20  # bytes: far more than the files that ship with clew have


class Unpacker:
    """What may be unpacked for one request, file or row: so many bytes, in however many parts."""

    __slots__ = ("_remedy", "_what", "left", "most")

    def __init__(self, most: int, what: str, remedy: str) -> None:
        self.most, self.left, self._what, self._remedy = most, most, what, remedy

    def take(self, size: int) -> None:
        """Count bytes. Raises `TooLarge` where they are too many."""
        self.left -= size
        if self.left < 0:
            raise TooLarge(f"{self._what} unpacks to more than {self.most:,} bytes; {self._remedy}")

    def unpacked(self, data: bytes, packing: Packing, dictionary: Any = None) -> bytes:
        """What was packed. Raises `TooLarge`, or `BadRequest` where it is damaged."""
        most = max(0, self.left) + 1  # one more, by which it shows that there is more; 0 would mean no bound
        try:
            plain, ended = _READERS[packing](data, most, dictionary)
        except (zlib.error, zstd.ZstdError, ValueError) as error:
            raise BadRequest(f"cannot be unpacked as {packing}: {error}") from None
        self.take(len(plain))
        if not ended:
            raise BadRequest(f"cannot be unpacked as {packing}: it does not end where its data ends")
        return plain

    def file(self, file: BinaryIO) -> bytes:
        """What is in a .gz, which may have several parts. Raises what `unpacked` does."""
        parts, packed = list[bytes](), opened(file)
        while part := packed.read(PIECE):
            self.take(len(part))
            parts.append(part)
        return b"".join(parts)

    def stream(self) -> Callable[[bytes], Iterator[bytes]]:
        """What unpacks gzip that comes in chunks, a piece at a time. It raises what `unpacked` does."""
        reader = zlib.decompressobj(zlib.MAX_WBITS | 16)

        def pieces(chunk: bytes) -> Iterator[bytes]:
            try:
                while piece := reader.decompress(chunk, PIECE):
                    self.take(len(piece))
                    yield piece
                    chunk = reader.unconsumed_tail
            except zlib.error as error:
                raise BadRequest(f"cannot be unpacked as gzip: {error}") from None

        return pieces


def shipped(data: bytes) -> bytes:
    """What is in a .gz that ships with clew."""
    return Unpacker(SHIPPED, "a file of clew's own", "install clew again").unpacked(data, "gzip")


def opened(file: BinaryIO) -> BinaryIO:
    """A .gz, to be read as if it were not packed by whoever says how much; raises `BadRequest` where it is damaged."""
    return cast("BinaryIO", io.BufferedReader(cast("io.RawIOBase", _GzipFile(fileobj=file))))


class _GzipFile(gzip.GzipFile):
    def read(self, size: int | None = -1) -> bytes:
        try:
            return super().read(size)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise BadRequest(f"cannot be unpacked as gzip: {error}") from None


# --- packings ---------------------------------------------------------------------------------------------------------


def _deflate(bits: int) -> ReadPacking:
    def read(data: bytes, most: int, _: Any) -> UnpackedPart:
        reader = zlib.decompressobj(bits)
        return reader.decompress(data, most), reader.eof and not reader.unused_data

    return read


def _zstd(data: bytes, most: int, dictionary: Any) -> UnpackedPart:
    # Not `zstd.decompress`: that takes as much memory as the frame says it needs, and it may be damaged there.
    reader = zstd.ZstdDecompressor(dictionary)
    return reader.decompress(data, most), reader.eof and not reader.unused_data


def _brotli(data: bytes, most: int, _: Any) -> UnpackedPart:
    try:
        import brotli
    except ImportError:
        raise MissingExtra("to unpack br needs the package brotli", "gateway") from None
    reader = brotli.Decompressor()
    try:
        return reader.process(data, output_buffer_limit=most), reader.is_finished()
    except brotli.error as error:
        raise ValueError(str(error)) from None


_READERS: Mapping[Packing, ReadPacking] = {
    "gzip": _deflate(zlib.MAX_WBITS | 32),  # or zlib, which some call so
    "zlib": _deflate(zlib.MAX_WBITS),
    "deflate": _deflate(-zlib.MAX_WBITS),
    "zstd": _zstd,
    "br": _brotli,
}
