"""Gemini's generateContent as Google answers it."""

from collections.abc import Iterator

from clew.core import rawjson
from clew.testing.provider.answers import Call, ProviderBody, ProviderTurn
from clew.testing.provider.faults import ProviderFault, google
from clew.wire.formats.gemini.rules import SIGNS_CALLS

WHY = {"end": "STOP", "length": "MAX_TOKENS", "window": "MAX_TOKENS", "filter": "SAFETY"}
THOUGHT_SIGNATURE = "CqQBAVSoXO5zdHJpY3QgcHJvdmlkZXIgb2YgY2xldywgbm90aGluZyBzZWNyZXQ="


def whole(turn: ProviderTurn) -> ProviderBody:
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
