"""What a request to a provider is, by its path and its body: wrap, the gateway and the test's provider read it here."""

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

_PATHS: Mapping[str, tuple[str, "ApiAct"]] = {
    "/v1/messages": ("anthropic", "answer"),
    "/v1/messages/count_tokens": ("anthropic", "count"),
    "/v1/chat/completions": ("openai_chat", "answer"),
    "/v1/responses": ("openai_responses", "answer"),
    "/v1/responses/input_tokens": ("openai_responses", "count"),
    "/v1/responses/compact": ("openai_responses", "compact"),
}
_GEMINI = re.compile(r"/models/([^/:]+):(generateContent|streamGenerateContent|countTokens)$")
_GEMINI_ROOTS = ("/v1", "/v1beta", "/v1alpha")
# Under which a request names a history, or the beginning of one, that its provider has and that cannot be seen.
_ELSEWHERE = ("previous_response_id", "conversation", "thread", "cachedContent", "cached_content")

ApiAct = Literal["answer", "count", "compact"]


class ApiCall(NamedTuple):
    """What a path asks of a provider."""

    format: str
    act: ApiAct = "answer"
    model: str = ""  # where the path says it, and not the body
    streamed: bool | None = None  # the same


def api_call(path: str) -> ApiCall | None:
    """What a path at the root of a provider's API asks for; None: nothing of this kind."""
    if found := _GEMINI.search(path):
        return _gemini(found) if path[: found.start()] in _GEMINI_ROOTS else None
    return ApiCall(*_PATHS[path]) if path in _PATHS else None


def api_call_below(path: str) -> ApiCall | None:
    """The same where a base URL may have a path of its own, and OpenAI's need not end with a version."""
    if found := _GEMINI.search(path):
        return _gemini(found)
    for known, (format, act) in _PATHS.items():
        if path.endswith(known if format == "anthropic" else known.removeprefix("/v1")):
            return ApiCall(format, act)
    return None


def _gemini(found: re.Match[str]) -> ApiCall:
    act: ApiAct = "count" if found[2] == "countTokens" else "answer"
    return ApiCall("gemini", act, unquote(found[1]), found[2] == "streamGenerateContent")


def is_elsewhere(body: Mapping[str, Any]) -> bool:
    """Whether a request goes on from a history that its provider keeps."""
    return any(map(body.get, _ELSEWHERE))
