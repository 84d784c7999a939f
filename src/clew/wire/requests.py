"""What a request to a provider is, by its path and its body: wrap, the gateway and the test's provider read it here."""

from collections.abc import Container, Mapping
from typing import Any

from clew.wire.formats import FORMATS, anthropic, gemini, openai_chat
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
    if "anthropic-version" in headers or path.startswith("/v1/messages"):
        return anthropic.NAME
    return gemini.NAME if path.startswith("/v1beta/") or "x-goog-api-key" in headers else openai_chat.NAME


def is_elsewhere(body: Mapping[str, Any]) -> bool:
    """Whether a request goes on from a history that its provider keeps."""
    return any(map(body.get, _ELSEWHERE))
