"""What Anthropic's blocks show."""

from collections.abc import Mapping
from typing import Any

from clew.wire.formats.media import Media, is_public, lines
from clew.wire.formats.plain import Block, string, text_of


def read_media(block: Mapping[str, Any]) -> Media | str | None:
    """What a block shows; a document of plain text is that text, and None is nothing to show."""
    title = string(block.get("title"))
    match block:
        case {"type": "search_result"}:
            return lines(title, block.get("source"), text_of(block.get("content")))
        case {"type": "container_upload"}:
            return Media("document")
        case {"type": "image" | "document" as sort, "source": {"type": str(kind), **source}}:
            if kind in ("text", "content"):
                return lines(title, text_of(source.get("data" if kind == "text" else "content")))
            mime, data, url = (string(source.get(k)) for k in ("media_type", "data", "url"))
            return Media(sort, mime, data, url, title)
    return None


def write_media(media: Media) -> Block | None:
    """The block that shows it; None where the provider would refuse it."""
    if media.shown:
        source = {"type": "base64", "media_type": media.mime, "data": media.data}
    elif media.sort in ("image", "document") and is_public(media.url):
        source = {"type": "url", "url": media.url}
    else:
        return None
    return {"type": media.sort, "source": source}
