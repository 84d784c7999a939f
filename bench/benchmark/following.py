"""A session with a peer: it is asked before every call, as its framework asks it."""

from collections.abc import Sequence
from typing import Any

from benchmark.dollars import Replayed, Session
from benchmark.judging import shown
from benchmark.methods import view_of
from benchmark.peers import Child
from clew.catalog.usage import Spent
from clew.core import rawjson
from clew.tokens.meter import Meter

Sent = Sequence[Any]  # messages in OpenAI's format


class Prompts:
    """What prompts come to, each message counted once, and how much of one the provider has in its cache."""

    def __init__(self, meter: Meter, known: Sent) -> None:
        self._meter = meter
        self._frame = meter.frame(view_of([]).frame).tokens
        self._known = {id(message): self._count(message) for message in known}
        self._other: dict[bytes, int] = {}
        self._last: Sent | None = None

    def tokens(self, messages: Sent) -> int:
        return self._frame + sum(map(self.message, messages))

    def read(self, messages: Sent) -> int:
        """Tokens that come from the cache: what is the same as in the last prompt; the next is compared to this one."""
        last, self._last = self._last, messages
        if last is None:
            return 0
        pairs = enumerate(zip(messages, last, strict=False))
        same = next((n for n, (new, old) in pairs if new is not old and new != old), min(len(messages), len(last)))
        return self.tokens(messages[:same])

    def message(self, message: Any) -> int:
        """Tokens of one message."""
        found = self._known.get(id(message))
        if found is None:
            key = rawjson.dumps(message)
            found = self._other.get(key)
            if found is None:
                found = self._other[key] = self._count(message)
        return found

    def _count(self, message: Any) -> int:
        view = view_of([message])
        return self._meter.frame(view.frame).plus(self._meter.nodes(view.nodes)).tokens - self._frame


def follow(session: Session, child: Child, window: int, meter: Meter) -> Replayed:
    """Every call of a session, with what a peer makes of its prompt in a window of so many tokens."""
    found, prompts = Replayed(), Prompts(meter, session.messages)
    rate = len(shown(session.messages)) / max(1, prompts.tokens(session.messages))  # characters of a token
    child.begin(window)
    kept: list[Any] = []
    at = fewer = 0
    for n, message in enumerate(session.messages):
        if message["role"] != "assistant" and n not in session.probes:
            continue
        kept, at = [*kept, *session.messages[at:n]], n
        sent = child.fit(kept)
        found.compactions += bool(child.asked) or len(kept) - len(sent) > fewer
        fewer = 0 if child.peer.goes_on else len(kept) - len(sent)
        # Its model is sent another prompt than the agent's, so that nothing of it is in the cache.
        found.helpers += [Spent(round(read / rate), round(written / rate)) for read, written in child.asked]
        kept = sent if child.peer.goes_on else kept
        if n in session.probes:
            found.shown[n] = view_of(sent)
        if message["role"] == "assistant":
            size, read = prompts.tokens(sent), prompts.read(sent)
            found.calls.append(Spent(size, prompts.message(message), read, size - read))
    return found
