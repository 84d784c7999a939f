"""Pictures, documents, sound: from the block of one format to that of another, or to words where there is none."""

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from clew.core import rawjson
from clew.core.items import Item
from clew.wire.formats import named
from clew.wire.formats.media import Media, from_url
from clew.wire.formats.plain import text_of


def read_media(block: Mapping[str, Any], was: str) -> Media | str | None:
    """What a block of this format shows; a document of plain text is that text, and None is nothing to show."""
    found = named(was).read_media(block)
    if isinstance(found, Media) and found.data and found.mime.startswith("text/"):
        try:
            return b64decode(found.data, validate=True).decode()
        except ValueError:
            return Media(found.sort, name=found.name)
    return found


def parts_of(result: Item, was: str) -> list[str | Media]:
    """What a result gave back: words, and things to see."""
    content = named(was).content_of(result)
    if not isinstance(content, list):
        return [result.text]
    return [part for block in content if isinstance(block, Mapping) and (part := _part(block, was))]


def readable(value: Any) -> Any:
    """What of a block another model can read: no seals, no ids, nothing empty."""
    if isinstance(value, Mapping):
        kept = {k: readable(v) for k, v in value.items() if k not in _SEALED}
        if value.get("type") == "text":  # a document in plain words has them here
            kept["data"] = readable(value.get("data"))
        said = {k: v for k, v in kept.items() if v not in _NOTHING and not (k == "type" and str(v).endswith("text"))}
        # A type by itself says something only where there was nothing else to say.
        return {} if said.keys() == {"type"} != value.keys() else said
    if isinstance(value, list | tuple):
        return [kept for v in value if (kept := readable(v)) not in _NOTHING]
    if isinstance(value, str) and value.startswith("data:"):
        return from_url("image", value).placeholder
    return value if isinstance(value, str | int | float) else None


def words(value: Any) -> str:
    """What can be read in a block, as short as it can be said."""
    kept = readable(value)
    while isinstance(kept, dict | list) and len(kept) == 1:
        kept = next(iter(kept.values() if isinstance(kept, dict) else kept))
    return kept if isinstance(kept, str) else "" if kept in _NOTHING else rawjson.dumps(kept).decode()


_SEALED = frozenset(
    "encrypted_content encrypted_index encrypted_stdout signature thoughtSignature thought_signature redactedContent "
    "data fingerprint id call_id tool_use_id toolUseId approval_request_id status caller container_id file_id "
    "toolType".split()
)
_NOTHING: tuple[Any, ...] = (None, "", [], {})


def _part(block: Mapping[str, Any], was: str) -> str | Media:
    if "json" in block:
        return rawjson.dumps(block["json"]).decode()
    return read_media(block, was) or text_of(block) or words(block)
