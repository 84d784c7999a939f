"""How frames lie on disk: what is long in them once, however often the rest of a request changes.

A client may put the number of each request beside its instructions and tools: then those are a row of their own, which
every such frame names.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from clew.core import rawjson
from clew.core.items import Digests, Frame
from clew.store.compressing import compress, decompress, inflate
from clew.store.packing import WIDTH, ZSTD, read_json

# How a row begins: a whole frame has `ZSTD` there, or zlib's own first byte, if an older version wrote it.
SHORT, LONG = 3, 4  # a frame without its long parts, after whose digest it goes on; and those
LONG_PART = 500  # bytes of a value that is one
WORTH_APART = 2_000  # bytes of all of them


class PackedFrame(NamedTuple):
    """A frame as JSON, and its long parts with their digest, if they stand apart."""

    data: bytes
    parts: bytes = b""
    digest: str = ""

    def row(self) -> bytes:
        """The frame as it is stored."""
        if not self.parts:
            return squeeze_frame(self.data)
        return bytes([SHORT]) + bytes.fromhex(self.digest) + compress(self.data)

    def parts_row(self) -> bytes:
        """Its long parts as they are stored."""
        return bytes([LONG]) + compress(self.parts)


def pack_frame(frame: Frame, digests: Digests) -> PackedFrame:
    """A frame to be stored."""
    long = {key: value for key, value in frame.body.items() if _is_long(value)}
    served = [frame.served] if frame.served else []  # older versions had none
    parts = rawjson.dumps([frame.lead, frame.system, frame.tools, long])
    if len(parts) < WORTH_APART:
        whole = [frame.format, frame.model, frame.lead, frame.body, frame.system, frame.tools, *served]
        return PackedFrame(rawjson.dumps(whole))
    short = {key: None if key in long else value for key, value in frame.body.items()}  # in their order
    return PackedFrame(rawjson.dumps([frame.format, frame.model, short, *served]), parts, digests.parts(parts))


def unpack_frame(data: bytes, row: Callable[[str], bytes]) -> Frame:
    """A frame as it was; `row` has what is stored under a digest."""
    if data[0] != SHORT:
        form, model, lead, body, system, tools, *served = read_json(inflated_frame(data))
        return Frame(form, model, tuple(lead), body, system, tuple(tools), *served)
    form, model, body, *served = read_json(decompress(data[1 + WIDTH :]))
    lead, system, tools, long = read_json(decompress(row(data[1 : 1 + WIDTH].hex())[1:]))
    return Frame(form, model, tuple(lead), {**body, **long}, system, tuple(tools), *served)


def squeeze_frame(data: bytes) -> bytes:
    """The JSON of a whole frame as it is stored."""
    return bytes([ZSTD]) + compress(data)


def inflated_frame(data: bytes) -> bytes:
    """The JSON of a whole frame; one of an older version begins as zlib does."""
    return decompress(data[1:]) if data[0] == ZSTD else inflate(data)


def _is_long(value: Any) -> bool:
    return isinstance(value, str | list | tuple | dict) and len(rawjson.dumps(value)) >= LONG_PART
