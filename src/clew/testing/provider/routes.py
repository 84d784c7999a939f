"""What a path asks for, of whom; Gemini's names the model, too."""

import re
from typing import Literal, NamedTuple
from urllib.parse import parse_qs, unquote

from clew.testing.provider.serving import ServedRequest

RouteAct = Literal["answer", "compact", "count"]

COMPACT = "/v1/responses/compact"
SERVED_PATHS = {
    "/v1/chat/completions": "openai_chat",
    "/v1/responses": "openai_responses",
    COMPACT: "openai_responses",
    "/v1/messages": "anthropic",
}
COUNTS = {"/v1/responses/input_tokens": "openai_responses", "/v1/messages/count_tokens": "anthropic"}
_GEMINI = re.compile(r"/v1(?:beta)?/models/([^/:]+):(generateContent|streamGenerateContent|countTokens)")


class Route(NamedTuple):
    """What a request wants."""

    format: str
    act: RouteAct = "answer"
    model: str | None = None  # where the path says so
    streams: bool | None = None  # where the path says so
    events: bool = True  # else a stream comes as one list


def route(asked: ServedRequest) -> Route | None:
    """What is asked for, if it is served."""
    if found := _GEMINI.fullmatch(asked.path):
        model, verb = unquote(found[1]), found[2]
        streams, events = verb == "streamGenerateContent", parse_qs(asked.query).get("alt") == ["sse"]
        act: RouteAct = "count" if verb == "countTokens" else "answer"
        return Route("gemini", act, model, streams, events or not streams)
    if asked.path in COUNTS:
        return Route(COUNTS[asked.path], "count")
    if asked.path not in SERVED_PATHS:
        return None
    return Route(SERVED_PATHS[asked.path], "compact" if asked.path == COMPACT else "answer")


def speaker(asked: ServedRequest) -> str:
    """Whose client it is, where no route tells."""
    if asked.path.startswith("/v1beta/") or "x-goog-api-key" in asked.headers:
        return "gemini"
    return "anthropic" if "anthropic-version" in asked.headers else "openai_chat"
