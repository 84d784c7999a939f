"""What Converse's blocks show."""

import re
from collections.abc import Mapping
from typing import Any

from clew.wire.formats.media import FORMATS, MIMES, Media, in_base64, lines
from clew.wire.formats.plain import Block, string, text_of


def read_media(block: Mapping[str, Any]) -> Media | str | None:
    """What a block shows; a document of plain text is that text, and None is nothing to show."""
    match block:
        case {"searchResult": {**found}}:
            return lines(found.get("title"), found.get("source"), text_of(found.get("content")))
        case {"guardContent": {"image": {**held}}}:
            return read_media({"image": held})
    for sort in ("image", "document", "audio", "video"):
        match block.get(sort):
            case {"source": {"text": str(text)}}:
                return text
            case {"source": {"content": list(content)}}:
                return text_of(content)
            case {**held}:
                source = held.get("source")
                data = source.get("bytes") if isinstance(source, Mapping) else None
                name, format = string(held.get("name")), string(held.get("format"))
                return Media(sort, MIMES.get(format, ""), in_base64(data), name=name)
    return None


def write_media(media: Media) -> Block | None:
    """The block that shows it; None where the provider would refuse it."""
    format = FORMATS.get(media.mime)
    if not media.data or not format or not (media.shown or media.sort in ("audio", "video")):
        return None
    held: Block = {"format": format, "source": {"bytes": media.data}}
    if media.sort == "document":
        name = re.sub(r"[^a-zA-Z0-9()\[\]-]+", " ", media.name.removesuffix(".pdf")).strip()
        held["name"] = name[:180] or "document"
    return {media.sort: held}
