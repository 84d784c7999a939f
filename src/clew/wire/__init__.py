"""Wire formats: bodies to frame and items, and back, losing nothing.

A format is a package (`formats/`): a class that says how it splits a body into frame and messages, how it reads and
writes these, what its provider refuses, how it declares tools, shows pictures, takes results, words errors and streams
answers. Beside them: from one to another (convert/), what several have in common of rules (rules/) and of streams
(streams/), errors about size (overflow/), and what a path asks for (requests).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from clew.clients.voices import attributed, client_of
from clew.core.items import Frame, Item
from clew.errors import BadRequest
from clew.wire.formats import AMBIGUOUS, FORMATS, detect, detect_list, named
from clew.wire.rules.check import Broken, check

__all__ = ["AMBIGUOUS", "FORMATS", "Broken", "check", "decode", "detect", "detect_list", "encode", "named"]


def decode(body: Mapping[str, Any], format: str | None = None) -> tuple[Frame, list[Item]]:
    """The frame and the items of a request body, which is not changed."""
    if not isinstance(body, Mapping):
        raise BadRequest(f"the body: expected an object, got {type(body).__name__}")
    codec = named(format or detect(body))
    try:
        frame, messages = codec.split(body)
        items = [item for i, m in enumerate(messages) for item in codec.read(m, f"{codec.LIST}[{i}]")]
    except RecursionError:
        raise BadRequest("the body is nested too deeply to read") from None
    return frame, attributed(items, client_of(frame.system), begins=True)


def encode(frame: Frame, items: Iterable[Item]) -> dict[str, Any]:
    """The body that sends `items` in this frame; shares nothing with what was decoded."""
    codec = named(frame.format)
    return codec.join(frame, codec.write(items))
