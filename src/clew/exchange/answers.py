"""An answer on its way to the caller: read as it passes, and without what is none of his business.

No SDK and no HTTP library is needed. Where nothing is changed, each chunk goes out as it came:

    reader = AnswerReader(format)
    for chunk in chunks:
        reader.hear(chunk)
        send(chunk)
    reader.hear(b"")  # the end
    spoken = reader.spoken()  # messages as they are sent back, and the usage; None if it could not be read

Where the model may call tools that its caller knows nothing of, a format makes one stream of several answers:
`named(format).joined(is_ours).add(reader.add(chunk))` is what may go out now.
"""

import re
from collections.abc import Callable, Container

from clew.core import rawjson
from clew.errors import BadRequest, ModelError
from clew.wire.formats import named
from clew.wire.streams.building import MISSHAPEN
from clew.wire.streams.events import END, Events, read
from clew.wire.streams.joined import OPENINGS, HeardEvent, unoffered
from clew.wire.streams.pieces import Called, Spoken

# Events that tell of usage, or of an error; in what a model says, quotation marks are escaped.
_TELLS = re.compile(rb'"(?:usage|usageMetadata|error)"\s*:\s*[{"]|"type"\s*:\s*"error"')
KEPT_BYTES = 64_000  # that are read together


class AnswerReader:
    """Reads one answer as it passes, whole or streamed; what it cannot read it lets pass.

    Who changes the stream takes the events of `add`; who passes it on as it comes calls `hear`, which costs less, and
    next to nothing with `only_usage`: then `spoken` has the usage and no words.
    """

    def __init__(self, format: str, only_usage: bool = False) -> None:
        self._answer = named(format).answer()
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


def without_offers(content: bytes, is_ours: Callable[[str], bool]) -> bytes:
    """The same of a whole answer; what cannot be read stays as it is."""
    try:
        answer = rawjson.loads(content)
    except BadRequest:
        return content
    plain = unoffered(answer, is_ours) if isinstance(answer, dict) else answer
    return content if plain is answer else rawjson.dumps(plain)


def without(content: bytes, format: str, calls: Container[str], left: bool) -> bytes:
    """A whole answer without some of its calls; `left` says whether there are others in it."""
    try:
        answer = rawjson.loads(content)
    except BadRequest:  # events under a false name
        return content
    return rawjson.dumps(named(format).without(answer, calls, left))
