"""What the parts of OpenAI's messages show, in both of its APIs."""

from collections.abc import Mapping
from typing import Any

from clew.wire.formats.media import FORMATS, MIMES, Media, from_url, is_public
from clew.wire.formats.plain import Block, string


def read_media(block: Mapping[str, Any]) -> Media | None:
    """What a block shows; a document of plain text is that text, and None is nothing to show."""
    match block:
        case {"type": "image_url" | "input_image", "image_url": str(url)}:
            return from_url("image", url, detail=string(block.get("detail")))
        case {"type": "image_url", "image_url": {"url": str(url), **more}}:
            return from_url("image", url, detail=string(more.get("detail")))
        case {"type": "input_audio", "input_audio": {"data": str(data), "format": str(format)}}:
            return Media("audio", MIMES.get(format, f"audio/{format}"), data)
        case {"type": "file", "file": {**file}} | {"type": "input_file", **file}:
            name, data = string(file.get("filename")), string(file.get("file_data"))
            if data and not data.startswith("data:"):
                return Media("document", MIMES.get(name.rpartition(".")[2].lower(), ""), data, name=name)
            return from_url("document", data or string(file.get("file_url")), name)
        case {"type": "image_url" | "input_image" | "video_url" | "input_audio" as kind}:
            return Media("image" if "image" in kind else "video" if "video" in kind else "audio")
    return None


def write_media(media: Media) -> Block | None:
    """The block that shows it; None where the provider would refuse it."""
    if media.sort == "image" and (media.shown or is_public(media.url)):
        url = media.inline if media.data else media.url
        return {"type": "image_url", "image_url": {"url": url} | ({"detail": media.detail} if media.detail else {})}
    if media.sort == "audio" and media.data and FORMATS.get(media.mime) in ("wav", "mp3"):
        return {"type": "input_audio", "input_audio": {"data": media.data, "format": FORMATS[media.mime]}}
    if media.shown:
        return {"type": "file", "file": {"filename": media.name or "document.pdf", "file_data": media.inline}}
    return None
