"""An answer on its way to the caller: listened to, and without what is none of his business."""

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from clew.core import rawjson
from clew.errors import BadRequest, ModelError
from clew.exchange import gemini
from clew.llm.streaming.answers import MISSHAPEN, AnswerBuilder
from clew.llm.streaming.chat import ChatAnswer
from clew.llm.streaming.events import END, Events
from clew.llm.streaming.gemini import GeminiAnswer
from clew.llm.streaming.messages import MessagesAnswer
from clew.llm.streaming.pieces import Called, Spoken
from clew.llm.streaming.responses import ResponsesAnswer
from clew.wire.formats.plain import Block

ANSWERS: Mapping[str, type[AnswerBuilder]] = {
    "openai_chat": ChatAnswer,
    "openai_responses": ResponsesAnswer,
    "anthropic": MessagesAnswer,
    "gemini": GeminiAnswer,
}
# Events that come before a provider looked at what it was sent.
OPENINGS = frozenset({"response.created", "response.queued", "response.in_progress", "message_start", "ping"})
_ENDED = {"finish_reason": "stop", "stop_reason": "end_turn"}  # of an answer whose calls were all taken out


class HeardEvent(NamedTuple):
    """One event of a stream, as it came and as it is read."""

    raw: bytes
    said: Block | None  # none: it tells of an error, or cannot be read; empty: the stream says that it is over
    called: Sequence[Called] = ()  # whose call each fragment in it is


class Hearing:
    """Listens to an answer as it passes, whole or streamed; what it cannot read it lets pass."""

    def __init__(self, format: str, keeps: bool = False) -> None:
        self._answer = ANSWERS[format]()
        self._events = Events()
        self._keeps = keeps  # the events, for who is to change them
        self._kept: list[HeardEvent] = []
        self.begun = False  # it is an answer: no refusal comes any more
        self.refusal = ""  # what was said instead of an answer
        self.lost = False  # there was something that could not be read, or an error

    def add(self, chunk: bytes) -> None:
        """Hear some bytes; none are the end."""
        if self.lost and not self._keeps:
            return
        for data in self._events.add(chunk) if chunk else self._events.end():
            heard = HeardEvent(self._events.raw, None) if self.lost else self._hear(data)
            if self._keeps:
                self._kept.append(heard)

    def taken(self) -> list[HeardEvent]:
        """The events that came since they were last taken."""
        taken, self._kept = self._kept, []
        return taken

    def _hear(self, data: str) -> HeardEvent:
        if data.strip() == END:
            return HeardEvent(self._events.raw, {})
        try:
            event = rawjson.loads(data)
            pieces = list(self._answer.add(event))
            self.begun |= isinstance(event, list) or event.get("type") not in OPENINGS
            return HeardEvent(self._events.raw, event, [piece for piece in pieces if isinstance(piece, Called)])
        except ModelError as error:
            self.refusal = "" if self.begun else str(error)
        except (BadRequest, *MISSHAPEN):
            pass
        self.begun = self.lost = True
        return HeardEvent(self._events.raw, None)

    def spoken(self) -> Spoken | None:
        """What was said, if it could be read."""
        try:
            return None if self.lost else self._answer.spoken()
        except MISSHAPEN:
            return None


def without(content: bytes, calls: Container[str], left: bool) -> bytes:
    """A whole answer without some of its calls; `left` says whether there are others in it."""
    try:
        answer = rawjson.loads(content)
    except BadRequest:  # events under a false name
        return content
    if isinstance(answer, list) or "candidates" in answer:
        return gemini.without(answer, calls)
    for key in ("content", "output"):
        if isinstance(answer.get(key), list):
            answer[key] = [block for block in answer[key] if block.get("call_id", block.get("id")) not in calls]
    for choice in answer.get("choices") or ():
        kept = [call for call in choice["message"].get("tool_calls") or () if call.get("id") not in calls]
        choice["message"] = {k: v for k, v in choice["message"].items() if k != "tool_calls"}
        choice["message"] |= {"tool_calls": kept} if kept else {}
    # Who has nothing to call has ended.
    for said in () if left else (answer, *(answer.get("choices") or ())):
        said |= {key: ended for key, ended in _ENDED.items() if said.get(key)}
    return rawjson.dumps(answer)
