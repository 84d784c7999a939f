"""What sessions cost at a provider that keeps prefixes in a cache, and what each method still has when it is needed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_
from functools import cache, lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmark.corpus import Corpus
from benchmark.growing import Keeper
from benchmark.judging import RECALLED, Cut, Judge, Messages, Method, Recall, Tally, Words
from benchmark.methods import FORMAT, view_of
from benchmark.shipped import CUTS, needed
from clew.catalog.usage import Spent
from clew.core import rawjson
from clew.core.cuts import continues
from clew.core.items import Node
from clew.core.view import View
from clew.screens.demo import sample
from clew.text.search import Index, texts
from clew.tokens.meter import Meter
from clew.wire import named

ENDLESS = 10**12  # tokens: no result is too large here

Probes = Mapping[int, Sequence[Any]]  # how many messages are before it, and what is needed after it


class Session:
    """A conversation as calls: each message of the assistant is the answer to one, whose prompt is all before it."""

    def __init__(self, name: str, messages: Messages, probes: Probes) -> None:
        self.name, self.messages, self.probes = name, messages, probes
        self.whole = view_of(messages)
        lead = [0] * len(self.whole.frame.lead)
        opening = [i for i, node in enumerate(self.whole.nodes) if node.item.opens is not None]
        self.starts = [*lead, *opening, len(self.whole.nodes)]  # of each message, in nodes
        self.turns = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
        self.recall = cache(self._recall)  # the same for every method that has one
        self._index_at = lru_cache(maxsize=1)(self._index)

    def _recall(self, at: int, cue: str) -> str:
        """What one recall brings back of all that was said before a probe."""
        return self._index_at(at).answer(cue, RECALLED)

    def _index(self, at: int) -> Index:
        return Index(texts(self.whole.nodes[: self.starts[at]]))


def of_corpus(folder: Path, most: int, calls: int) -> tuple[list[Session], Judge]:
    """The longest coding sessions of a corpus, each to so many calls, and who judges what is kept of them."""
    corpus = Corpus(folder)
    return [_begun(Session(*found), calls) for found in corpus.longest(most)], corpus


def _begun(session: Session, calls: int) -> Session:
    """The first so many calls of a session."""
    if len(session.turns) <= calls:
        return session
    end = session.turns[calls - 1] + 1
    return Session(session.name, session.messages[:end], {n: p for n, p in session.probes.items() if n < end})


def shipped() -> tuple[list[Session], Judge]:
    """The session that ships with clew."""
    messages = sample()
    places = [int(len(messages) * cut) for cut in CUTS]
    return [Session("shipped", messages, {at: list(needed(messages, at)) for at in places})], Words()


class Provider:
    """Reads from its cache what a request has in common with the last one, message by message, and writes the rest."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._nodes: tuple[Node, ...] = ()
        self._sent: list[tuple[bytes, int]] = []  # messages of the last request, and their tokens

    def read(self, view: View) -> int:
        """How many tokens of this request come from the cache; the next is compared to this one."""
        had, first = len(self._nodes), not self._sent
        if view.nodes[:had] == self._nodes:  # it went on: the messages before are the same objects
            sent, same = [*self._sent, *self._encoded(view.nodes[had:])], len(self._sent)
        else:
            sent = list(self._encoded(view.nodes))
            differ = (i for i, (new, old) in enumerate(zip(sent, self._sent, strict=False)) if new != old)
            same = next(differ, min(len(sent), len(self._sent)))
        self._nodes, self._sent = view.nodes, sent
        return 0 if first else self._meter.frame(view.frame).tokens + sum(tokens for _, tokens in sent[:same])

    def _encoded(self, nodes: Sequence[Node]) -> Iterator[tuple[bytes, int]]:
        starts = [i for i in range(len(nodes)) if not continues(nodes, i)]
        for start, stop in pairwise([*starts, len(nodes)]):
            (message,) = named(FORMAT).write(node.item for node in nodes[start:stop])
            yield rawjson.dumps(message), self._meter.nodes(nodes[start:stop]).tokens


@dataclass
class Replayed:
    """A session from its first call to its last."""

    calls: list[Spent] = field(default_factory=list)
    helpers: list[Spent] = field(default_factory=list)  # calls of the method's own
    compactions: int = 0
    predicted: int = 0  # calls whose cached prefix was what the edits before it said
    shown: dict[int, View] = field(default_factory=dict)  # what would be sent, at the probes


def replay(
    session: Session, keeper: Keeper, meter: Meter, heard: Callable[[View, int], None] = lambda view, output: None
) -> Replayed:
    """Every call of a session, with what the keeper makes of its prompt; each view that is sent is `heard`."""
    found, provider = Replayed(), Provider(meter)
    view = with_(session.whole, nodes=())
    size = meter.frame(view.frame).tokens
    at = expected = 0
    for n, message in enumerate(session.messages):
        if message["role"] != "assistant" and n not in session.probes:
            continue
        new = session.whole.nodes[at : session.starts[n]]
        at = session.starts[n]
        view, size = with_(view, nodes=view.nodes + new), size + meter.nodes(new).tokens
        fitted, helped = keeper.fit(view, size)
        if fitted is not view:
            expected = min(expected, untouched(view, fitted, meter))
            view, size = fitted, meter.frame(fitted.frame).plus(meter.nodes(fitted.nodes)).tokens
            found.compactions += 1
        if helped.input:
            found.helpers.append(helped)
        if n in session.probes:
            found.shown[n] = view
        if message["role"] == "assistant":
            read = provider.read(view)
            found.predicted += read == expected
            output = meter.nodes(session.whole.nodes[at : session.starts[n + 1]]).tokens
            found.calls.append(Spent(size, output, read, size - read))
            heard(view, output)
            expected = size
    return found


def untouched(before: View, after: View, meter: Meter) -> int:
    """The tokens of whole messages before the first edit that led from one view to the other."""
    edited = {id for edit in after.edits[len(before.edits) :] for id in edit.old}
    first = next((i for i, node in enumerate(before.nodes) if node.id in edited), len(before.nodes))
    while continues(before.nodes, first):
        first -= 1
    return meter.frame(before.frame).plus(meter.nodes(before.nodes[:first])).tokens


def judge_shown(tally: Tally, session: Session, found: Replayed, recalls: bool) -> None:
    """What a method would send at each probe, held against what is needed after it."""
    for at, view in found.shown.items():
        sent: list[Any] = [*view.frame.lead, *named(FORMAT).write(node.item for node in view.nodes)]
        cut = Cut(session.name, (), ENDLESS, ENDLESS, session.probes[at])
        tally.add(cut, _showing(sent, partial(session.recall, at) if recalls else None))


def _showing(sent: Messages, recall: Recall | None) -> Method:
    return lambda messages, size: (sent, recall) if recall else sent
