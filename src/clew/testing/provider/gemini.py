"""What Google refuses."""

from collections.abc import Mapping
from urllib.parse import parse_qs

from clew.testing.provider.answers import Answer
from clew.testing.provider.faults import ProviderFault, Refusals, wait
from clew.wire.rules.check import Broken
from clew.wire.streams.writing import ProviderBody

# The word for a status, and what is said with it.
_WORDS: Mapping[int, tuple[str, str]] = {
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
_COUNTED = _FIELDS | {"generateContentRequest", "generate_content_request"}


def google(fault: ProviderFault, seconds: float | None = None) -> ProviderBody:
    """The shape of Google's errors, which say inside when to come again."""
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{seconds:g}s"} if seconds else None
    error = {"code": fault.status, "message": fault.message, "status": fault.kind}
    return {"error": error | ({"details": [delay]} if delay else {})}


class GeminiRefusals(Refusals):
    """What Google says; its errors have neither code nor param."""

    models = "/v1beta/models"
    unreadable = "Invalid JSON payload received. Expected an object."

    def words(self, status: int) -> tuple[str, str | None, str]:
        unknown = "INVALID_ARGUMENT" if status < 500 else "INTERNAL", super().words(status)[2]
        kind, words = _WORDS.get(status, unknown)
        return kind, None, words

    def amiss(
        self, body: ProviderBody, headers: Mapping[str, str], query: str, counts: bool = False
    ) -> ProviderFault | None:
        if not ("x-goog-api-key" in headers or "authorization" in headers or "key" in parse_qs(query)):
            return self.fault(403)
        unknown = sorted(body.keys() - (_COUNTED if counts else _FIELDS))
        words = f'Invalid JSON payload received. Unknown name "{unknown[0]}": Cannot find field.' if unknown else ""
        return self.fault(400, words=words) if unknown else None

    def broken(self, found: Broken) -> ProviderFault:
        return self.fault(400, words=f"* GenerateContentRequest.{found.where}: {found.why}")

    def too_long(self, body: ProviderBody, asked: int, window: int) -> ProviderFault | None:
        """What is answered has a limit of its own."""
        words = f"The input token count ({asked}) exceeds the maximum number of tokens allowed ({window})."
        return self.fault(400, words=words) if asked > window else None

    def written(self, fault: ProviderFault, request: str, answer: Answer) -> ProviderBody:
        return google(fault, wait(answer))

    def headers(self, answer: Answer, request: str) -> dict[str, str]:
        return {}

    def listed(self, entries: Mapping[str, ProviderBody]) -> ProviderBody:
        return {"models": list(entries.values())}

    def entry(self, name: str, window: int) -> ProviderBody:
        limits = {"inputTokenLimit": window, "outputTokenLimit": 65_536}
        methods = {"supportedGenerationMethods": ["generateContent", "countTokens"]}
        return {"name": f"models/{name}", "version": "001", "displayName": name, **limits, **methods}
