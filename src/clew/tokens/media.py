"""What images, documents and sound cost, from their headers: nothing is decoded whole and nothing is fetched."""

import base64
import binascii
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clew.tokens.vocabulary import Vocabulary

MediaBlock = Mapping[str, Any]

ANTHROPIC_IMAGE = 1600  # of unknown size: the most a picture costs that Anthropic does not shrink
OPENAI_IMAGE = 765  # of unknown size: four tiles, as for 1024 x 1024
OPENAI_LOW = 85
DOCUMENT = 3000  # behind a URL or an id: about two pages
PAGE = 1500  # a document costs at least this
BYTES_PER_TOKEN = 20  # of a PDF: some 50 KB and 2,500 tokens a page, text and picture
SOUND_BYTES = {"wav": 4800, "pcm16": 4800}  # bytes of a tenth of a second, which is a token; 24 kHz, 16 bit
PACKED_SOUND_BYTES = 1600  # the same for mp3 and the like, at 128 kbit/s
_IMAGES = frozenset({"image", "image_url", "input_image"})
_FILES = frozenset({"document", "file", "input_file", "input_audio", "audio"})


def blocks(wire: Any) -> Iterator[MediaBlock]:
    """The images, documents and sounds in a provider's block, however deep in a tool result or a document."""
    todo = [wire]
    while todo:
        value = todo.pop()
        if isinstance(value, Mapping):
            if is_image(value) or _kind(value) in _FILES:
                yield value
                # A source of type "file" is no second file; a document made of blocks may hold images.
                source = value.get("source")
                todo.append(source.get("content") if isinstance(source, Mapping) else None)
            else:
                todo.extend(value.values())
        elif isinstance(value, list | tuple):
            todo.extend(value)


def _kind(block: MediaBlock) -> str:
    """What a block says that it is: in a schema that was written by a tool, `type` may be anything."""
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def is_image(block: MediaBlock) -> bool:
    """Whether a block is one image, in any provider's spelling."""
    if _kind(block) in _IMAGES:
        return True
    inline = block.get("inlineData") or block.get("inline_data")  # Gemini
    if isinstance(inline, Mapping):
        return str(inline.get("mimeType") or inline.get("mime_type") or "").startswith("image/")
    return "type" not in block and isinstance(block.get("image"), Mapping)  # Bedrock


def cost(block: MediaBlock, format: str, vocabulary: Vocabulary) -> int:
    """The tokens of one image, document or sound."""
    kind = block.get("type")
    if is_image(block):
        return image(block, format)
    if kind in ("input_audio", "audio"):
        sound = block.get("input_audio") or block.get("audio")
        if not isinstance(sound, Mapping):
            return PAGE
        per_token = SOUND_BYTES.get(str(sound.get("format")), PACKED_SOUND_BYTES)
        return _size(sound.get("data")) // per_token + 1
    source = block.get("source") or block.get("file") or block
    if not isinstance(source, Mapping):
        return DOCUMENT
    if source.get("type") == "text":
        return vocabulary.count(str(source.get("data") or ""))
    if source.get("type") == "content":
        return vocabulary.count(_text(source.get("content")))
    size = _size(source.get("data") or source.get("file_data"))
    return max(PAGE, size // BYTES_PER_TOKEN) if size else DOCUMENT


def image(block: MediaBlock, format: str) -> int:
    """The tokens of an image: by area for Anthropic, by tiles of 512 for everyone else."""
    size = dimensions(_data(block))
    if format in ("anthropic", "bedrock"):
        return _by_area(*size) if size else ANTHROPIC_IMAGE
    nested = block.get("image_url")
    detail = nested.get("detail") if isinstance(nested, Mapping) else block.get("detail")
    if detail == "low":
        return OPENAI_LOW
    return _by_tiles(*size) if size else OPENAI_IMAGE


def dimensions(data: str) -> tuple[int, int] | None:
    """Width and height of a PNG, JPEG, GIF or WebP in base64, or None."""
    try:
        head = _bytes(data, 0, 32)
        if head.startswith(b"\x89PNG"):
            return _pair(head[16:20], head[20:24], "big")
        if head.startswith(b"GIF8"):
            return _pair(head[6:8], head[8:10], "little")
        if head.startswith(b"\xff\xd8"):
            return _jpeg(data)
        if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
            return _webp(head)
    except (binascii.Error, ValueError):
        pass
    return None


def picture(block: MediaBlock) -> tuple[str, bytes] | None:
    """The type and bytes of a picture that lies in its block, as those bytes say; nothing else is one."""
    data = _data(block) if is_image(block) else ""
    if not data or dimensions(data) is None:
        return None
    try:
        raw = _bytes(data, 0, _size(data))
    except (binascii.Error, ValueError):
        return None
    kind = {b"\x89P": "png", b"GI": "gif", b"\xff\xd8": "jpeg", b"RI": "webp"}[raw[:2]]
    return f"image/{kind}", raw


def _by_area(width: int, height: int) -> int:
    fit = min(1.0, 1568 / max(width, height))
    return math.ceil(width * fit * height * fit / 750)


def _by_tiles(width: int, height: int) -> int:
    fit = min(1.0, 2000 / max(width, height))
    fit *= min(1.0, 768 / (min(width, height) * fit))
    tiles = math.ceil(round(width * fit) / 512) * math.ceil(round(height * fit) / 512)
    return 85 + 170 * tiles


def _pair(width: bytes, height: bytes, order: Any) -> tuple[int, int] | None:
    size = int.from_bytes(width, order), int.from_bytes(height, order)
    return size if all(size) else None


def _jpeg(data: str) -> tuple[int, int] | None:
    """Step from segment to segment until the one that holds the size, reading a few bytes of each."""
    at = 2
    for _ in range(200):
        marker = _bytes(data, at, 9)
        if len(marker) < 9 or marker[0] != 0xFF:
            return None
        if 0xC0 <= marker[1] <= 0xCF and marker[1] not in (0xC4, 0xC8, 0xCC):
            return _pair(marker[7:9], marker[5:7], "big")
        # 0xFF may be repeated as padding before the marker itself.
        at += 1 if marker[1] == 0xFF else 2 + int.from_bytes(marker[2:4], "big")
    return None


def _webp(head: bytes) -> tuple[int, int] | None:
    kind = head[12:16]
    if kind == b"VP8X":
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = int.from_bytes(head[26:28], "little"), int.from_bytes(head[28:30], "little")
    return (width & 0x3FFF, height & 0x3FFF) if width and height else None


def _bytes(data: str, at: int, size: int) -> bytes:
    """`size` bytes from `at` on, decoded from the base64 around them alone."""
    first = at // 3
    last = (at + size + 2) // 3
    part = data[first * 4 : last * 4].replace("-", "+").replace("_", "/")
    return base64.b64decode(part + "=" * (-len(part) % 4), validate=True)[at - first * 3 :][:size]


def _data(block: MediaBlock) -> str:
    """The base64 of an image block, or nothing for a URL or an id."""
    for key in ("source", "image_url", "image", "inlineData", "inline_data"):
        nested = block.get(key)
        if isinstance(nested, str):
            return _plain(nested)
        if isinstance(nested, Mapping):
            inner = nested.get("data") or nested.get("url") or nested.get("bytes")
            return _data(nested) if inner is None and "source" in nested else _plain(inner)
    return ""


def _plain(data: Any) -> str:
    """The base64 in a data URL or by itself, without line breaks."""
    if isinstance(data, bytes):
        return base64.b64encode(data).decode()
    if not isinstance(data, str) or data.startswith(("http:", "https:")):
        return ""
    if data.startswith("data:"):
        data = data.partition(",")[2]
    return "".join(data.split()) if "\n" in data[:128] else data


def _size(data: Any) -> int:
    return len(_plain(data)) * 3 // 4


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts: Sequence[Any] = content if isinstance(content, list | tuple) else ()
    return "\n".join(str(part.get("text") or "") for part in parts if isinstance(part, Mapping))
