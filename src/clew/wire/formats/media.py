"""Something to see or hear, as every format may show it, and what their readers and writers share."""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from clew.wire.formats.plain import string

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


def from_url(sort: Sort, url: str, name: str = "", detail: str = "") -> Media:
    """What a URL shows, which may hold it."""
    if match := re.match(r"data:([^;,]*);base64,", url):
        return Media(sort, known_mime(match[1]), url[match.end() :], name=name, detail=detail)
    return Media(sort, url="" if url.startswith("data:") else url, name=name, detail=detail)


def known_mime(mime: str) -> str:
    """The usual name of a type."""
    return "image/jpeg" if mime == "image/jpg" else mime


def lines(*texts: Any) -> str:
    """These texts, one under the other; what is none is left out."""
    return "\n".join(t for t in texts if isinstance(t, str) and t)


def in_base64(data: Any) -> str:
    """Data as text; bytes are what SDKs hold."""
    return b64encode(data).decode() if isinstance(data, bytes | bytearray) else string(data)


def is_public(url: str) -> bool:
    """Whether every provider may fetch it."""
    return url.startswith(("https://", "http://"))
