"""What providers say instead of an answer: in OpenAI's words and shape, and by what others change of that."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from clew.testing.provider.answers import Answer
from clew.wire.rules.check import Broken
from clew.wire.streams.writing import CREATED, ProviderBody


@dataclass(frozen=True, slots=True)
class ProviderFault:
    """An error before it has a shape; Anthropic and Gemini have neither code nor param."""

    status: int
    kind: str
    message: str
    code: str | None = None
    param: str | None = None


# Kind, code and words by status; {model} is the one that was asked for.
_WORDS: Mapping[int, tuple[str, str | None, str]] = {
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
_OBJECTS = ("context_management", "stream_options")  # of the other providers: what is asked in them is done here


class Refusals:
    """What OpenAI says."""

    models = "/v1/models"  # where the list of models is
    unreadable = "We could not parse the JSON body of your request."

    def words(self, status: int) -> tuple[str, str | None, str]:
        """Kind, code and words of a status; {model} is the one that was asked for."""
        phrase = HTTPStatus(status).phrase if status in {*HTTPStatus} else "Unknown error"
        return _WORDS.get(status, ("invalid_request_error" if status < 500 else "server_error", None, phrase))

    def fault(self, status: int, model: str = "", words: str = "") -> ProviderFault:
        """What it says with a status, unless the words are given."""
        kind, code, usual = self.words(status)
        return ProviderFault(status, kind, words or usual.format(model=model), code)

    def amiss(
        self, body: ProviderBody, headers: Mapping[str, str], query: str, counts: bool = False
    ) -> ProviderFault | None:
        """The refusal of a request for what stands beside its messages; one that `counts` needs less."""
        if odd := [key for key in _OBJECTS if not isinstance(body.get(key) or {}, Mapping)]:
            return self.fault(400, words=f"{odd[0]}: Input should be an object")
        return self.lacking(body, headers, counts)

    def lacking(self, body: ProviderBody, headers: Mapping[str, str], counts: bool) -> ProviderFault | None:
        """The same for what is not there."""
        if body.get("model") is not None:
            return None
        words = "Missing required parameter: 'model'."
        return ProviderFault(400, "invalid_request_error", words, "missing_required_parameter", "model")

    def broken(self, found: Broken) -> ProviderFault:
        """The refusal of a body that breaks a rule: where, and why."""
        return ProviderFault(400, "invalid_request_error", f"{found.where}: {found.why}", None, found.where)

    def too_long(self, body: ProviderBody, asked: int, window: int) -> ProviderFault | None:
        """The refusal of what does not fit, as the API words it."""
        room = room_in(body)
        if asked + room <= window:
            return None
        alone = f"your messages resulted in {asked} tokens. Please reduce the length of the messages."
        both = (
            f"you requested {asked + room} tokens ({asked} in the messages, {room} in the completion). Please reduce "
            "the length of the messages or completion."
        )
        limit = f"This model's maximum context length is {window} tokens. However, "
        return exceeded(limit + (alone if asked > window else both), "messages")

    def written(self, fault: ProviderFault, request: str, answer: Answer) -> ProviderBody:
        """A fault in the shape of the provider's errors; `request` is the id of what failed."""
        return openai(fault)

    def headers(self, answer: Answer, request: str) -> dict[str, str]:
        """Which request it was, and when to come again."""
        seconds = wait(answer)
        again = {} if seconds is None else {"retry-after": f"{seconds:g}", "retry-after-ms": f"{seconds * 1000:.0f}"}
        return {"x-request-id": request} | again

    def listed(self, entries: Mapping[str, ProviderBody]) -> ProviderBody:
        """The list of models."""
        return {"object": "list", "data": list(entries.values())}

    def entry(self, name: str, window: int) -> ProviderBody:
        """A model in the list; it does not say how large its window is."""
        return {"id": name, "object": "model", "created": CREATED, "owned_by": "strict"}

    def found(self, path: str, models: Mapping[str, int]) -> ProviderBody | None:
        """What a path under the list says."""
        entries = {name: self.entry(name, window) for name, window in models.items()}
        return self.listed(entries) if path == self.models else entries.get(path.removeprefix(f"{self.models}/"))


def room_in(body: ProviderBody) -> int:
    """Tokens of the answer that a request asks for."""
    named: list[Any] = [body.get(key) for key in ("max_completion_tokens", "max_tokens")]
    return next((value for value in named if isinstance(value, int)), 0)


def exceeded(words: str, param: str) -> ProviderFault:
    """The refusal of what does not fit."""
    return ProviderFault(400, "invalid_request_error", words, "context_length_exceeded", param)


def openai(fault: ProviderFault) -> ProviderBody:
    """The shape of OpenAI's errors."""
    return {"error": {"message": fault.message, "type": fault.kind, "param": fault.param, "code": fault.code}}


def wait(answer: Answer) -> float | None:
    """After how many seconds to come again."""
    return 1 if answer.retry_after is None and answer.status == 429 else answer.retry_after
