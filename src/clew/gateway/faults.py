"""What went wrong, in the words and the shape of the provider that a client believes to speak with."""

import os

import aiohttp

from clew.core import rawjson
from clew.errors import BadRequest, ClewError, OverBudget, SecretFound, TooLarge
from clew.gateway.http import GatewayReply, Refused, json_reply
from clew.wire.formats import named


def refusal(error: Exception, format: str) -> GatewayReply:
    """What a client is told of an error."""
    if isinstance(error, Refused):
        return error_reply(error.status, str(error), format, **error.headers)
    if isinstance(error, TooLarge):
        return error_reply(413, str(error), format)
    if isinstance(error, BadRequest | OverBudget | SecretFound):
        return error_reply(400, str(error), format)
    if isinstance(error, ClewError):
        return error_reply(503, f"clew: {error}", format)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return error_reply(502, "clew: the upstream's name is not found: this machine may have no network", format)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return error_reply(502, f"clew: the upstream cannot be reached ({_reason(error)})", format)
    if isinstance(error, TimeoutError):  # of the loop, and of connections
        return error_reply(504, "clew: the upstream said nothing for too long", format)
    if isinstance(error, OSError | aiohttp.ClientError):
        return error_reply(502, f"clew: the upstream cannot be reached ({type(error).__name__})", format)
    return error_reply(500, f"clew failed on this request ({type(error).__name__})", format)


def _reason(error: aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError) -> str:
    """Why there is no connection, in the system's words."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "it takes too long to connect"
    return os.strerror(error.errno) if error.errno else type(error).__name__


def error_reply(status: int, message: str, format: str, code: str | None = None, **headers: str) -> GatewayReply:
    """An error in the shape of a format."""
    return json_reply(rawjson.dumps(named(format).error(status, message, code)), status, **headers)
