"""How values lie on disk: digests as raw bytes, items as JSON, compressed where it pays."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from clew.core import rawjson
from clew.core.items import Digests, Item, Kind, Opening, Role
from clew.errors import BadRequest
from clew.store.compressing import compress, decompress, inflate

WIDTH = 16  # bytes of a digest
# Kinds and roles are letters on disk; in rows of older versions they are words.
_KINDS: Mapping[str, Kind] = {
    "t": "text",
    "n": "reasoning",
    "c": "call",
    "r": "result",
    "m": "media",
    "s": "summary",
    "o": "opaque",
}
_ROLES: Mapping[str, Role] = {"s": "system", "u": "user", "a": "assistant", "t": "tool"}
_LETTERS: dict[str, str] = {word: letter for letters in (_KINDS, _ROLES) for letter, word in letters.items()}
MASKED_ID = "secret_"  # as it begins the id of a call that was one
MASK = b"[secret: "  # as the secrets policy begins what it puts in a secret's place
WORTH = 60  # bytes from which compressing pays
PLAIN, ZLIB, ZSTD = 0, 1, 2  # how a body is packed; the second by older versions


def pack(ids: Iterable[str]) -> bytes:
    return bytes.fromhex("".join(ids))


def unpack(blob: bytes | None) -> list[str]:
    text = (blob or b"").hex()
    return [text[i : i + 2 * WIDTH] for i in range(0, len(text), 2 * WIDTH)]


def listed(values: Iterable[str | int]) -> str:
    """A list as statements take it."""
    return json.dumps(list(values))


def pack_item(item: Item) -> tuple[int, int, bytes]:
    """(how packed, size before, data) of what an item says."""
    data = rawjson.dumps(fields_of(item))
    packed, stored = squeeze(data)
    return packed, len(data), stored


def letter(word: str) -> str:
    """A kind or a role as it is stored."""
    return _LETTERS.get(word, word)


def squeeze(data: bytes) -> tuple[int, bytes]:
    """How data is packed, and what it is then: as it is, if it is short or gets no shorter."""
    if len(data) >= WORTH:
        stored = compress(data)
        if len(stored) < len(data):
            return ZSTD, stored
    return PLAIN, data


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
    fields = read_json(inflated(packed, data))
    kind, role = _KINDS.get(kind, kind), _ROLES.get(role, role)
    if kind not in _KINDS.values() or role not in _ROLES.values():
        raise BadRequest(f"unknown item kind {kind!r} with role {role!r}")
    opens = opening(opens)
    if opens == SUMMARY:
        return Item("summary", role, **fields)
    kind = "text" if kind == "summary" else kind
    keys, bare, *voice = rawjson.loads(opens) if opens else (None, False)
    stood = None if keys is None else Opening(keys, bare)
    return Item(kind, role, **fields, opens=stood, voice=voice[0] if voice else "")


def is_intact(digests: Digests, content: str, item: Item, packed: int, data: bytes) -> bool:
    """Whether an item is the one of which this is the digest; of one whose secrets are masked that cannot be told."""
    masked = item.call_id.startswith(MASKED_ID) or MASK in inflated(packed, data)
    return masked or digests.content(item) == content


def inflated(packed: int, data: bytes) -> bytes:
    """Data as it was before it was packed."""
    if packed == ZSTD:
        return decompress(data)
    if packed not in (PLAIN, ZLIB):
        raise ValueError(f"packed in an unknown way: {packed}")
    return inflate(data) if packed else data


def pack_opening(item: Item) -> str | None:
    """How an item stood: the message it opened, or that it is a summary, which says what a text may say too; and who
    said it, where its text does not say so."""
    if item.kind == "summary":
        return SUMMARY
    if item.opens is None and not item.voice:
        return None
    stood = (item.opens.keys, item.opens.bare) if item.opens else (None, False)
    return rawjson.dumps([*stood, *([item.voice] if item.voice else [])]).decode()


SUMMARY = '"summary"'

# What most openings are, by a letter each that stands for them on disk: new ones come last.
_OPENINGS = (
    ("t", '[{"role":"tool"},false]'),
    ("u", '[{"role":"user"},false]'),
    ("U", '[{"role":"user"},true]'),
    ("a", '[{"role":"assistant"},false]'),
    ("A", '[{"role":"assistant"},true]'),
    ("n", '[{"role":"assistant","content":null},false]'),
    ("e", '[{"role":"assistant","content":""},false]'),
    ("m", '[{"role":"model"},false]'),
    ("i", '[{"type":"message","role":"user"},false]'),
    ("o", '[{"type":"message","role":"assistant"},false]'),
    ("s", SUMMARY),
)
_LONG = dict(_OPENINGS)
_BRIEF = {long: brief for brief, long in _OPENINGS}


def brief_opening(opens: str | None) -> str | None:
    """An opening as it is stored."""
    return _BRIEF.get(opens, opens) if opens else None


def opening(stored: str | None) -> str | None:
    """An opening as `pack_opening` has it."""
    return _LONG.get(stored, stored) if stored else None


def read_json(data: bytes) -> Any:
    """JSON as it was before it was written, bytes in it too."""
    read = rawjson.loads(data)
    return rawjson.with_bytes(read) if rawjson.BYTES.encode() in data else read


def indexable(text: str) -> str:
    """Text as the full-text index takes it: lone surrogates and NULs are no words."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ")
