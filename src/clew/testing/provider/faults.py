"""What providers say instead of an answer, each in its own words and shape."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qs

from clew.testing.provider.answers import Answer, ProviderBody
from clew.wire.formats.anthropic.compaction import COMPACT_BETA, asks_for_block, signed_blocks
from clew.wire.rules.binding import BETA
from clew.wire.rules.check import Broken


@dataclass(frozen=True, slots=True)
class ProviderFault:
    """An error before it has a shape; Anthropic and Gemini have neither code nor param."""

    status: int
    kind: str
    message: str
    code: str | None = None
    param: str | None = None


# Kind, code and words by status; {model} is the one that was asked for.
_OPENAI: Mapping[int, tuple[str, str | None, str]] = {
    401: (
        "invalid_request_error",
        "invalid_api_key",
        "Incorrect API key provided: none. You can find your API key at https://platform.openai.com/account/api-keys.",
    ),
    403: ("request_forbidden", "unsupported_country_region_territory", "Country, region, or territory not supported"),
    404: (
        "invalid_request_error",
        "model_not_found",
        "The model `{model}` does not exist or you do not have access to it.",
    ),
    429: (
        "tokens",
        "rate_limit_exceeded",
        "Rate limit reached for {model} in organization org-none on tokens per min (TPM): Limit 30000, Used 28000, "
        "Requested 5000. Please try again in 6s. Visit https://platform.openai.com/account/rate-limits to learn more.",
    ),
    500: (
        "server_error",
        None,
        "The server had an error while processing your request. Sorry about that! You can retry your request, or "
        "contact us through our help center at help.openai.com if the error persists.",
    ),
    503: ("server_error", None, "The engine is currently overloaded, please try again later"),
}
_ANTHROPIC: Mapping[int, tuple[str, str]] = {
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "Your credit balance is too low to access the Anthropic API."),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "model: {model}"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: (
        "rate_limit_error",
        "This request would exceed your organization's rate limit of 40,000 input tokens per minute. For details, "
        "refer to: https://docs.claude.com/en/api/rate-limits.",
    ),
    500: ("api_error", "Internal server error"),
    504: ("timeout_error", "The request timed out while processing."),
    529: ("overloaded_error", "Overloaded"),
}

# Of Gemini: the word for a status, and what is said with it.
_GEMINI: Mapping[int, tuple[str, str]] = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: (
        "UNAUTHENTICATED",
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid "
        "authentication credential.",
    ),
    403: (
        "PERMISSION_DENIED",
        "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or "
        "other form of API consumer identity to call this API.",
    ),
    404: (
        "NOT_FOUND",
        "models/{model} is not found for API version v1beta, or is not supported for generateContent. Call ListModels "
        "to see the list of available models and their supported methods.",
    ),
    429: ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    499: ("CANCELLED", "The operation was cancelled."),
    500: ("INTERNAL", "An internal error has occurred. Please retry."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    504: ("DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
}
# What stands in a request beside its contents; of other names Gemini says that it cannot find the field.
_FIELDS = frozenset(
    "model contents tools toolConfig safetySettings systemInstruction generationConfig cachedContent serviceTier store "
    "tool_config safety_settings system_instruction generation_config cached_content service_tier".split()
)
_OBJECTS = ("context_management", "stream_options")  # of the other providers: what is asked in them is done here
_COUNTED = _FIELDS | {"generateContentRequest", "generate_content_request"}


def told(status: int, format: str, model: str = "", words: str = "") -> ProviderFault:
    """What a provider says with a status, unless the words are given."""
    plain = "invalid_request_error" if status < 500 else "api_error" if format == "anthropic" else "server_error"
    phrase = HTTPStatus(status).phrase if status in {*HTTPStatus} else "Unknown error"
    if format in ("anthropic", "gemini"):
        unknown = plain if format == "anthropic" else "INVALID_ARGUMENT" if status < 500 else "INTERNAL"
        kind, said = (_ANTHROPIC if format == "anthropic" else _GEMINI).get(status, (unknown, phrase))
        code = None
    else:
        kind, code, said = _OPENAI.get(status, (plain, None, phrase))
    return ProviderFault(status, kind, words or said.format(model=model), code)


def unreadable(format: str) -> ProviderFault:
    """The refusal of what is no JSON object."""
    words = {
        "anthropic": "The request body is not valid JSON",
        "gemini": "Invalid JSON payload received. Expected an object.",
    }
    return told(400, format, words=words.get(format, "We could not parse the JSON body of your request."))


def amiss(
    body: ProviderBody, headers: Mapping[str, str], query: str, format: str, counts: bool
) -> ProviderFault | None:
    """The refusal of a request for what stands beside its messages; one that `counts` needs less."""
    if format == "gemini":
        keyed = "x-goog-api-key" in headers or "authorization" in headers or "key" in parse_qs(query)
        unknown = sorted(body.keys() - (_COUNTED if counts else _FIELDS))
        words = f'Invalid JSON payload received. Unknown name "{unknown[0]}": Cannot find field.' if unknown else ""
        return told(403, format) if not keyed else told(400, format, words=words) if unknown else None
    if odd := [key for key in _OBJECTS if not isinstance(body.get(key) or {}, Mapping)]:
        return told(400, format, words=f"{odd[0]}: Input should be an object")
    if format == "anthropic":
        if "anthropic-version" not in headers:
            return told(400, format, words="anthropic-version: header is required")
        if _binding(body) and BETA not in headers.get("anthropic-beta", ""):
            words = f"thinking.block_binding: That setting requires the `{BETA}` value in the `anthropic-beta` header."
            return told(400, format, words=words)
        if (asks_for_block(body) or signed_blocks(body)) and COMPACT_BETA not in headers.get("anthropic-beta", ""):
            words = f"compaction: requires anthropic-beta: {COMPACT_BETA}"
            return told(400, format, words=words)
        needs = ("model",) if counts else ("model", "max_tokens")
        lacks = [key for key in needs if body.get(key) is None]
        return told(400, format, words=f"{lacks[0]}: Field required") if lacks else None
    if body.get("model") is None:
        words = "Missing required parameter: 'model'."
        return ProviderFault(400, "invalid_request_error", words, "missing_required_parameter", "model")
    if format == "openai_chat" and body.get("stream_options") is not None and not body.get("stream"):
        words = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        return ProviderFault(400, "invalid_request_error", words, None, "stream_options")
    return None


def _binding(body: ProviderBody) -> bool:
    thinking = body.get("thinking")
    return isinstance(thinking, Mapping) and thinking.get("block_binding") is not None


def broken(found: Broken, format: str) -> ProviderFault:
    """The refusal of a body that breaks a rule: where, and why."""
    if format == "gemini":
        return told(400, format, words=f"* GenerateContentRequest.{found.where}: {found.why}")
    param = None if format == "anthropic" else found.where
    return ProviderFault(400, "invalid_request_error", f"{found.where}: {found.why}", None, param)


def too_long(body: ProviderBody, format: str, asked: int, window: int) -> ProviderFault | None:
    """The refusal of what does not fit, as each API words it; of Responses it names no number."""
    if format == "openai_responses":
        words = "Your input exceeds the context window of this model. Please adjust your input and try again."
        return _exceeded(words, "input") if asked > window else None
    if format == "gemini":  # what is answered has a limit of its own
        words = f"The input token count ({asked}) exceeds the maximum number of tokens allowed ({window})."
        return told(400, format, words=words) if asked > window else None
    named = (body.get(key) for key in ("max_completion_tokens", "max_tokens"))
    room = next((value for value in named if isinstance(value, int)), 0)
    if asked + room <= window:
        return None
    if format == "openai_chat":
        alone = f"your messages resulted in {asked} tokens. Please reduce the length of the messages."
        both = (
            f"you requested {asked + room} tokens ({asked} in the messages, {room} in the completion). Please reduce "
            "the length of the messages or completion."
        )
        limit = f"This model's maximum context length is {window} tokens. However, "
        return _exceeded(limit + (alone if asked > window else both), "messages")
    both = f"input length and `max_tokens` exceed context limit: {asked} + {room} > {window}, decrease input length or "
    alone = f"prompt is too long: {asked} tokens > {window} maximum"
    return told(400, format, words=alone if asked > window else f"{both}`max_tokens` and try again")


def _exceeded(words: str, param: str) -> ProviderFault:
    return ProviderFault(400, "invalid_request_error", words, "context_length_exceeded", param)


def openai(fault: ProviderFault) -> ProviderBody:
    """The shape of OpenAI's errors."""
    return {"error": {"message": fault.message, "type": fault.kind, "param": fault.param, "code": fault.code}}


def anthropic(fault: ProviderFault, request: str) -> ProviderBody:
    """The shape of Anthropic's errors; `request` is the id of what failed."""
    return {"type": "error", "error": {"type": fault.kind, "message": fault.message}, "request_id": request}


def google(fault: ProviderFault, wait: float | None = None) -> ProviderBody:
    """The shape of Google's errors, which say inside when to come again."""
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{wait:g}s"} if wait else None
    error = {"code": fault.status, "message": fault.message, "status": fault.kind}
    return {"error": error | ({"details": [delay]} if delay else {})}


def written(fault: ProviderFault, format: str, request: str, answer: Answer) -> ProviderBody:
    """A fault in the shape of its provider."""
    if format == "gemini":
        return google(fault, _wait(answer))
    return anthropic(fault, request) if format == "anthropic" else openai(fault)


def headers(answer: Answer, format: str, request: str) -> dict[str, str]:
    """Which request it was, and when to come again, as the providers say it; Google does so in the body."""
    if format == "gemini":
        return {}
    named = {"request-id" if format == "anthropic" else "x-request-id": request}
    seconds = _wait(answer)
    if seconds is None:
        return named
    exact = {} if format == "anthropic" else {"retry-after-ms": f"{seconds * 1000:.0f}"}
    return {**named, "retry-after": f"{seconds:g}", **exact}


def _wait(answer: Answer) -> float | None:
    return 1 if answer.retry_after is None and answer.status == 429 else answer.retry_after
