"""Gemini's generateContent as Google answers it."""

from collections.abc import Iterator, Mapping
from urllib.parse import parse_qs

from clew.core import rawjson
from clew.testing.provider.answers import Answer, Call, ProviderBody, ProviderTurn
from clew.testing.provider.faults import ProviderFault, Refusals, wait
from clew.wire.formats.gemini.rules import SIGNS_CALLS
from clew.wire.rules.check import Broken

WHY = {"end": "STOP", "length": "MAX_TOKENS", "window": "MAX_TOKENS", "filter": "SAFETY"}
THOUGHT_SIGNATURE = "CqQBAVSoXO5zdHJpY3QgcHJvdmlkZXIgb2YgY2xldywgbm90aGluZyBzZWNyZXQ="

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


def in_one_piece(turn: ProviderTurn) -> ProviderBody:
    """An answer in one piece."""
    if _is_blocked(turn):
        return _blocked(turn)
    return _chunk(turn, [part for part, _ in _parts(turn)] or [{"text": ""}], last=True)


def stream(turn: ProviderTurn, fault: ProviderFault | None = None) -> Iterator[bytes]:
    """An answer in chunks, each an event; a fault ends it, outside of any event."""
    for chunk in _chunks(turn, fault):
        yield b"data: " + rawjson.dumps(chunk) + b"\r\n\r\n"
    if fault:
        yield rawjson.dumps(google(fault))


def listed(turn: ProviderTurn, fault: ProviderFault | None = None) -> Iterator[bytes]:
    """The same as one list that grows, for who does not ask for events."""
    before = b"["
    for chunk in _chunks(turn, fault):
        yield before + rawjson.dumps(chunk)
        before = b",\r\n"
    yield (before + rawjson.dumps(google(fault)) if fault else b"") + b"]"


def _chunks(turn: ProviderTurn, fault: ProviderFault | None) -> Iterator[ProviderBody]:
    if _is_blocked(turn):
        yield _blocked(turn)
        return
    said = [{**part, "text": piece} if text else part for part, text in _parts(turn) for piece in _pieces(turn, text)]
    said = said or [{"text": ""}]
    for n, part in enumerate(said):
        yield _chunk(turn, [part], last=n == len(said) - 1 and fault is None)


def _pieces(turn: ProviderTurn, text: str) -> Iterator[str]:
    return turn.pieces(text) if text else iter([""])


def _parts(turn: ProviderTurn) -> Iterator[tuple[ProviderBody, str]]:
    """Each part, and the text that it comes by in a stream; the first call is signed, or else the end of the text."""
    answer = turn.answer
    signs = bool(answer.reasoning) or SIGNS_CALLS.search(turn.model) is not None
    if answer.reasoning:
        yield {"text": answer.reasoning, "thought": True}, answer.reasoning
    if answer.text:
        yield {"text": answer.text}, answer.text
    for n, call in enumerate(answer.calls):
        signed = {"thoughtSignature": THOUGHT_SIGNATURE} if signs and n == 0 else {}
        yield {"functionCall": _call(call), **signed}, ""
    if signs and answer.text and not answer.calls:
        yield {"text": "", "thoughtSignature": THOUGHT_SIGNATURE}, ""


def _call(call: Call) -> ProviderBody:
    """A call comes whole; only newer models give it an id, so none is made."""
    return ({"id": call.id} if call.id else {}) | {"name": call.name, "args": call.given}


def _is_blocked(turn: ProviderTurn) -> bool:
    """Whether already the question is refused: nothing is said to it."""
    return turn.answer.stop == "filter" and not turn.answer.text and not turn.answer.calls


def _blocked(turn: ProviderTurn) -> ProviderBody:
    return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **_about(turn, last=False)}


def _chunk(turn: ProviderTurn, parts: list[ProviderBody], last: bool) -> ProviderBody:
    why = {"finishReason": WHY[turn.answer.stop]} if last else {}
    candidate = {"content": {"parts": parts, "role": "model"}, **why, "index": 0}
    return {"candidates": [candidate], **_about(turn, last)}


def _about(turn: ProviderTurn, last: bool) -> ProviderBody:
    return {"usageMetadata": _usage(turn, last), "modelVersion": turn.model, "responseId": turn.id("")}


def _usage(turn: ProviderTurn, last: bool) -> ProviderBody:
    """Every chunk has a report; before the last one it knows little of the answer."""
    spent = turn.spent
    said = {"candidatesTokenCount": turn.output - turn.thought} if last else {}
    cached = {"cachedContentTokenCount": spent.cache_read} if spent.cache_read else {}
    return {
        "promptTokenCount": spent.input,
        **said,
        "totalTokenCount": spent.input + (turn.output if last else turn.thought),
        **cached,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": spent.input}],
        **({"thoughtsTokenCount": turn.thought} if turn.thought else {}),
    }


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


refusals = GeminiRefusals()
