"""Which paths are safe to pass on at all, and which of them only talk to a model."""

import re

from clew.gateway.http import Refused

# What another server may read as a way out of the path that was looked at: dots, slashes and backslashes however they
# are written, encodings of an encoding, and what is no encoding. c0, c1, e0 and f0 begin ASCII in forms too long.
_BENT = re.compile(
    r"\.\.|/\.(?:[/;]|$)|\\|%(?:2[ef]|5c|25|[01]|7f|c[01]|e0%[89]|f0%8)|%(?![0-9a-f]{2})|[^\x21-\x7e]", re.IGNORECASE
)

_MODEL = r"(?:[\w.:@+~-]|%3A|%40)+"
_GEMINI = r"(?:generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents)"
_BEDROCK = r"(?:converse|converse-stream|invoke|invoke-with-response-stream|count-tokens)"
_TALK = {
    "POST": (
        r"/v1/chat/completions",
        r"(?:/v1)?/completions",
        r"/v1/responses(?:/compact|/input_tokens)?",
        r"/v1/messages(?:/count_tokens)?",
        r"/v1/embeddings",
        rf"/v1(?:beta|alpha)?/models/{_MODEL}:{_GEMINI}",
        r"/v1beta/openai/(?:chat/completions|embeddings)",
        rf"/model/{_MODEL}/{_BEDROCK}",
        r"/api/(?:chat|generate|embed|embeddings)",  # Ollama's own
    ),
    "GET": (
        rf"/v1(?:beta|alpha)?/models(?:/{_MODEL})?",
        rf"/v1beta/openai/models(?:/{_MODEL})?",
        r"/api/tags",
    ),
}
_TALKS = {method: re.compile("|".join(rows), re.ASCII) for method, rows in _TALK.items()}
_TALKS["HEAD"] = _TALKS["GET"]


def check_path(path: str) -> None:
    """Refuse a path that may lead elsewhere than it says. Raises `Refused`."""
    if not path.startswith("/"):  # what is said behind a host would be part of its name
        raise Refused(400, "the path of a request begins with /")
    if _BENT.search(path):
        raise Refused(400, "a path has no dots in a row, and no encoded dots, slashes, backslashes or percent signs")


def only_talks(method: str, path: str) -> bool:
    """Whether a request talks to a model, lists models, counts or embeds: nothing that others left is in reach."""
    talks = _TALKS.get(method)
    return talks is not None and talks.fullmatch(path) is not None
