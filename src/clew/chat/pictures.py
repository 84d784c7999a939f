"""Pictures that a message names with an @: read from their files, and sent with it."""

import re
import shlex
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

from clew.catalog import Model
from clew.config import write_key
from clew.errors import BadRequest
from clew.wire.formats.media import Media

NAMED_PICTURE = re.compile(r"""(?:^|\s)@(?:"([^"\n]+)"|(\S+))""")
PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
PICTURE_BYTES = 3_750_000  # 5 MB in base64, the least that a provider takes of one
MOST_PICTURES = 20  # in a message
PASTED_CHARACTERS = 1_000  # of a paste that may be a path


class BadPicture(BadRequest):
    """A picture that cannot be sent."""


def named_pictures(text: str, place: Callable[[str], Path], model: Model) -> list[Media]:
    """The pictures that a text names, in its order. Raises `BadPicture` where one cannot be sent to the model."""
    names = [quoted or bare for quoted, bare in NAMED_PICTURE.findall(text)]
    wanted = dict.fromkeys(name for name in names if name.lower().endswith(PICTURE_SUFFIXES))
    files = {name: file for name in wanted if (file := place(name)).is_file()}
    if files and not model.images:
        remedy = f"choose another with /model, or clew config set {write_key(('models', model.name, 'images'))} true"
        raise BadPicture(f"{model.name} takes no images, as far as clew knows: {remedy} if it does")
    found = [_read(name, file) for name, file in files.items()]
    if len(found) > MOST_PICTURES:
        raise BadPicture(f"{len(found)} pictures are too many for a message: {MOST_PICTURES} at most")
    return found


def pasted_picture(text: str, place: Callable[[str], Path]) -> str:
    """How to name the picture whose path was pasted, or dropped on the terminal; nothing where it is none."""
    try:
        words = shlex.split(text) if len(text) <= PASTED_CHARACTERS else []
    except ValueError:
        return ""
    path = words[0].removeprefix("file://") if len(words) == 1 else ""
    if not path.lower().endswith(PICTURE_SUFFIXES) or '"' in path or not place(path).is_file():
        return ""
    return f'@"{path}" ' if " " in path else f"@{path} "


def _read(name: str, file: Path) -> Media:
    try:
        with file.open("rb") as opened:
            data = opened.read(PICTURE_BYTES + 1)
    except OSError as error:
        raise BadPicture(f"{name} cannot be read: {error.strerror}") from error
    if len(data) > PICTURE_BYTES:
        raise BadPicture(f"{name} is too large to send: {file.stat().st_size:,} bytes, and {PICTURE_BYTES:,} at most")
    if not (mime := _mime(data)):
        raise BadPicture(f"{name} is no PNG, JPEG, GIF or WebP, whatever its name says")
    return Media("image", mime, b64encode(data).decode(), name=name)


def _mime(data: bytes) -> str:
    """The kind of picture that data are, by how they begin: providers refuse one that is not what it is said to be."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data.startswith(b"RIFF") and data[8:12] == b"WEBP" else ""
