"""What went wrong, where a provider says so inside of its answer."""

from collections.abc import Mapping
from typing import Any

from clew.core import rawjson
from clew.errors import Fault, ModelError

_LONG = 2_000  # characters of what it says
# Types and codes of Anthropic and OpenAI.
_KINDS: Mapping[str, Fault] = {
    "api_error": "busy",
    "authentication_error": "auth",
    "internal_error": "busy",
    "invalid_api_key": "auth",
    "overloaded_error": "busy",
    "permission_error": "auth",
    "rate_limit_error": "busy",
    "rate_limit_exceeded": "busy",
    "server_error": "busy",
    "server_is_overloaded": "busy",
    "service_unavailable": "busy",
    "slow_down": "busy",
    "timeout_error": "timeout",
}


def failure(error: Any) -> ModelError:
    """The error that an event tells of: an object with a message, a type and a code, any of which may be missing."""
    if not isinstance(error, Mapping):
        error = {"message": str(error)}
    said = error.get("message") or rawjson.dumps(error).decode()
    return ModelError(" ".join(str(said).split())[:_LONG], _fault(error))


def _fault(error: Mapping[str, Any]) -> Fault:
    code = error.get("code")
    if isinstance(code, int):  # a router gives the status of the server behind it
        return fault_of(code, error)
    if _too_long(error):
        return "overflow"
    return _KINDS.get(str(code)) or _KINDS.get(str(error.get("type"))) or "refused"


def fault_of(status: int, error: BaseException | Mapping[str, Any] | str) -> Fault:
    """The kind of fault that a status and what was said with it are."""
    if status in (401, 403):
        return "auth"
    if _too_long(error):  # before the status: servers say it with 400, 413 and 500
        return "overflow"
    if status == 408:
        return "timeout"
    if "insufficient_quota" in str(error):  # OpenAI says it with 429, too; no waiting helps
        return "refused"
    return "busy" if status == 429 or status >= 500 else "refused"


def _too_long(error: BaseException | Mapping[str, Any] | str) -> bool:
    from clew.wire.overflow import overflow  # its many patterns are compiled only where there is an error

    return overflow(error) is not None
