"""In which requests tools to recall with can be offered: what is asked here has one answer for a whole session.

Tools stand before all else that a provider caches.
"""

from collections.abc import Callable, Mapping
from typing import Any

from clew import wire
from clew.errors import ClewError
from clew.wire.convert.demands import is_answered_once, is_bound
from clew.wire.convert.tools import declared


def are_offerable(body: Mapping[str, Any], format: str, is_ours: Callable[[str], bool], always: bool = False) -> bool:
    """Whether tools of clew's may join those of a body: one answer comes, and now, and no name is taken.

    `always`: who decides needs them to act, or somebody asked for them, whatever the answer must be.
    """
    try:
        names = declared(body, format)
        return is_answered_once(body) and not any(map(is_ours, names)) and (always or _is_free(body, format))
    except ClewError:  # what is wrong with it is its provider's to say
        return False


def taken(body: Mapping[str, Any], format: str, is_ours: Callable[[str], bool]) -> list[str]:
    """The names of clew's tools that a body has for tools of its own; none where nobody can tell."""
    try:
        return sorted(filter(is_ours, declared(body, format)))
    except ClewError:
        return []


def _is_free(body: Mapping[str, Any], format: str) -> bool:
    """Whether its model may call tools as it likes. Raises `ClewError` for a body that is none.

    Who has no tools is asked for a text or an object, and nobody expects a call; nor where the answer must be a certain
    call or object. Who has clew's tools by MCP gets them all the same: a server beside the client may not know which
    conversation this is.
    """
    return bool(declared(body, format)) and not is_bound(wire.named(format).split(body)[0], body)
