"""To which clients the gateway offers tools to recall with, and in which of their requests."""

from collections.abc import Mapping
from typing import Any

from clew.clients.known import AGENTS, PROMPTS
from clew.control import ContextController
from clew.core import rawjson
from clew.errors import ClewError
from clew.exchange.offering import are_offerable
from clew.gateway.settings import OfferedTools
from clew.steps.handoff import NEW_SESSION
from clew.wire.convert.tools import declared


def are_wanted(tools: OfferedTools, headers: Mapping[str, str], raw: bytes) -> bool:
    """Whether a client shall have them: as it was set, else if it is known to take them well."""
    if tools != "auto":
        return tools
    return headers.get("user-agent", "").lower().startswith(AGENTS) or any(prompt in raw for prompt in PROMPTS)


def offerable(raw: bytes, format: str, controller: ContextController) -> Mapping[str, Any] | None:
    """The body, where tools of clew's can be offered in it: where a client has none, nobody expects a call."""
    try:
        body = rawjson.loads(raw)
        if not isinstance(body, dict) or not declared(body, format):
            return None
    except ClewError:
        return None
    own = controller.is_ours
    return body if are_offerable(body, format, own, always=own(NEW_SESSION)) else None
