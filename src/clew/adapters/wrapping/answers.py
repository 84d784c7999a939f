"""An answer on its way to the caller: listened to, and without what is none of his business."""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from clew.core import rawjson
from clew.errors import BadRequest, ModelError
from clew.llm.streaming.answers import MISSHAPEN, AnswerBuilder
from clew.llm.streaming.chat import ChatAnswer
from clew.llm.streaming.events import END, Events
from clew.llm.streaming.messages import MessagesAnswer
from clew.llm.streaming.pieces import Spoken
from clew.llm.streaming.responses import ResponsesAnswer
from clew.wire.formats.plain import Block

ANSWERS: Mapping[str, type[AnswerBuilder]] = {
    "openai_chat": ChatAnswer,
    "openai_responses": ResponsesAnswer,
    "anthropic": MessagesAnswer,
}
# Events that come before a provider looked at what it was sent.
_OPENINGS = frozenset({"response.created", "response.queued", "response.in_progress", "message_start", "ping"})
_ENDED = {"finish_reason": "stop", "stop_reason": "end_turn"}  # of an answer whose calls were all taken out


class Hearing:
    """Listens to an answer as it passes, whole or streamed; what it cannot read it lets pass."""

    def __init__(self, format: str) -> None:
        self._answer = ANSWERS[format]()
        self._events = Events()
        self.begun = False  # it is an answer: no refusal comes any more
        self.refusal = ""  # what was said instead of an answer
        self._lost = False

    def add(self, chunk: bytes) -> None:
        """Hear some bytes; none are the end."""
        if self._lost:
            return
        try:
            for data in self._events.add(chunk) if chunk else self._events.end():
                if data.strip() != END:
                    event = rawjson.loads(data)
                    deque(self._answer.add(event), maxlen=0)
                    self.begun |= event.get("type") not in _OPENINGS
        except ModelError as error:
            self.refusal = "" if self.begun else str(error)
            self.begun = self._lost = True
        except (BadRequest, *MISSHAPEN):
            self.begun = self._lost = True

    def spoken(self) -> Spoken | None:
        """What was said, if it could be read."""
        try:
            return None if self._lost else self._answer.spoken()
        except MISSHAPEN:
            return None


class Muted:
    """An answer without some of its calls, event by event; whole, it is one event."""

    def __init__(self, calls: Iterable[str], left: bool) -> None:
        self._calls = frozenset(calls)
        self._left = left  # whether other calls are in it
        self._places: list[int] = []  # of what was taken out

    def written(self, content: bytes) -> bytes:
        """The bytes of an answer anew."""
        events = Events()
        found = [*events.add(content), *events.end()]
        if not content.lstrip().startswith(b"{"):
            return b"".join(self._line(data) for data in found)
        [whole] = found
        return rawjson.dumps(self._said(rawjson.loads(whole)))

    def _line(self, data: str) -> bytes:
        if data.strip() == END:
            return b"data: [DONE]\n\n"
        event = self._said(rawjson.loads(data))
        if event is None:
            return b""
        name = f"event: {event['type']}\n".encode() if "type" in event else b""
        return name + b"data: " + rawjson.dumps(event) + b"\n\n"

    def _said(self, event: Block) -> Block | None:
        """One event without them; None where it was only about them."""
        for key in ("index", "output_index"):
            if key in event:
                block = event.get("content_block") or event.get("item") or {}
                if (place := self._place(event[key], block)) is None:
                    return None
                event = {**event, key: place}
        if "choices" in event:
            event = {**event, "choices": [self._choice(choice) for choice in event["choices"]]}
        for key in ("content", "output"):
            if isinstance(event.get(key), list):
                event = self._ended({**event, key: [b for b in event[key] if not self._is_muted(b)]})
        if isinstance(event.get("response"), dict):
            event = {**event, "response": self._said(event["response"])}
        if isinstance(event.get("delta"), dict):
            event = {**event, "delta": self._ended(event["delta"])}
        return event

    def _choice(self, choice: Block) -> Block:
        key = "delta" if "delta" in choice else "message"
        said = dict(choice.get(key) or {})
        calls = said.pop("tool_calls", None) or []
        places = [(call, self._place(call.get("index", at), call)) for at, call in enumerate(calls)]
        kept = [
            {**call, **({"index": place} if "index" in call else {})} for call, place in places if place is not None
        ]
        return self._ended({**choice, key: said | ({"tool_calls": kept} if kept else {})})

    def _is_muted(self, block: Mapping[str, Any]) -> bool:
        return block.get("call_id", block.get("id")) in self._calls

    def _place(self, place: int, block: Mapping[str, Any]) -> int | None:
        """Where something stands once they are gone; None for one of them."""
        if self._is_muted(block):
            self._places.append(place)
        return None if place in self._places else place - sum(gone < place for gone in self._places)

    def _ended(self, said: Block) -> Block:
        """Who has nothing to call has ended."""
        return said if self._left else {**said, **{k: v for k, v in _ENDED.items() if said.get(k)}}
