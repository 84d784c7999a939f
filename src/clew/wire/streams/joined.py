"""Several answers of a provider as one stream: all goes out as it comes, but for calls of clew's tools and the end."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from clew.core import rawjson
from clew.errors import BadRequest
from clew.wire.formats.plain import Block
from clew.wire.streams.pieces import Called

IsOurs = Callable[[str], bool]
# Events that come before a provider looked at what it was sent.
OPENINGS = frozenset({"response.created", "response.queued", "response.in_progress", "message_start", "ping"})


class HeardEvent(NamedTuple):
    """One event of a stream, as it came and as it is read."""

    raw: bytes
    block: Block | None  # none: it tells of an error, or cannot be read; empty: the stream says that it is over
    called: Sequence[Called] = ()  # whose call each fragment in it is


def unoffered(response: Block, is_ours: Callable[[str], bool]) -> Block:
    """A response of OpenAI's whose list of tools has none that its caller did not send; the same if it has none."""
    tools = response.get("tools")
    if not isinstance(tools, list):
        return response
    kept = [tool for tool in tools if not _is_offer(tool, is_ours)]
    return {**response, "tools": kept} if len(kept) < len(tools) else response


def _is_offer(tool: Any, is_ours: Callable[[str], bool]) -> bool:
    return isinstance(tool, Mapping) and tool.get("type") == "function" and is_ours(str(tool.get("name")))


class JoinedStream(ABC):
    """One stream for a caller, out of as many answers as it takes.

    The end of an answer is held back until it is known whether another one follows; so is what has no words in it.
    """

    def __init__(self, is_ours: IsOurs) -> None:
        self._is_ours = is_ours
        self.shown = False  # there was something to see: before that, an error can still be told by a status
        self.over = False  # the answer has no more to say
        self.alias: tuple[str, str] | None = None  # the id of the whole, and of the last answer, by which it goes on
        self._later = False  # it is not the first answer
        self._out: list[bytes] = []
        self._held: list[HeardEvent] = []

    def add(self, events: Iterable[HeardEvent]) -> bytes:
        """What may go out after these."""
        for event in events:
            if self.shown and event.block and not self._held and self._passes(event):
                self._out.append(event.raw)
                continue
            ends = self._ends(event.block) if event.block else event.block is not None
            if ends or self._held:
                self._held.append(event)
                self.over |= self._is_last(event.block or {})
            else:
                self._tell(event, self._passed_on(event) if event.block else None)
        return self._taken()

    def again(self) -> bytes:
        """The answer has only calls of clew's in it, and another one follows: what else its end says."""
        for event in self._held:
            if event.block and (rest := self._unended(event)):
                self._tell(event, rest)
        if not self.shown:  # nobody saw how it began: the next one is the first
            self._out = []
        self._held, self.over, self._later = [], False, self.shown
        self._reset()
        return self._taken()

    def end(self, muted: bool) -> bytes:
        """The end of the last answer; it is `muted` if all of its calls were clew's."""
        for event in self._held:
            self._tell(event, self._ended(event, muted) if event.block else None)
        self.shown = True
        return self._taken()

    def failed(self, content: bytes, status: int) -> bytes:
        """What a provider refused an answer with, said in the stream."""
        try:
            error = rawjson.loads(content)
        except BadRequest:
            error = None
        if not isinstance(error, dict) or not error.get("error"):
            words = content.decode("utf-8", "replace") or f"the provider answered with status {status}"
            error = {"type": "error", "error": {"type": "api_error", "message": words}}
        return b"event: error\ndata: " + rawjson.dumps(error) + b"\n\n"

    def _tell(self, event: HeardEvent, told: Block | None) -> None:
        if not event.block or told is event.block:  # also what cannot be read, as it is
            self._out.append(event.raw)
        elif told is not None:
            name = f"event: {told['type']}\n".encode() if "type" in told else b""
            self._out.append(name + b"data: " + rawjson.dumps(told) + b"\n\n")
        self.shown = self.shown or event.block is None or (told is not None and self._shows(told))

    def _taken(self) -> bytes:
        if not self.shown:
            return b""
        out, self._out = b"".join(self._out), []
        return out

    # --- what differs with the format ---------------------------------------------------------------------------------

    @abstractmethod
    def _passes(self, event: HeardEvent) -> bool:
        """Whether an event is one of those most of a stream is made of, and goes out as it came."""

    @abstractmethod
    def _ends(self, said: Block) -> bool:
        """Whether an event begins the end of an answer."""

    @abstractmethod
    def _is_last(self, said: Block) -> bool:
        """Whether it is the last of an answer."""

    @abstractmethod
    def _shows(self, told: Block) -> bool:
        """Whether a caller would miss it."""

    @abstractmethod
    def _passed_on(self, event: HeardEvent) -> Block | None:
        """What the caller gets instead of an event; the same object if all of it, none if nothing."""

    def _unended(self, event: HeardEvent) -> Block | None:
        """What else an event of the end says."""
        return None

    @abstractmethod
    def _ended(self, event: HeardEvent, muted: bool) -> Block | None:
        """An event of the end as the caller gets it."""

    def _reset(self) -> None:
        """Another answer begins."""
        return
