"""Peers on the same material as clew: one process each, one after the other."""

from collections.abc import Iterable, Iterator

from benchmark.judging import MODEL, Messages, shown
from benchmark.peers import Child, Failed, NoAnswer, Peer
from clew.tokens import counter_for

CAP = 10.0  # seconds of CPU that a peer may use for one history


def left(peer: Peer, histories: Iterable[tuple[Messages, int]]) -> Iterator[str | None]:
    """The text that a peer leaves of each history in a window of so many tokens; nothing where it gives no answer."""
    with Child(peer, CAP) as child:
        for messages, size in histories:
            try:
                child.begin(size)
                yield cut(shown(child.fit(messages)), size)
            except (Failed, NoAnswer):
                yield None


def cut(text: str, size: int) -> str:
    """The last of a text that fits into so many tokens: some peers count messages, or guess."""
    count = counter_for(MODEL).text
    while (have := count(text)) > size:
        text = text[len(text) - int(len(text) * size / have * 0.99) :]
    return text
