"""Peers on the same material as clew: one process each, one after the other."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from benchmark.judging import MODEL, Messages, shown
from benchmark.peers import PEERS, Child, Failed, NoAnswer, Peer, present
from clew.tokens import counter_for

CAP = 30.0  # seconds of CPU that a peer may use for one history


class Left(NamedTuple):
    """What a peer leaves of a history."""

    text: str | None
    why: str  # there is no text
    cpu: float  # seconds


def together() -> list[tuple[Peer, ...]]:
    """The peers that are there, those of one environment together: they share a process, which is slow to start."""
    return [tuple(some) for _, some in groupby(present(), key=lambda peer: peer.environment)]


def everybody() -> list[dict[str, Any]]:
    """Every peer, run or not: its version and its settings, or why it could not run."""
    return [
        {
            "name": peer.name,
            "version": peer.version(),
            "settings": peer.settings,
            "model": peer.model,
            "missing": peer.missing(),
        }
        for peer in PEERS
    ]


def left(peers: Sequence[Peer], histories: Sequence[tuple[Messages, int]]) -> Iterator[tuple[Peer, list[Left]]]:
    """The text that each peer leaves of each history in a window of so many tokens."""
    with Child(peers[0], CAP) as child:
        for peer in peers:
            child.peer = peer
            yield peer, [_left(child, messages, size) for messages, size in histories]


def _left(child: Child, messages: Messages, size: int) -> Left:
    try:
        child.begin(size)
        return Left(cut(shown(child.fit(messages)), size), "", child.cpu)
    except (Failed, NoAnswer) as fault:
        return Left(None, str(fault)[:80], child.cpu)


def cut(text: str, size: int) -> str:
    """The last of a text that fits into so many tokens: some peers count messages, or guess."""
    count = counter_for(MODEL).text
    while (have := count(text)) > size:
        text = text[len(text) - int(len(text) * size / have * 0.99) :]
    return text
