"""How Responses takes pictures and documents."""

from clew.wire.formats.media import Media, is_public
from clew.wire.formats.plain import Block


def write_media(media: Media) -> Block | None:
    """The block that shows it; None where the provider would refuse it."""
    if media.sort not in ("image", "document") or not (media.shown or is_public(media.url)):
        return None
    if media.sort == "image":
        url = media.inline if media.data else media.url
        return {"type": "input_image", "image_url": url, "detail": media.detail or "auto"}
    if media.data:
        return {"type": "input_file", "filename": media.name or "document.pdf", "file_data": media.inline}
    return {"type": "input_file", "file_url": media.url}
