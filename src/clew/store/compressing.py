"""Compression with zstd and a dictionary that ships with clew.

The dictionary knows how what agents say looks, and nothing that anybody said: it is made of our own text, by
`scripts/make_dictionary.py`. So what one scope said is in no other's data, and what was purged is nowhere.
"""

import sys
from functools import cache
from pathlib import Path
from threading import local

from clew.core.unpacking import Unpacker, zstd
from clew.errors import BadRequest

if sys.version_info >= (3, 14):

    def _compressor() -> zstd.ZstdCompressor:
        names = zstd.CompressionParameter
        options = {names.compression_level: LEVEL, names.checksum_flag: 1}
        return zstd.ZstdCompressor(options=options, zstd_dict=_dictionary())
else:

    def _compressor() -> zstd.ZstdCompressor:
        level, checksum = zstd.CParameter.compressionLevel, zstd.CParameter.checksumFlag
        options = {zstd.CParameter(level): LEVEL, zstd.CParameter(checksum): 1}
        return zstd.ZstdCompressor(options, _dictionary())


LEVEL = 6  # as dear as zlib's 6, which it takes the place of, and a fifth smaller with the dictionary
_MAGIC = b"\x28\xb5\x2f\xfd"  # that begins every frame, and so need not be stored
LARGEST = 1 << 30  # bytes of a row, unpacked; SQLite takes no larger ones, and nobody says as much at once
_own = local()


def compress(data: bytes) -> bytes:
    """A frame without its first four bytes; it names its dictionary, and has a checksum."""
    if len(data) > LARGEST:  # or nobody could read it again
        raise BadRequest(f"{len(data):,} bytes are too much for one item: a store takes {LARGEST:,}")
    try:
        compressor: zstd.ZstdCompressor = _own.compressor
    except AttributeError:
        compressor = _own.compressor = _compressor()
    return compressor.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)[len(_MAGIC) :]


def decompress(data: bytes) -> bytes:
    """What was compressed; raises `BadRequest` where it is damaged, or was made with another dictionary."""
    return _room().unpacked(_MAGIC + data, "zstd", _dictionary().as_digested_dict)


def inflate(data: bytes) -> bytes:
    """What an older version compressed, with zlib; raises `BadRequest` where it is damaged."""
    return _room().unpacked(data, "zlib")


def _room() -> Unpacker:
    return Unpacker(LARGEST, "a row", "no store has such rows: it is damaged")


@cache
def _dictionary() -> zstd.ZstdDict:
    return zstd.ZstdDict(Path(__file__).with_name("dictionary-1.zstd").read_bytes())
