"""What is new in a body that mostly repeats the last one, at the cost of what is new.

A chat client sends its whole history each turn. Comparing bytes with the last body is some ten times cheaper than
parsing them: so we compare first, parse the rest, and hash what is left.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew import rawjson
from clew.align import shared
from clew.errors import BadRequest
from clew.items import Digests, Frame, Item
from clew.wire import detect, named
from clew.wire.plain import fresh

_END = re.compile(rb"\]\s*\}\s*\Z")


class Body:
    """A request body, parsed when somebody asks and only once."""

    def __init__(self, given: Mapping[str, Any] | bytes, format: str | None = None) -> None:
        self.raw = given if isinstance(given, bytes) else None
        self._parsed = None if isinstance(given, bytes) else given
        self._format = format
        self._split: tuple[Frame, list[Any]] | None = None

    @property
    def parsed(self) -> Mapping[str, Any]:
        if self._parsed is None:
            self._parsed = rawjson.loads(self.raw or b"")
        if not isinstance(self._parsed, Mapping):
            raise BadRequest(f"the body: expected an object with `messages`, got {type(self._parsed).__name__}")
        return self._parsed

    @property
    def format(self) -> str:
        if self._format is None:
            self._format = detect(self.parsed)
        return self._format

    @property
    def split(self) -> tuple[Frame, list[Any]]:
        """The frame, and the messages that are history."""
        if self._split is None:
            try:
                self._split = named(self.format).split(self.parsed)
            except RecursionError:
                raise BadRequest("the body is nested too deeply to read") from None
        return self._split


@dataclass(slots=True)
class Incoming:
    """A request as read: its first `same` messages are those of the last one, `messages` are the others."""

    frame: Frame
    same: int
    messages: list[Any]  # private copies
    items: list[list[Item]]  # of each of them
    raw: bytes | None = None
    end: int = 0  # where the messages end in `raw`

    def flat(self) -> list[Item]:
        return [item for message in self.items for item in message]


@dataclass(slots=True)
class Known:
    """The last body of a branch, so that the next one can be compared with it."""

    format: str
    messages: list[Any] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])  # items before each message, and in all
    chains: list[str] = field(default_factory=lambda: [""])  # digest of all items before each message, and of all
    shift: int = 0  # the log has that many items more: the client sends stand-ins of ours,
    solid: int = 0  # the last of them before this message
    frame: Frame | None = None
    raw: bytes = b""
    ends: list[int] = field(default_factory=list)  # byte offsets where the messages of earlier bodies ended
    counts: list[int] = field(default_factory=list)  # and how many messages that were, system messages included

    def likeness(self, body: Body) -> int:
        """How many messages a body shares with the last one, or at least some number if bytes can tell."""
        if body.raw is not None and self.raw and (at := self._boundary(body.raw)) >= 0:
            return self.counts[at]
        return shared(self.messages, body.split[1]) if body.format == self.format else 0

    def read(self, body: Body) -> Incoming:
        """Read a body, the messages it shares with the last one apart."""
        if body.raw is not None and self.raw and (found := self._resume(body.raw)):
            return found
        frame, messages = body.split
        found = self._incoming(frame, messages, shared(self.messages, messages))
        if body.raw is not None:
            found.raw, found.end = body.raw, _messages_end(body.raw, body.parsed)
        return found

    def take(self, incoming: Incoming, contents: Sequence[str], digests: Digests, said: int, unfolded: bool) -> None:
        """Remember a body as the last one; `contents` are the digests of its new items."""
        del self.messages[incoming.same :], self.starts[incoming.same + 1 :], self.chains[incoming.same + 1 :]
        self.messages += incoming.messages
        at, chain = 0, self.chains[-1]
        for items in incoming.items:
            for content in contents[at : at + len(items)]:
                chain = digests.link(content, (chain,))
            at += len(items)
            self.starts.append(self.starts[-1] + len(items))
            self.chains.append(chain)
        self.shift = said - self.starts[-1]
        self.solid = len(self.messages) if unfolded else self.solid
        self.frame = incoming.frame
        self._take_bytes(incoming)

    def _take_bytes(self, incoming: Incoming) -> None:
        if incoming.raw is None or not incoming.end:
            self.raw, self.ends, self.counts = b"", [], []
            return
        lead = len(incoming.frame.lead)
        keep = bisect_right(self.counts, incoming.same + lead)
        self.raw = incoming.raw
        self.ends = [*self.ends[:keep], incoming.end]
        self.counts = [*self.counts[:keep], len(self.messages) + lead]

    def _boundary(self, raw: bytes) -> int:
        """The last place between two messages up to which these bytes are the known ones; -1 if there is none."""
        return bisect_right(self.ends, _shared_bytes(self.raw, raw)) - 1

    def _resume(self, raw: bytes) -> Incoming | None:
        """Parse only what follows the bytes that are known."""
        trailer = self.raw[self.ends[-1] :]
        at = self._boundary(raw)
        if self.frame is None or at < 0 or not raw.endswith(trailer):
            return None
        start, end = self.ends[at], len(raw) - len(trailer)
        middle = raw[start:end].strip()
        if end < start or (middle and not middle.startswith(b",")):
            return None
        try:
            news = rawjson.loads(b"[" + middle[1:] + b"]")
        except BadRequest:
            return None
        same = self.counts[at] - len(self.frame.lead)
        # Messages known beyond that point may come again: no need to read them twice.
        again = shared(self.messages[same:], news)
        return self._incoming(self.frame, news, again, same, raw, end)

    def _incoming(
        self, frame: Frame, messages: list[Any], same: int, before: int = 0, raw: bytes | None = None, end: int = 0
    ) -> Incoming:
        codec, lead = named(self.format), len(frame.lead)
        try:
            rest = [fresh(m) for m in messages[same:]]
            items = [codec.read(m, f"messages[{lead + before + same + i}]") for i, m in enumerate(rest)]
        except RecursionError:
            raise BadRequest("the body is nested too deeply to read") from None
        return Incoming(frame, before + same, rest, items, raw, end)


def _shared_bytes(old: bytes, new: bytes) -> int:
    """How many bytes both begin with: equal blocks are skipped at the speed of memcmp."""
    low, width = 0, 1 << 18
    least = min(len(old), len(new))
    while low < least and old[low : low + width] == new[low : low + width]:
        low += width
    if low >= least:
        return least
    high = min(low + width, least)
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _messages_end(raw: bytes, body: Mapping[str, Any]) -> int:
    """The offset of the bracket that closes the messages, or 0 if it is not plain to see."""
    after = list(body)[list(body).index("messages") + 1 :]
    if not after:
        found = _END.search(raw, max(0, len(raw) - 200))
        return found.start() if found else 0
    wanted = {key: body[key] for key in after}
    for found in re.finditer(rb"\]\s*,\s*" + re.escape(rawjson.dumps(after[0])) + rb"\s*:", raw):
        try:
            rest = rawjson.loads(b'{"messages":[' + raw[found.start() :])
        except BadRequest:
            continue
        if rest == {"messages": [], **wanted}:
            return found.start()
    return 0
