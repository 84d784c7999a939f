"""What is unpacked is bounded, whoever packed it, and all of it in one place."""

import ast
import gzip
import io
import re
import sys
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import brotli
import pytest

from clew.core.unpacking import Packing, Unpacker, opened
from clew.errors import BadRequest, TooLarge
from clew.store import compressing

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    import pyzstd as zstd

SOURCE = Path(__file__).parents[1] / "src" / "clew"
MOST = 1 << 20


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKINGS: dict[Packing, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "deflate": raw_deflate,
    "zstd": zstd.compress,
    "br": brotli.compress,
}


def unpacker(most: int = MOST) -> Unpacker:
    return Unpacker(most, "it", "take less")


@pytest.mark.parametrize("packing", PACKINGS)
def test_as_much_as_there_is_room_for_is_unpacked_and_not_a_byte_more(packing: Packing) -> None:
    pack = PACKINGS[packing]
    assert unpacker(5).unpacked(pack(b"zebra"), packing) == b"zebra"
    assert unpacker(0).unpacked(pack(b""), packing) == b""
    for room in (4, 0):
        with pytest.raises(TooLarge, match=f"it unpacks to more than {room} bytes; take less"):
            unpacker(room).unpacked(pack(b"zebra"), packing)


@pytest.mark.parametrize("packing", PACKINGS)
def test_what_is_damaged_cut_off_or_goes_on_behind_its_end_is_no_guess(packing: Packing) -> None:
    whole = PACKINGS[packing](b"zebra " * 100)
    for wrong in (b"", b"no such thing", whole[:-3], whole + b"more"):
        with pytest.raises(BadRequest, match=f"cannot be unpacked as {packing}"):
            unpacker().unpacked(wrong, packing)


@pytest.mark.parametrize("packing", PACKINGS)
def test_parts_have_one_room_together(packing: Packing) -> None:
    room, part = unpacker(10), PACKINGS[packing](b"zebra")
    room.unpacked(part, packing)
    room.take(3)
    with pytest.raises(TooLarge, match="more than 10 bytes"):
        room.unpacked(part, packing)


def test_so_have_the_parts_of_a_file_and_the_chunks_of_a_stream() -> None:
    packed = gzip.compress(b"one\n") + gzip.compress(b"two\n")
    assert unpacker(8).file(io.BytesIO(packed)) == b"one\ntwo\n"
    assert opened(io.BytesIO(packed)).readlines() == [b"one\n", b"two\n"]
    with pytest.raises(TooLarge):
        unpacker(7).file(io.BytesIO(packed))
    with pytest.raises(BadRequest, match="cannot be unpacked as gzip"):
        opened(io.BytesIO(packed[:-9])).read()
    bytes_of = [packed[n : n + 1] for n in range(24)]
    assert (
        b"".join(piece for unpack in [unpacker(4).stream()] for byte in bytes_of for piece in unpack(byte)) == b"one\n"
    )
    with pytest.raises(TooLarge):
        [piece for unpack in [unpacker(3).stream()] for byte in bytes_of for piece in unpack(byte)]


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_bomb_takes_no_more_memory_than_there_is_room_for(packing: Packing) -> None:
    def peak(packed: bytes) -> int:
        tracemalloc.start()
        try:
            with pytest.raises(TooLarge):
                unpacker().unpacked(packed, packing)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    small, large = (peak(PACKINGS[packing](bytes(size * MOST))) for size in (4, 24))
    assert large < small + MOST < 6 * MOST


def test_a_row_that_nobody_could_read_again_is_not_written() -> None:
    class Long(bytes):
        def __len__(self) -> int:
            return compressing.LARGEST + 1

    with pytest.raises(BadRequest, match="1,073,741,825 bytes are too much for one item"):
        compressing.compress(Long())
    assert compressing.decompress(compressing.compress(b"zebra")) == b"zebra"


# --- one place --------------------------------------------------------------------------------------------------------

PACKERS = {"brotli", "bz2", "compression", "gzip", "lzma", "pyzstd", "tarfile", "zipfile", "zlib"}
TO_PACK = {"zlib": {"gateway/seals.py", "store/checkpoint.py", "testing/conversations.py"}}  # they only compress


NAMED = re.compile("|".join((*PACKERS, "decompress")), re.IGNORECASE)  # the other files need not be parsed


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (name.name.partition(".")[0] for name in names)
            case ast.ImportFrom(module=str(module)):
                yield module.partition(".")[0]


def test_nobody_else_unpacks_anything() -> None:
    strays, unpacks = list[tuple[str, str]](), list[str]()
    for path in SOURCE.rglob("*.py"):
        module = path.relative_to(SOURCE).as_posix()
        if module == "core/unpacking.py":
            continue
        text = path.read_text(encoding="utf-8")
        if not NAMED.search(text):
            continue
        tree = ast.parse(text)
        found = PACKERS & set(imported(tree))
        strays += [(module, name) for name in found if module not in TO_PACK.get(name, ())]
        called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        unpacks += [module] if any("decompress" in name.lower() for name in called) else []
    assert (strays, unpacks) == ([], [])
