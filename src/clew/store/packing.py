"""How values lie on disk: digests as raw bytes, items and frames as JSON, compressed where it pays."""

import json
import zlib
from collections.abc import Iterable
from typing import Any, get_args

from clew.core import rawjson
from clew.core.items import BYTES, Digests, Frame, Item, Kind, Opening, Role
from clew.errors import BadRequest

WIDTH = 16  # bytes of a digest
_KINDS, _ROLES = frozenset(get_args(Kind)), frozenset(get_args(Role))
MASKED_ID = "secret_"  # as it begins the id of a call that was one
MASK = b"[secret: "  # as the secrets policy begins what it puts in a secret's place
WORTH = 200  # bytes from which compressing pays


def pack(ids: Iterable[str]) -> bytes:
    return bytes.fromhex("".join(ids))


def unpack(blob: bytes | None) -> list[str]:
    text = (blob or b"").hex()
    return [text[i : i + 2 * WIDTH] for i in range(0, len(text), 2 * WIDTH)]


def listed(values: Iterable[str | int]) -> str:
    """A list as statements take it."""
    return json.dumps(list(values))


def pack_item(item: Item) -> tuple[int, int, bytes]:
    """(compressed?, size before, data) of what an item says."""
    data = rawjson.dumps(fields_of(item))
    if len(data) < WORTH:
        return 0, len(data), data
    return 1, len(data), zlib.compress(data, 6)


def fields_of(item: Item) -> dict[str, Any]:
    """What an item says. How it was wrapped belongs to its node, its cache mark to one request: both stay out."""
    fields: dict[str, Any] = {"text": item.text}
    if item.name:
        fields["name"] = item.name
    if item.call_id:
        fields["call_id"] = item.call_id
    if item.wire is not None:
        fields["wire"] = item.wire
    return fields


def unpack_item(opens: str | None, kind: Any, role: Any, packed: int, data: bytes) -> Item:
    fields = _loads(_inflated(packed, data))
    if kind not in _KINDS or role not in _ROLES:
        raise BadRequest(f"unknown item kind {kind!r} with role {role!r}")
    if opens == SUMMARY:
        return Item("summary", role, **fields)
    kind = "text" if kind == "summary" else kind
    return Item(kind, role, **fields, opens=Opening(*rawjson.loads(opens)) if opens else None)


def is_as_said(digests: Digests, content: str, item: Item, packed: int, data: bytes) -> bool:
    """Whether an item is the one of which this is the digest; of one whose secrets are masked that cannot be told."""
    masked = item.call_id.startswith(MASKED_ID) or MASK in _inflated(packed, data)
    return masked or digests.content(item) == content


def _inflated(packed: int, data: bytes) -> bytes:
    return zlib.decompress(data) if packed else data


def pack_opening(item: Item) -> str | None:
    """How an item stood: the message it opened, or that it is a summary, which says what a text may say too."""
    if item.kind == "summary":
        return SUMMARY
    return rawjson.dumps([item.opens.keys, item.opens.bare]).decode() if item.opens else None


SUMMARY = '"summary"'


def pack_frame(frame: Frame) -> bytes:
    fields = [frame.format, frame.model, frame.lead, frame.body, frame.system, frame.tools]
    return zlib.compress(rawjson.dumps(fields), 6)


def unpack_frame(data: bytes) -> Frame:
    form, model, lead, body, system, tools = _loads(zlib.decompress(data))
    return Frame(form, model, tuple(lead), body, system, tuple(tools))


def _loads(data: bytes) -> Any:
    read = rawjson.loads(data)
    return rawjson.with_bytes(read) if BYTES.encode() in data else read


def indexable(text: str) -> str:
    """Text as the full-text index takes it: lone surrogates and NULs are no words."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ")
