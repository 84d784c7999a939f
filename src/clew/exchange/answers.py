"""An answer on its way to the caller: read as it passes, and without what is none of his business.

No SDK and no HTTP library is needed. Where nothing is changed, each chunk goes out as it came:

    reader = AnswerReader(format)
    for chunk in chunks:
        reader.hear(chunk)
        send(chunk)
    reader.hear(b"")  # the end
    spoken = reader.spoken()  # messages as they are sent back, and the usage; None if it could not be read

Where the model may call tools that its caller knows nothing of, `joining` makes one stream of several answers:
`STREAMS[format](is_ours).add(reader.add(chunk))` is what may go out now.
"""

import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

from clew.core import rawjson
from clew.errors import BadRequest, ModelError
from clew.exchange import gemini
from clew.llm.streaming.answers import MISSHAPEN, AnswerBuilder
from clew.llm.streaming.chat import ChatAnswer
from clew.llm.streaming.events import END, Events, read
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
# Events that tell of usage, or of an error; in what a model says, quotation marks are escaped.
_TELLS = re.compile(rb'"(?:usage|usageMetadata|error)"\s*:\s*[{"]|"type"\s*:\s*"error"')
KEPT_BYTES = 64_000  # that are read together

_ENDED = {"finish_reason": "stop", "stop_reason": "end_turn"}  # of an answer whose calls were all taken out


class HeardEvent(NamedTuple):
    """One event of a stream, as it came and as it is read."""

    raw: bytes
    said: Block | None  # none: it tells of an error, or cannot be read; empty: the stream says that it is over
    called: Sequence[Called] = ()  # whose call each fragment in it is


class AnswerReader:
    """Reads one answer as it passes, whole or streamed; what it cannot read it lets pass.

    Who changes the stream takes the events of `add`; who passes it on as it comes calls `hear`, which costs less, and
    next to nothing with `only_usage`: then `spoken` has the usage and no words.
    """

    def __init__(self, format: str, only_usage: bool = False) -> None:
        self._answer = ANSWERS[format]()
        self._only_usage = only_usage
        self._events = Events()
        self._kept: list[bytes] = []  # chunks that are still to be read
        self._size = 0
        self.begun = False  # it is an answer: no refusal comes any more
        self.refusal = ""  # what was said instead of an answer
        self.lost = False  # there was something that could not be read, or an error

    def add(self, chunk: bytes) -> list[HeardEvent]:
        """The events that end with some more bytes; none are the end of the answer."""
        return [self._read(raw) for raw in (self._events.add(chunk) if chunk else self._events.end())]

    def hear(self, chunk: bytes) -> None:
        """Hear some more bytes, of which none are the end; once they are known for an answer, many are read at once."""
        if chunk and self.lost:
            return
        self._kept.append(chunk)
        self._size += len(chunk)
        if not self.begun or self._size > KEPT_BYTES or not chunk:
            self._catch_up(ended=not chunk)

    def spoken(self) -> Spoken | None:
        """What was said so far, if it could be read."""
        self._catch_up()
        try:
            return None if self.lost else self._answer.spoken()
        except MISSHAPEN:
            return None

    def _catch_up(self, ended: bool = False) -> None:
        chunk, self._kept, self._size = b"".join(self._kept), [], 0
        # One at a time: to hold all that they say would have the garbage collector look through it.
        for raw in [*self._events.add(chunk), *(self._events.end() if ended else ())]:
            if not self._only_usage or not self.begun or _TELLS.search(raw):
                self._read(raw)

    def _read(self, raw: bytes) -> HeardEvent:
        if self.lost:
            return HeardEvent(raw, None)
        try:
            event = read(raw)
            if event is END:
                return HeardEvent(raw, event)
            pieces = self._answer.add(event)
            if not self.begun:
                self.begun = isinstance(event, list) or event.get("type") not in OPENINGS
            return HeardEvent(raw, event, [piece for piece in pieces if isinstance(piece, Called)])
        except ModelError as error:
            self.refusal = "" if self.begun else str(error)
        except (BadRequest, *MISSHAPEN):
            pass
        self.begun = self.lost = True
        return HeardEvent(raw, None)


def unoffered(response: Block, is_ours: Callable[[str], bool]) -> Block:
    """A response of OpenAI's whose list of tools has none that its caller did not send; the same if it has none."""
    tools = response.get("tools")
    if not isinstance(tools, list):
        return response
    kept = [tool for tool in tools if not _is_offer(tool, is_ours)]
    return {**response, "tools": kept} if len(kept) < len(tools) else response


def _is_offer(tool: Any, is_ours: Callable[[str], bool]) -> bool:
    return isinstance(tool, Mapping) and tool.get("type") == "function" and is_ours(str(tool.get("name")))


def without_offers(content: bytes, is_ours: Callable[[str], bool]) -> bytes:
    """The same of a whole answer; what cannot be read stays as it is."""
    try:
        answer = rawjson.loads(content)
    except BadRequest:
        return content
    plain = unoffered(answer, is_ours) if isinstance(answer, dict) else answer
    return content if plain is answer else rawjson.dumps(plain)


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
