"""What a request to a provider is, by its path and its body: wrap, the gateway and the test's provider read it here."""

from collections.abc import Container, Mapping
from typing import Any

from clew.core import rawjson
from clew.wire.formats import AMBIGUOUS, FORMATS
from clew.wire.formats.base import ApiCall

# Under which a request names a history, or the beginning of one, that its provider has and that cannot be seen.
_ELSEWHERE = ("previous_response_id", "conversation", "thread", "cachedContent", "cached_content")


def api_call(path: str) -> ApiCall | None:
    """What a path at the root of a provider's API asks for; None: nothing of this kind."""
    return next((call for one in FORMATS.values() if (call := one.read_request(path))), None)


def api_call_below(path: str) -> ApiCall | None:
    """The same where a base URL may have a path of its own, and OpenAI's need not end with a version."""
    return next((call for one in FORMATS.values() if (call := one.read_request_below(path))), None)


def format_of_client(path: str, headers: Container[str]) -> str:
    """The format that a client speaks whose path asks for nothing that is known."""
    return next((one.NAME for one in FORMATS.values() if one.is_spoken(path, headers)), AMBIGUOUS)


def with_model(raw: bytes, model: str) -> bytes:
    """The body of a request whose path names the model, as clew reads it: the body names it, too."""
    opened = raw.lstrip()
    return _naming(model) + opened[1:] if model and opened[:1] == b"{" else raw


def without_model(raw: bytes, model: str) -> bytes:
    """The same body as it goes out."""
    return b"{" + raw.removeprefix(_naming(model))


def _naming(model: str) -> bytes:
    return b'{"model":' + rawjson.dumps(model) + b","


def is_elsewhere(body: Mapping[str, Any]) -> bool:
    """Whether a request goes on from a history that its provider keeps."""
    return any(map(body.get, _ELSEWHERE))
