"""The parts of answers of Gemini's API without clew's calls."""

from collections import Counter as Tally
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from clew.wire.formats.gemini.codec import id_of
from clew.wire.formats.plain import Block

THOUGHT_SIGNATURE = "thoughtSignature"


class CallTaker:
    """Takes calls out of the parts of one answer, whether these come together or in chunks.

    Of calls made together only the first one is signed, and Gemini 3 refuses it unsigned. If that one is clew's, the
    caller's first call gets the signature: he must be able to send back what he got.
    """

    def __init__(self, is_ours: Callable[[Mapping[str, Any]], bool]) -> None:
        self._is_ours = is_ours
        self._signature: str | None = None

    def kept(self, parts: Iterable[Block]) -> list[Block]:
        """The parts that a caller gets."""
        kept: list[Block] = []
        for part in parts:
            if isinstance(call := part.get("functionCall"), Mapping):
                if self._is_ours(call):
                    self._signature = part.get(THOUGHT_SIGNATURE) or self._signature
                    continue
                if self._signature:
                    part = {THOUGHT_SIGNATURE: self._signature, **part}
                    self._signature = None
            kept.append(part)
        return kept


def with_parts(candidate: Block, parts: list[Block]) -> Block:
    """A candidate that says these parts instead; one without any says an empty text, as Gemini's do."""
    return {**candidate, "content": {**(candidate.get("content") or {}), "parts": parts or [{"text": ""}]}}


def parts_of(candidate: Block) -> list[Block]:
    """The parts of a candidate, or of what came of it."""
    parts: list[Block] = (candidate.get("content") or {}).get("parts") or []
    return parts


def without(answer: Block | list[Block], calls: Container[str]) -> Block | list[Block]:
    """A whole answer, or the chunks of one, without some of its calls."""
    seen: Tally[str] = Tally()
    taker = CallTaker(lambda call: id_of(call, seen) in calls)
    for chunk in answer if isinstance(answer, list) else [answer]:
        chunk["candidates"] = [
            candidate if candidate.get("index") else with_parts(candidate, taker.kept(parts_of(candidate)))
            for candidate in chunk.get("candidates") or ()
        ]
    return answer
