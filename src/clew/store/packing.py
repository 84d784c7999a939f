"""How values lie on disk: digests as raw bytes, items and frames as JSON, compressed where it pays."""

import zlib
from collections.abc import Iterable
from typing import Any

from clew import rawjson
from clew.items import Frame, Item, Opening

WIDTH = 16  # bytes of a digest
WORTH = 200  # bytes from which compressing pays


def pack(ids: Iterable[str]) -> bytes:
    return bytes.fromhex("".join(ids))


def unpack(blob: bytes | None) -> list[str]:
    text = (blob or b"").hex()
    return [text[i : i + 2 * WIDTH] for i in range(0, len(text), 2 * WIDTH)]


def pack_item(item: Item) -> tuple[int, int, bytes]:
    """(compressed?, size before, data) of what an item says. How it was wrapped belongs to its node, its cache mark to
    one request: both stay out."""
    fields: dict[str, Any] = {"text": item.text}
    if item.name:
        fields["name"] = item.name
    if item.call_id:
        fields["call_id"] = item.call_id
    if item.wire is not None:
        fields["wire"] = item.wire
    data = rawjson.dumps(fields)
    if len(data) < WORTH:
        return 0, len(data), data
    return 1, len(data), zlib.compress(data, 6)


def unpack_item(opens: str | None, kind: Any, role: Any, packed: int, data: bytes) -> Item:
    fields = rawjson.loads(zlib.decompress(data) if packed else data)
    return Item(kind, role, **fields, opens=Opening(*rawjson.loads(opens)) if opens else None)


def pack_opening(opens: Opening | None) -> str | None:
    return rawjson.dumps([opens.keys, opens.bare]).decode() if opens else None


def pack_frame(frame: Frame) -> bytes:
    fields = [frame.format, frame.model, frame.lead, frame.body, frame.system, frame.tools]
    return zlib.compress(rawjson.dumps(fields), 6)


def unpack_frame(data: bytes) -> Frame:
    form, model, lead, body, system, tools = rawjson.loads(zlib.decompress(data))
    return Frame(form, model, tuple(lead), body, system, tuple(tools))


def indexable(text: str) -> str:
    """Text as the full-text index takes it: lone surrogates and NULs are no words."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ")
