"""What providers read from their caches: what ends at a mark, or whatever was sent before."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol

from clew.catalog.usage import Spent
from clew.core.view import View, shared_start
from clew.engine.cache_marks import anchor
from clew.tokens.meter import Meter

LOOK_BACK = 20  # blocks before a mark at which a provider looks for what it keeps
STEP, LEAST = 128, 1_024  # tokens: in steps of so many, from so many on, where nothing is marked
KEPT = 12  # requests whose beginnings are remembered there


class PriceCache(Protocol):
    """A provider's cache of one conversation."""

    def sent(self, view: View, output: int) -> Spent:
        """What is read from it and written to it by a request, which it has from then on."""


@dataclass
class Beginnings:
    """All that a request may begin with, each with its tokens: counted anew only where it differs from the one before.

    A session of a million tokens is sent thousands of times, and nearly all of it is what was sent just before.
    """

    meter: Meter
    until: list[int] = field(default_factory=list)  # tokens of the frame, and to the end of each node
    digests: list[bytes] = field(default_factory=list)
    _last: View | None = None

    def of(self, view: View) -> "Beginnings":
        """Those of a request, which is the next one."""
        last, self._last = self._last, view
        if last is None or last.frame != view.frame:
            last = None
            self.until = [self.meter.frame(view.frame).tokens]
            self.digests = [blake2b(view.frame.system.encode(), digest_size=16).digest()]
        same = 0 if last is None else shared_start(view.nodes, last.nodes)
        del self.until[same + 1 :], self.digests[same + 1 :]
        for node in view.nodes[same:]:
            self.until.append(self.until[-1] + self.meter.node(node).tokens)
            self.digests.append(blake2b(self.digests[-1] + node.content.encode(), digest_size=16).digest())
        return self


@dataclass
class Marked:
    """Anthropic's rules: what ends at a mark is kept, and found from a mark that is at most 20 blocks behind it.

    The client marks the frame, and the last block of this request and of the one before; clew marks where it folds.
    """

    meter: Meter
    _kept: set[bytes] = field(default_factory=set)
    _last: str = ""  # the block that the request before this one ended with
    _begins: Beginnings = field(init=False)

    def __post_init__(self) -> None:
        self._begins = Beginnings(self.meter)

    def sent(self, view: View, output: int) -> Spent:
        """What is read from it and written to it by a request."""
        begins = self._begins.of(view)
        until, chain = begins.until, begins.digests
        before = next((at for at in range(len(view.nodes), 0, -1) if view.nodes[at - 1].id == self._last), 0)
        own = anchor(view.nodes)
        marks = sorted({0, before, len(view.nodes), *(() if own is None else (own + 1,))})
        self._last = view.nodes[-1].id if view.nodes else ""
        found = [at for mark in marks for at in range(mark, max(-1, mark - LOOK_BACK), -1) if chain[at] in self._kept]
        self._kept.update(chain[mark] for mark in marks)
        read = until[max(found)] if found else 0
        return Spent(until[-1], output, read, until[-1] - read)


@dataclass
class Automatic:
    """OpenAI's rules, and those of most others: what a request of late began with, in steps of 128 tokens."""

    meter: Meter
    _last: deque[View] = field(default_factory=lambda: deque(maxlen=KEPT))
    _begins: Beginnings = field(init=False)

    def __post_init__(self) -> None:
        self._begins = Beginnings(self.meter)

    def sent(self, view: View, output: int) -> Spent:
        """What is read from it by a request; to write costs what the tokens cost."""
        begins = self._begins.of(view)
        same = max((shared_start(view.nodes, last.nodes) for last in self._last), default=-1)
        read = begins.until[same] if same >= 0 else 0
        self._last.append(view)
        return Spent(begins.until[-1], output, read // STEP * STEP if read >= LEAST else 0)


def total(calls: Sequence[Spent]) -> Spent:
    """All of these as one."""
    return Spent(*(sum(getattr(call, key) for call in calls) for key in Spent.__slots__))
