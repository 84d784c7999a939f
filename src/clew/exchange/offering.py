"""In which requests tools to recall with can be offered: what is asked here has one answer for a whole session.

Tools stand before all else that a provider caches.
"""

from collections.abc import Mapping
from typing import Any

from clew import wire
from clew.wire.convert.demands import is_bound
from clew.wire.convert.tools import declared


def is_offerable(body: Mapping[str, Any], format: str) -> bool:
    """Whether tools may join those of a body. Raises `ClewError` for a body that is none.

    Who has no tools is asked for a text or an object, and nobody expects a call; nor where the answer must be a certain
    call or object. Who has clew's tools by MCP gets them all the same: a server beside the client may not know which
    conversation this is.
    """
    return bool(declared(body, format)) and not is_bound(wire.named(format).split(body)[0], body)
