"""What Gemini's parts show."""

from collections.abc import Mapping
from typing import Any

from clew.wire.formats.media import MIMES, Media, Sort, in_base64, is_public, known_mime
from clew.wire.formats.plain import Block, string


def read_media(block: Mapping[str, Any]) -> Media | None:
    """What a block shows; a document of plain text is that text, and None is nothing to show."""
    for key in ("inlineData", "inline_data", "fileData", "file_data"):
        if isinstance(held := block.get(key), Mapping):
            mime = known_mime(string(held.get("mimeType") or held.get("mime_type")))
            kind = mime.partition("/")[0]
            sort: Sort = kind if kind in ("image", "audio", "video") else "document"  # type: ignore[assignment]
            url = string(held.get("fileUri") or held.get("file_uri"))
            # Files that were uploaded to Google are nobody else's to read.
            return Media(sort, mime, in_base64(held.get("data")), "" if "generativelanguage" in url else url)
    return None


def write_media(media: Media) -> Block | None:
    """The block that shows it; None where the provider would refuse it."""
    mime = media.mime or MIMES.get(media.url.rpartition(".")[2].lower(), "")
    if media.data and mime:
        return {"inlineData": {"mimeType": mime, "data": media.data}}
    if mime and is_public(media.url):
        return {"fileData": {"mimeType": mime, "fileUri": media.url}}
    return None
