"""Streams of Gemini's generateContent as one."""

from typing import Any

from clew.core import rawjson
from clew.errors import BadRequest
from clew.wire.formats.gemini.calls import CallTaker, parts_of, with_parts
from clew.wire.formats.openai_chat.joining import GAP
from clew.wire.formats.plain import Block
from clew.wire.streams.joined import HeardEvent, IsOurs, JoinedStream

_END_KEYS = ("finishReason", "finishMessage")


class GeminiStream(JoinedStream):
    """Of Gemini: a chunk has whole parts, the last one says why it ended, and callers put all texts together."""

    def __init__(self, is_ours: IsOurs) -> None:
        super().__init__(is_ours)
        self._id: str | None = None
        self._spoke = False  # whether there were words
        self._gap = False  # whether more would follow those of an earlier answer
        self._taker = self._new_taker()

    def _passes(self, event: HeardEvent) -> bool:
        return self._spoke and not self._later and not event.called and not self._ends(event.block or {})

    def _ends(self, said: Block) -> bool:
        blocked = (said.get("promptFeedback") or {}).get("blockReason")
        return bool(blocked) or any(candidate.get("finishReason") for candidate in said.get("candidates") or ())

    def _is_last(self, said: Block) -> bool:
        return self._ends(said)

    def _shows(self, told: Block) -> bool:
        return any(part != {"text": ""} for c in told.get("candidates") or () for part in parts_of(c))

    def _passed_on(self, event: HeardEvent) -> Block | None:
        said = event.block or {}
        self._id = self._id or said.get("responseId")
        candidates = said.get("candidates") or []
        if not self._later and not event.called:  # most events: words of the first answer
            self._spoke = self._spoke or any(_is_text(part) for c in candidates for part in parts_of(c))
            return said
        told = [c if c.get("index") else self._candidate(c) for c in candidates]
        changed = any(new is not old for new, old in zip(told, candidates, strict=True))
        if changed and not self._ends(said) and not self._shows({"candidates": told}):
            return None
        if self._later and said.get("responseId") != self._id:
            return {**said, "responseId": self._id, "candidates": told}
        return {**said, "candidates": told} if changed else said

    def _candidate(self, candidate: Block) -> Block:
        parts = parts_of(candidate)
        kept = [self._gapped(part) for part in self._taker.kept(parts)]
        return candidate if kept == parts else with_parts(candidate, kept)

    def _gapped(self, part: Block) -> Block:
        if not _is_text(part):
            return part
        gap, self._gap, self._spoke = self._gap, False, True
        return {**part, "text": GAP + part["text"]} if gap else part

    def _unended(self, event: HeardEvent) -> Block | None:
        said = event.block or {}
        candidates = [{k: v for k, v in c.items() if k not in _END_KEYS} for c in said.get("candidates") or ()]
        told = self._passed_on(HeardEvent(b"", {**said, "candidates": candidates}, event.called))
        return told if told and self._shows(told) else None

    def _ended(self, event: HeardEvent, muted: bool) -> Block | None:
        return self._passed_on(event)  # it ends in one way, with calls and without

    def _reset(self) -> None:
        self._gap = self._spoke
        self._id = self._id if self._later else None
        self._taker = self._new_taker()

    def _new_taker(self) -> CallTaker:
        return CallTaker(lambda call: self._is_ours(str(call.get("name"))))

    def failed(self, content: bytes, status: int) -> bytes:
        """What a provider refused an answer with; Google's SDKs look for it outside of any event."""
        try:
            error: Any = rawjson.loads(content)
        except BadRequest:
            error = None
        error = error[0] if isinstance(error, list) and error else error
        if not isinstance(error, dict) or not error.get("error"):
            words = content.decode("utf-8", "replace") or f"the provider answered with status {status}"
            error = {"error": {"code": status, "message": words, "status": "UNKNOWN"}}
        return rawjson.dumps(error) + b"\n"


def _is_text(part: Block) -> bool:
    return part.get("thought") is not True and isinstance(part.get("text"), str) and bool(part["text"].strip())
