"""Pictures, documents, sound: from the block of one format to that of another, or to words where there is none."""

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from clew.core import rawjson
from clew.core.items import Item
from clew.wire.formats.plain import Block, string, text_of

Sort = Literal["image", "document", "audio", "video"]

PDF = "application/pdf"
MIMES: Mapping[str, str] = {
    "png": "image/png",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "pdf": PDF,
    "txt": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
}
FORMATS: Mapping[str, str] = {mime: name for name, mime in MIMES.items() if name != "jpg"}
PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})  # what everybody can see


@dataclass(frozen=True, slots=True)
class Media:
    """Something to see or hear, whoever says it."""

    sort: Sort
    mime: str = ""
    data: str = ""  # base64
    url: str = ""
    name: str = ""
    detail: str = ""  # how closely OpenAI's models should look

    @property
    def placeholder(self) -> str:
        """What a model is told that cannot be shown it."""
        return f"[{' '.join(filter(None, (self.sort, self.name or self.url)))}, not shown to this model]"

    @property
    def shown(self) -> bool:
        """Whether its data are a picture or a PDF that every provider takes."""
        return bool(self.data) and (self.mime in PICTURES if self.sort == "image" else self.mime == PDF)

    @property
    def inline(self) -> str:
        """Its data as a URL."""
        return f"data:{self.mime};base64,{self.data}"


def read_media(block: Mapping[str, Any], was: str) -> Media | str | None:
    """What a block of this format shows; a document of plain text is that text, and None is nothing to show."""
    found = _READERS[was](block)
    if isinstance(found, Media) and found.data and found.mime.startswith("text/"):
        try:
            return b64decode(found.data, validate=True).decode()
        except ValueError:
            return Media(found.sort, name=found.name)
    return found


def write_media(media: Media, to: str) -> Block | None:
    """The block that shows it in this format; None where the provider would refuse it."""
    return _WRITERS[to](media)


def parts_of(result: Item, was: str) -> list[str | Media]:
    """What a result gave back: words, and things to see."""
    held: Any = result.wire or {}
    if was in ("bedrock", "gemini"):
        held = next((v for v in held.values() if isinstance(v, Mapping)), {})
    content = held.get({"openai_responses": "output", "gemini": "parts"}.get(was, "content"))
    if not isinstance(content, list):
        return [result.text]
    said: list[str | Media] = [result.text] if was == "gemini" else []
    return said + [part for block in content if isinstance(block, Mapping) and (part := _part(block, was))]


def has_failed(result: Item, was: str) -> bool:
    """Whether a result says that its call failed."""
    match was, result.wire:
        case ("anthropic", {"is_error": True}) | ("bedrock", {"toolResult": {"status": "error"}}):
            return True
        case "gemini", {"functionResponse": {"response": {"error": _, **more}}}:
            return not more
        case "gemini", {"function_response": {"response": {"error": _, **more}}}:
            return not more
    return False


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
        return _from_url("image", value).placeholder
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


def _from_url(sort: Sort, url: str, name: str = "", detail: str = "") -> Media:
    if match := re.match(r"data:([^;,]*);base64,", url):
        return Media(sort, _known(match[1]), url[match.end() :], name=name, detail=detail)
    return Media(sort, url="" if url.startswith("data:") else url, name=name, detail=detail)


def _known(mime: str) -> str:
    return "image/jpeg" if mime == "image/jpg" else mime


def _lines(*texts: Any) -> str:
    return "\n".join(t for t in texts if isinstance(t, str) and t)


def _read_anthropic(block: Mapping[str, Any]) -> Media | str | None:
    title = string(block.get("title"))
    match block:
        case {"type": "search_result"}:
            return _lines(title, block.get("source"), text_of(block.get("content")))
        case {"type": "container_upload"}:
            return Media("document")
        case {"type": "image" | "document" as sort, "source": {"type": str(kind), **source}}:
            if kind in ("text", "content"):
                return _lines(title, text_of(source.get("data" if kind == "text" else "content")))
            mime, data, url = (string(source.get(k)) for k in ("media_type", "data", "url"))
            return Media(sort, mime, data, url, title)
    return None


def _read_openai(block: Mapping[str, Any]) -> Media | None:
    match block:
        case {"type": "image_url" | "input_image", "image_url": str(url)}:
            return _from_url("image", url, detail=string(block.get("detail")))
        case {"type": "image_url", "image_url": {"url": str(url), **more}}:
            return _from_url("image", url, detail=string(more.get("detail")))
        case {"type": "input_audio", "input_audio": {"data": str(data), "format": str(format)}}:
            return Media("audio", MIMES.get(format, f"audio/{format}"), data)
        case {"type": "file", "file": {**file}} | {"type": "input_file", **file}:
            name, data = string(file.get("filename")), string(file.get("file_data"))
            if data and not data.startswith("data:"):
                return Media("document", MIMES.get(name.rpartition(".")[2].lower(), ""), data, name=name)
            return _from_url("document", data or string(file.get("file_url")), name)
        case {"type": "image_url" | "input_image" | "video_url" | "input_audio" as kind}:
            return Media("image" if "image" in kind else "video" if "video" in kind else "audio")
    return None


def _read_bedrock(block: Mapping[str, Any]) -> Media | str | None:
    match block:
        case {"searchResult": {**found}}:
            return _lines(found.get("title"), found.get("source"), text_of(found.get("content")))
        case {"guardContent": {"image": {**held}}}:
            return _read_bedrock({"image": held})
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
                return Media(sort, MIMES.get(format, ""), _base64(data), name=name)
    return None


def _read_gemini(block: Mapping[str, Any]) -> Media | None:
    for key in ("inlineData", "inline_data", "fileData", "file_data"):
        if isinstance(held := block.get(key), Mapping):
            mime = _known(string(held.get("mimeType") or held.get("mime_type")))
            kind = mime.partition("/")[0]
            sort: Sort = kind if kind in ("image", "audio", "video") else "document"  # type: ignore[assignment]
            url = string(held.get("fileUri") or held.get("file_uri"))
            # Files that were uploaded to Google are nobody else's to read.
            return Media(sort, mime, _base64(held.get("data")), "" if "generativelanguage" in url else url)
    return None


def _base64(data: Any) -> str:
    return b64encode(data).decode() if isinstance(data, bytes | bytearray) else string(data)


def _write_anthropic(media: Media) -> Block | None:
    if media.shown:
        source = {"type": "base64", "media_type": media.mime, "data": media.data}
    elif media.sort in ("image", "document") and _is_public(media.url):
        source = {"type": "url", "url": media.url}
    else:
        return None
    return {"type": media.sort, "source": source}


def _write_chat(media: Media) -> Block | None:
    if media.sort == "image" and (media.shown or _is_public(media.url)):
        url = media.inline if media.data else media.url
        return {"type": "image_url", "image_url": {"url": url} | ({"detail": media.detail} if media.detail else {})}
    if media.sort == "audio" and media.data and FORMATS.get(media.mime) in ("wav", "mp3"):
        return {"type": "input_audio", "input_audio": {"data": media.data, "format": FORMATS[media.mime]}}
    if media.shown:
        return {"type": "file", "file": {"filename": media.name or "document.pdf", "file_data": media.inline}}
    return None


def _write_responses(media: Media) -> Block | None:
    if media.sort not in ("image", "document") or not (media.shown or _is_public(media.url)):
        return None
    if media.sort == "image":
        url = media.inline if media.data else media.url
        return {"type": "input_image", "image_url": url, "detail": media.detail or "auto"}
    if media.data:
        return {"type": "input_file", "filename": media.name or "document.pdf", "file_data": media.inline}
    return {"type": "input_file", "file_url": media.url}


def _write_bedrock(media: Media) -> Block | None:
    format = FORMATS.get(media.mime)
    if not media.data or not format or not (media.shown or media.sort in ("audio", "video")):
        return None
    held: Block = {"format": format, "source": {"bytes": media.data}}
    if media.sort == "document":
        name = re.sub(r"[^a-zA-Z0-9()\[\]-]+", " ", media.name.removesuffix(".pdf")).strip()
        held["name"] = name[:180] or "document"
    return {media.sort: held}


def _write_gemini(media: Media) -> Block | None:
    mime = media.mime or MIMES.get(media.url.rpartition(".")[2].lower(), "")
    if media.data and mime:
        return {"inlineData": {"mimeType": mime, "data": media.data}}
    if mime and _is_public(media.url):
        return {"fileData": {"mimeType": mime, "fileUri": media.url}}
    return None


def _is_public(url: str) -> bool:
    return url.startswith(("https://", "http://"))


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Media | str | None]] = {
    "openai_chat": _read_openai,
    "anthropic": _read_anthropic,
    "openai_responses": _read_openai,
    "bedrock": _read_bedrock,
    "gemini": _read_gemini,
}
_WRITERS: Mapping[str, Callable[[Media], Block | None]] = {
    "openai_chat": _write_chat,
    "anthropic": _write_anthropic,
    "openai_responses": _write_responses,
    "bedrock": _write_bedrock,
    "gemini": _write_gemini,
}
