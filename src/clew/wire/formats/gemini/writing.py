"""An answer of generateContent, as Google writes it."""

from collections.abc import Iterator

from clew.core import rawjson
from clew.wire.formats.gemini.rules import SIGNS_CALLS
from clew.wire.streams.writing import Call, ProviderBody, WrittenTurn

WHY = {"end": "STOP", "length": "MAX_TOKENS", "window": "MAX_TOKENS", "filter": "SAFETY"}


def in_one_piece(turn: WrittenTurn) -> ProviderBody:
    """An answer in one piece."""
    if _is_blocked(turn):
        return _blocked(turn)
    return _chunk(turn, [part for part, _ in _parts(turn)] or [{"text": ""}], last=True)


def stream(turn: WrittenTurn, error: ProviderBody | None = None, as_list: bool = False) -> Iterator[bytes]:
    """An answer in chunks, each an event, or as one list that grows; an error ends it, outside of any event."""
    before = b"[" if as_list else b"data: "
    for chunk in _chunks(turn, error is None):
        yield before + rawjson.dumps(chunk) + (b"" if as_list else b"\r\n\r\n")
        before = b",\r\n" if as_list else before
    if error:
        yield (before if as_list else b"") + rawjson.dumps(error)
    if as_list:
        yield b"]"


def _chunks(turn: WrittenTurn, ends: bool) -> Iterator[ProviderBody]:
    if _is_blocked(turn):
        yield _blocked(turn)
        return
    said = [{**part, "text": piece} if text else part for part, text in _parts(turn) for piece in _pieces(turn, text)]
    said = said or [{"text": ""}]
    for n, part in enumerate(said):
        yield _chunk(turn, [part], last=n == len(said) - 1 and ends)


def _pieces(turn: WrittenTurn, text: str) -> Iterator[str]:
    return turn.pieces(text) if text else iter([""])


def _parts(turn: WrittenTurn) -> Iterator[tuple[ProviderBody, str]]:
    """Each part, and the text that it comes by in a stream; the first call is signed, or else the end of the text."""
    answer = turn.answer
    signs = bool(turn.seal) and (bool(answer.reasoning) or SIGNS_CALLS.search(turn.model) is not None)
    if answer.reasoning:
        yield {"text": answer.reasoning, "thought": True}, answer.reasoning
    if answer.text:
        yield {"text": answer.text}, answer.text
    for n, call in enumerate(answer.calls):
        signed = {"thoughtSignature": turn.seal} if signs and n == 0 else {}
        yield {"functionCall": _call(call), **signed}, ""
    if signs and answer.text and not answer.calls:
        yield {"text": "", "thoughtSignature": turn.seal}, ""


def _call(call: Call) -> ProviderBody:
    """A call comes whole; only newer models give it an id, so none is made."""
    return ({"id": call.id} if call.id else {}) | {"name": call.name, "args": call.given}


def _is_blocked(turn: WrittenTurn) -> bool:
    """Whether already the question is refused: nothing is said to it."""
    return turn.answer.stop == "filter" and not turn.answer.text and not turn.answer.calls


def _blocked(turn: WrittenTurn) -> ProviderBody:
    return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **_about(turn, last=False)}


def _chunk(turn: WrittenTurn, parts: list[ProviderBody], last: bool) -> ProviderBody:
    why = {"finishReason": WHY[turn.answer.stop]} if last else {}
    candidate = {"content": {"parts": parts, "role": "model"}, **why, "index": 0}
    return {"candidates": [candidate], **_about(turn, last)}


def _about(turn: WrittenTurn, last: bool) -> ProviderBody:
    return {"usageMetadata": _usage(turn, last), "modelVersion": turn.model, "responseId": turn.id("")}


def _usage(turn: WrittenTurn, last: bool) -> ProviderBody:
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
