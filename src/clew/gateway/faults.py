"""What went wrong, in the words and the shape of the provider that a client believes to speak with."""

import os
from collections.abc import Mapping

import aiohttp

from clew.core import rawjson
from clew.errors import BadRequest, ClewError, OverBudget, SecretFound, TooLarge
from clew.gateway.http import GatewayReply, Refused, json_reply

_ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
_OPENAI = {401: "invalid_request_error", 429: "rate_limit_exceeded"}
_GEMINI = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def refusal(error: Exception, format: str) -> GatewayReply:
    """What a client is told of an error."""
    if isinstance(error, Refused):
        return told(error.status, str(error), format, **error.headers)
    if isinstance(error, TooLarge):
        return told(413, str(error), format)
    if isinstance(error, BadRequest | OverBudget | SecretFound):
        return told(400, str(error), format)
    if isinstance(error, ClewError):
        return told(503, f"clew: {error}", format)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return told(502, "clew: the upstream's name is not found: this machine may have no network", format)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return told(502, f"clew: the upstream cannot be reached ({_reason(error)})", format)
    if isinstance(error, TimeoutError):  # of the loop, and of connections
        return told(504, "clew: the upstream said nothing for too long; gateway.upstream_silence says how long", format)
    if isinstance(error, OSError | aiohttp.ClientError):
        return told(502, f"clew: the upstream cannot be reached ({type(error).__name__})", format)
    return told(500, f"clew failed on this request ({type(error).__name__})", format)


def _reason(error: aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError) -> str:
    """Why there is no connection, in the system's words."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "it takes too long to connect"
    return os.strerror(error.errno) if error.errno else type(error).__name__


def told(status: int, message: str, format: str, code: str | None = None, **headers: str) -> GatewayReply:
    """An error in the shape of a format."""
    kind: str | None
    said: Mapping[str, object]
    match format:
        case "anthropic":
            kind = _ANTHROPIC.get(status, "api_error" if status >= 500 else "invalid_request_error")
            said = {"type": "error", "error": {"type": kind, "message": message}}
        case "gemini":
            kind = _GEMINI.get(status, "INTERNAL" if status >= 500 else "FAILED_PRECONDITION")
            said = {"error": {"code": status, "message": message, "status": kind}}
        case _:
            kind = _OPENAI.get(status, "server_error" if status >= 500 else "invalid_request_error")
            said = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return json_reply(rawjson.dumps(said), status, **headers)
