"""An answer of Gemini's generateContent, put together from its chunks: each is a whole answer with some more parts."""

from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clew.core import rawjson
from clew.wire.formats.gemini.codec import id_of
from clew.wire.streams import pieces
from clew.wire.streams.faults import failure
from clew.wire.streams.pieces import AnswerMessage, Called, Piece, Spoken, StopReason, Text, Thought, ToolCall

GeminiChunk = Mapping[str, Any]

_STOPS: Mapping[str, StopReason] = {"STOP": "end", "MAX_TOKENS": "length"}  # all other reasons are refusals
_GROWING = frozenset({"text", "thought"})  # a part with more than these, such as a signature, stays as it came


class GeminiAnswer:
    """What a model has said so far; an answer that is not streamed is one chunk, or a list of them."""

    def __init__(self) -> None:
        self.over = False  # the last chunk does not say that it is
        self._parts: list[tuple[AnswerMessage, list[str]]] = []  # each as it came, and by what it grew
        self._calls: list[ToolCall] = []
        self._unnamed: Tally[str] = Tally()  # calls without ids, by their names
        self._reason: str | None = None
        self._usage: AnswerMessage = {}

    def add(self, event: GeminiChunk | list[GeminiChunk]) -> Sequence[Piece]:
        """Hear one chunk, or all of them."""
        return [piece for chunk in (event if isinstance(event, list) else [event]) for piece in self._chunk(chunk)]

    def _chunk(self, event: GeminiChunk) -> Iterator[Piece]:
        if event.get("error"):
            raise failure(event["error"])
        # Each report is of all that was said so far, but not everything is said again.
        self._usage |= event.get("usageMetadata") or {}
        self._reason = (event.get("promptFeedback") or {}).get("blockReason") or self._reason
        for candidate in event.get("candidates") or ():
            if not candidate.get("index"):
                for part in (candidate.get("content") or {}).get("parts") or ():
                    yield from self._hear(part)
                self._reason = candidate.get("finishReason") or self._reason

    def spoken(self) -> Spoken:
        """What was said."""
        parts = [{**part, "text": part["text"] + "".join(more)} if more else part for part, more in self._parts]
        said = [part for part in parts if part.get("thought") is not True]
        messages = [{"role": "model", "parts": parts}] if said else []  # thoughts alone are no message
        text = "".join(part.get("text") or "" for part in said)
        return Spoken(messages, text, [*self._calls], self._stop(), self._reason, self._usage or None)

    def _stop(self) -> StopReason:
        if self._reason is None:
            return "cut"
        stop = _STOPS.get(self._reason, "refused")
        return "calls" if stop == "end" and self._calls else stop

    def _hear(self, part: AnswerMessage) -> Iterator[Piece]:
        if isinstance(made := part.get("functionCall"), Mapping):
            raw = rawjson.dumps(made["args"]).decode() if made.get("args") is not None else ""
            call = pieces.call(id_of(made, self._unnamed), str(made.get("name") or ""), raw)
            self._calls.append(call)
            yield Called(call.id, call.name, raw)
        elif isinstance(text := part.get("text"), str):
            if text:
                yield Thought(text) if part.get("thought") is True else Text(text)
            elif _GROWING.issuperset(part):  # says nothing
                return
            if _GROWING.issuperset(part) and self._parts and _grows(self._parts[-1][0], part):
                self._parts[-1][1].append(text)
                return
        self._parts.append((part, []))


def _grows(last: AnswerMessage, part: AnswerMessage) -> bool:
    return _GROWING.issuperset(last) and "text" in last and last.get("thought") == part.get("thought")
