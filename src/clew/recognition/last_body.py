"""What is new in a body that mostly repeats the last one, at the cost of what is new.

A chat client sends its whole history each turn. Comparing bytes with the last body is some twenty times cheaper than
parsing them: so we compare first, parse the rest, and hash what is left. A clock in the system prompt or a cache mark
that moved changes some bytes before or after; the history between is found all the same.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_
from typing import Any, NamedTuple

from clew.clients.voices import by_message, client_of
from clew.core import rawjson
from clew.core.items import Digests, Frame, Item
from clew.core.threads import LARGE, LONG
from clew.errors import BadRequest
from clew.wire import AMBIGUOUS, detect, named
from clew.wire.formats.plain import fresh

BLOCK = 1 << 18  # bytes compared at a time
TRIES = 64  # places looked at before giving up: the slow way is always right
BLANKS = 64  # bytes between two messages, where somebody indents them
LOOK_BACK = 1 << 20  # bytes looked back for a place between two messages

_CLOSES = re.compile(rb"\]\s*\}\s*\Z")


class Overlap(NamedTuple):
    """Bytes of the last body's history that stand in this one too."""

    start: int
    length: int
    messages: int


class Body:
    """A request body, parsed when somebody asks and only once."""

    def __init__(self, given: Mapping[str, Any] | bytes, format: str | None = None) -> None:
        self.raw = given if isinstance(given, bytes) else None
        self._parsed = None if isinstance(given, bytes) else given
        self.declared = format  # by the host, not told from the body
        self._format = format
        self._split: tuple[Frame, list[Any]] | None = None
        self.overlaps: dict[tuple[Known, int], Overlap | None] = {}  # with what was known of a branch, at which turn

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
    raw: bytes = b""
    start: int = 0  # the history within `raw`; no end: not found
    end: int = 0

    def serve(self, by: str) -> None:
        """Note by whom its model is served."""
        if self.frame.served != by:  # else it is the last request's own, which is known to be the same
            self.frame = with_(self.frame, served=by)

    def flat(self) -> list[Item]:
        return [item for message in self.items for item in message]


@dataclass(slots=True, eq=False)
class Known:
    """The last body of a branch, so that the next one can be compared with it."""

    format: str
    messages: list[Any] = field(default_factory=list)
    numbers: list[bool] = field(default_factory=list)  # whether each holds some: to Python 1 is 1.0 is True
    starts: list[int] = field(default_factory=lambda: [0])  # items before each message, and in all
    characters: list[int] = field(default_factory=lambda: [0])  # of text before each message, and in all
    chains: list[str] = field(default_factory=lambda: [""])  # digest of all items before each message, and of all
    shift: int = 0  # the log has that many items more: the client sends stand-ins of ours,
    solid: int = 0  # the last of them before this message
    frame: Frame | None = None
    raw: bytes = b""
    start: int = 0
    end: int = 0
    turn: int = 0  # how often a body was taken

    def likeness(self, body: Body) -> int:
        """How many messages a body shares with the last one, as far as bytes can tell."""
        found = self._overlap(body)
        return found.messages if found else 0

    def close_likeness(self, body: Body) -> int:
        """The same, at the price of parsing the body."""
        return self._shared(0, body.split[1]) if body.format == self.format else 0

    def takes_long(self, body: Body) -> bool:
        """Whether much of a body must be read that is not known."""
        if body.raw is None:
            return len(body.split[1]) - len(self.messages) > LONG
        found = self._overlap(body)
        return len(body.raw) - (found.length if found else 0) > LARGE

    def read(self, body: Body) -> Incoming | None:
        """Read a body, the messages it shares with the last one apart; None if it is in another format."""
        if found := self._resume(body):
            return found
        if body.format != self.format:
            return None
        frame, messages = body.split
        incoming = self._incoming(frame, messages, self._shared(0, messages))
        if body.raw is not None:
            incoming.raw = body.raw
            incoming.start, incoming.end = edges(body.raw, body.parsed, named(self.format).LIST, len(frame.lead))
        return incoming

    def take(self, incoming: Incoming, contents: Sequence[str], digests: Digests, said: int, unfolded: bool) -> None:
        """Remember a body as the last one; `contents` are the digests of its new items."""
        del self.messages[incoming.same :], self.starts[incoming.same + 1 :], self.chains[incoming.same + 1 :]
        del self.numbers[incoming.same :], self.characters[incoming.same + 1 :]
        self.messages += incoming.messages
        self.numbers += map(_has_numbers, incoming.messages)
        at, chain = 0, self.chains[-1]
        for items in incoming.items:
            chain = digests.run(chain, contents[at : at + len(items)])
            at += len(items)
            self.starts.append(self.starts[-1] + len(items))
            self.characters.append(self.characters[-1] + sum(len(item.text) for item in items))
            self.chains.append(chain)
        self.shift = said - self.starts[-1]
        self.solid = len(self.messages) if unfolded else self.solid
        self.frame = incoming.frame
        self.raw, self.start, self.end = incoming.raw, incoming.start, incoming.end
        self.turn += 1

    def _overlap(self, body: Body) -> Overlap | None:
        if body.raw is None or not self.end or body.declared not in (None, self.format):
            return None
        key = self, self.turn
        if key not in body.overlaps:
            body.overlaps[key] = self._compare(body.raw)
        return body.overlaps[key]

    def _compare(self, raw: bytes) -> Overlap | None:
        """Where the known history stands in these bytes, and how much of it."""
        probe = self.raw[self.start : min(self.end, self.start + 256)]
        start = self.start if raw.startswith(probe, self.start) else raw.find(probe)
        if start < 0:
            return None
        if raw.startswith(memoryview(self.raw)[self.start : self.end], start):
            return Overlap(start, self.end - self.start, len(self.messages))
        same = shared_bytes(self.raw, self.start, raw, start)
        found = last_boundary(self.raw, self.start, self.start + same, self.end, self.messages)
        return Overlap(start, found[0] - self.start, found[1]) if found else None

    def _resume(self, body: Body) -> Incoming | None:
        """Parse only what stands around the bytes that are known."""
        found = self._overlap(body)
        if found is None or body.raw is None or self.frame is None:
            return None
        head, tail = body.raw[: found.start], body.raw[found.start + found.length :].lstrip()
        trailer = self.raw[self.end :]
        news = None
        if tail.startswith(b",") and tail.endswith(trailer) and head == self.raw[: self.start]:
            news = parsed_list(tail[1 : len(tail) - len(trailer)])  # None: it only looked like the same ending
        if news is not None:
            frame, end = self.frame, len(body.raw) - len(trailer)
        else:
            tail = tail[1:].lstrip() if tail.startswith(b",") else tail
            rest = Body((head if not tail.startswith(b"]") else head.rstrip().removesuffix(b",")) + tail, self.format)
            try:
                frame, news = rest.split
            except BadRequest:
                return None  # the same bytes under another key: another format
            begin, end = edges(rest.raw or b"", rest.parsed, named(self.format).LIST, len(frame.lead))
            # Only system messages may stand before the known ones; without news there is no history to find.
            if len(frame.lead) != len(self.frame.lead) or (news and begin != found.start):
                return None
            end = len(body.raw) - (len(rest.raw or b"") - end) if news else found.start + found.length
        # Plain text fits several formats: what is new may show that it was another one all along.
        if body.declared is None and self.format == AMBIGUOUS and detect({**frame.body, "messages": news}) != AMBIGUOUS:
            return None
        # Messages known beyond that point may come again: no need to read them twice.
        again = self._shared(found.messages, news)
        incoming = self._incoming(frame, news, again, found.messages)
        incoming.raw, incoming.start, incoming.end = body.raw, found.start, end
        return incoming

    def _shared(self, start: int, messages: Sequence[Any]) -> int:
        """How many messages are those that are known from a place on, to the letter."""
        same = 0
        for known, numbers, message in zip(self.messages[start:], self.numbers[start:], messages, strict=False):
            if known != message or (numbers and rawjson.dumps(known) != rawjson.dumps(message)):
                break
            same += 1
        return same

    def _incoming(self, frame: Frame, messages: list[Any], same: int, before: int = 0) -> Incoming:
        codec, lead = named(self.format), len(frame.lead)
        try:
            rest = [fresh(m) for m in messages[same:]]
            items = [codec.read(m, f"{codec.LIST}[{lead + before + same + i}]") for i, m in enumerate(rest)]
        except RecursionError:
            raise BadRequest("the body is nested too deeply to read") from None
        return Incoming(frame, before + same, rest, by_message(items, client_of(frame.system), not before + same))


def _has_numbers(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_numbers, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_has_numbers, value))
    return isinstance(value, int | float)


def edges(raw: bytes, body: Mapping[str, Any], key: str, lead: int) -> tuple[int, int]:
    """From where to where the history under `key` lies, after `lead` system messages; (0, 0) if not plain to see."""
    messages = body[key]
    if not isinstance(messages, list) or len(messages) <= lead:
        return 0, 0
    for start in _starts(raw, key, messages[:lead]):
        for end in _ends(raw, key, body):
            # Without its history the body must be the same body: that proves both places.
            rest = raw[:start].rstrip().removesuffix(b",") + raw[end:]
            if rawjson.attempt(rest) == {**body, key: messages[:lead]}:
                return start, _after_last(raw, end)
    return 0, 0


def last_boundary(raw: bytes, start: int, upto: int, end: int, messages: Sequence[Any]) -> tuple[int, int] | None:
    """The last place between two messages before `upto`: its offset, and how many messages come before it."""
    at = upto
    for _ in range(TRIES):
        at = _element_before(raw, max(start, upto - LOOK_BACK), at)
        if at <= start:
            return None
        comma = raw.rindex(b",", start, at)
        # What stands before it proves a place as well as what stands after it: the shorter of the two is parsed.
        if comma - start < end - at:
            known = _listed(raw[start:comma])
            if known and known == messages[: len(known)]:
                return comma, len(known)
        else:
            known = _listed(raw[at:end])
            if known and known == messages[-len(known) :] and len(known) < len(messages):
                return comma, len(messages) - len(known)
    return None


def _listed(raw: bytes) -> list[Any] | None:
    found = rawjson.attempt(b"[" + raw + b"]")
    return found if isinstance(found, list) else None


def parsed_list(raw: bytes) -> list[Any] | None:
    """The elements that stand there between commas; None if that is not what stands there."""
    try:
        found = rawjson.loads(b"[" + raw + b"]")
    except BadRequest:
        return None
    return found if isinstance(found, list) else None


def shared_bytes(old: bytes, start: int, new: bytes, begin: int) -> int:
    """How many bytes are the same from these two places on: equal blocks are skipped at the speed of memory."""
    least = min(len(old) - start, len(new) - begin)
    low = 0
    while low < least and old[start + low : start + low + BLOCK] == new[begin + low : begin + low + BLOCK]:
        low += BLOCK
    high = min(low + BLOCK, least)
    low = min(low, least)
    while low < high:
        middle = (low + high + 1) // 2
        if old[start + low : start + middle] == new[begin + low : begin + middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _after_last(raw: bytes, end: int) -> int:
    """Where the last message ends: blanks before the bracket belong to no message."""
    while raw[end - 1] in b" \t\r\n":
        end -= 1
    return end


def _element_before(raw: bytes, start: int, at: int) -> int:
    """The last object before `at` that follows a comma; -1 if there is none after `start`."""
    while (at := raw.rfind(b"{", start, at)) > start:
        if raw[max(start, at - BLANKS) : at].rstrip().endswith(b","):
            return at
    return -1


def _starts(raw: bytes, key: str, lead: Sequence[Any]) -> Iterator[int]:
    """Where the history may begin."""
    opens = re.compile(rb'"%b"\s*:\s*\[\s*' % key.encode())
    for found, _ in zip(opens.finditer(raw), range(TRIES), strict=False):
        first = found.end()
        if not lead:
            yield first
            continue
        for comma, _ in zip(re.finditer(rb",\s*(?=\{)", raw[first : first + LOOK_BACK]), range(TRIES), strict=False):
            if rawjson.attempt(b"[" + raw[first : first + comma.start()] + b"]") == lead:
                yield first + comma.end()
                break


def _ends(raw: bytes, key: str, body: Mapping[str, Any]) -> Iterator[int]:
    """Where the history may end: at the bracket before the next key, or before the last brace."""
    keys = list(body)
    after = keys[keys.index(key) + 1 :]
    if not after:
        found = _CLOSES.search(raw, max(0, len(raw) - 200))
        yield from [found.start()] if found else []
        return
    closes = re.compile(rb"\]\s*,\s*" + re.escape(rawjson.dumps(after[0])) + rb"\s*:")
    places = [found.start() for found in closes.finditer(raw)]
    yield from reversed(places[-TRIES:])
