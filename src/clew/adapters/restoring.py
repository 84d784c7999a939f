"""For hosts with message objects of their own: what clew left as it was goes back as the object that it came from."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from clew.core.items import canonical

WireMessage = Mapping[str, Any]
Own = TypeVar("Own")


def restored(
    sent: Sequence[WireMessage],
    held: Sequence[tuple[Own, Sequence[WireMessage]]],
    make: Callable[[WireMessage], Own],
) -> list[Own]:
    """The messages to send, as a host has them.

    `held` are the host's messages, each with what was made of it for clew: one message of the wire, several or none.
    Whatever of that is in `sent` unchanged is the host's own object; `make` makes one of any other message.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for place, (_, parts) in enumerate(held):
        if parts:
            places[canonical(parts[-1])].append(place)
    out: list[Own] = []
    stop, left = len(sent), len(held)
    while stop:  # from the end, where most is as it was
        known = places.get(canonical(sent[stop - 1]), [])
        same = next((p for p in reversed(known[: bisect_left(known, left)]) if _ends(sent, stop, held[p][1])), None)
        out.append(make(sent[stop - 1]) if same is None else held[same][0])
        stop, left = (stop - 1, left) if same is None else (stop - len(held[same][1]), same)
    return out[::-1]


def _ends(sent: Sequence[WireMessage], stop: int, parts: Sequence[WireMessage]) -> bool:
    start = stop - len(parts)
    return start >= 0 and list(sent[start:stop]) == list(parts)
