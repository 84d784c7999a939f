"""A branch as it was at some event, packed: whoever loads the branch replays only what came after.

It holds digests and numbers, and no word of what was said: edits are named by their events, and read from those.
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, field
from hashlib import blake2b
from itertools import chain
from typing import cast

from clew.core import rawjson
from clew.core.items import Edit
from clew.facts.chapters import Chapter
from clew.store.compressing import inflate
from clew.store.packing import WIDTH, pack, unpack
from clew.store.records import Place
from clew.store.trace import Fold, Trace

PACKING = 1  # of how it is packed; one of another version is as if it were not there
_SUM = 16  # bytes
_SIZE = 4
_PLAIN = ("seq", "patched", "format", "frame", "predicted", "reported", "model", "window", "limit", "folding")
_IDS = ("gone", "loose", "held", "pinned")


@dataclass(slots=True)
class Replayed:
    """A trace on its way through the log, and where in it its edits lie."""

    trace: Trace
    at: dict[int, int] = field(default_factory=dict)  # the events of its edits and chapters, by identity
    settled: int = 0  # edits that there were at the last revert: those undone are recognised after them


class PackedPlaces:
    """What was said, still packed: to be added to without being read."""

    def __init__(self, packed: bytes) -> None:
        self.packed = bytearray(packed)

    def __len__(self) -> int:
        return len(self.packed) // (2 * WIDTH)

    def __iadd__(self, places: Iterable[Place]) -> "PackedPlaces":
        self.packed += _ids(list(chain.from_iterable(places)))
        return self

    def __setitem__(self, at: slice, places: Iterable[Place]) -> None:
        start, stop, _ = at.indices(len(self))
        self.packed[2 * WIDTH * start : 2 * WIDTH * max(start, stop)] = _ids(list(chain.from_iterable(places)))


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One as it lies in its row."""

    branch: str
    seq: int  # of the event that came next
    data: bytes


def packed(state: Replayed) -> Checkpoint:
    """All of it; raises `ValueError` where there are ids that are no digests."""
    trace = state.trace
    said = trace.said.packed if isinstance(trace.said, PackedPlaces) else _ids(list(chain.from_iterable(trace.said)))
    lists = {name: sorted(getattr(trace, name)) for name in _IDS}
    lists |= {"alias": list(chain.from_iterable(trace.alias.items())), "made_in": list(trace.made_in)}
    head = {name: getattr(trace, name) for name in _PLAIN} | {
        "calls": list(chain.from_iterable(trace.calls)),
        "edits": [state.at[id(edit)] for edit in trace.edits],
        "undone": [state.at[id(edit)] for edit in trace.undone],
        "chapters": [state.at[id(chapter)] for chapter in trace.chapters],
        "settled": state.settled,
        "formats": list(trace.made_in.values()),
        "folds": [astuple(fold) for fold in trace.folds],
        "lists": {name: len(ids) for name, ids in lists.items()},
    }
    small = zlib.compress(b"\n".join((rawjson.dumps(head), *map(_ids, lists.values()))), 1)
    data = b"".join((len(small).to_bytes(_SIZE), small, said))
    return Checkpoint(trace.branch, trace.seq, _sum(data, trace.branch, trace.seq) + data)


def unpacked(
    found: Checkpoint, trace: Trace, read: Callable[[Sequence[int]], dict[int, Edit | Chapter]], lazy: bool = False
) -> Replayed:
    """What was packed, on an empty trace of its branch or of a fork of that; raises `ValueError` where it is damaged.

    `read` reads the edits and chapters of these events; `lazy`: what was said stays packed.
    """
    sum, data = found.data[:_SUM], found.data[_SUM:]
    if sum != _sum(data, found.branch, found.seq):
        raise ValueError(f"the checkpoint of branch {found.branch} does not match its sum")
    end = _SIZE + int.from_bytes(data[:_SIZE])
    line, _, rest = inflate(data[_SIZE:end]).partition(b"\n")
    head = rawjson.loads(line)
    lists, at = {}, 0
    for name, length in head["lists"].items():
        lists[name] = unpack(rest[at : at + WIDTH * length])
        at += WIDTH * length + 1
    found_at = read([*head["edits"], *head["undone"], *head.get("chapters", ())])
    edits = {seq: edit for seq, edit in found_at.items() if isinstance(edit, Edit)}
    _put(trace, [edits[seq] for seq in head["edits"]], [edits[seq] for seq in head["undone"]], head["settled"])
    trace.chapters = [one for seq in head.get("chapters", ()) if isinstance(one := found_at[seq], Chapter)]
    trace.said = cast("list[Place]", PackedPlaces(data[end:])) if lazy else _places(data[end:])
    trace.calls = list(zip(head["calls"][::2], head["calls"][1::2], strict=True))
    trace.alias = dict(zip(lists["alias"][::2], lists["alias"][1::2], strict=True))
    trace.made_in = dict(zip(lists["made_in"], head["formats"], strict=True))
    trace.gone, trace.loose, trace.held = (set(lists[name]) for name in _IDS[:3])
    trace.pinned = frozenset(lists["pinned"])
    trace.folds = [Fold(*fold) for fold in head["folds"]]
    for name in _PLAIN:
        setattr(trace, name, head.get(name, getattr(trace, name)))  # older ones know less of the last call
    return Replayed(trace, {id(event): seq for seq, event in found_at.items()}, head["settled"])


def _put(trace: Trace, edits: Sequence[Edit], undone: list[Edit], settled: int) -> None:
    """Let the edits happen in the order in which the trace has come to know their stand-ins."""
    for edit in edits[:settled]:
        trace.add(edit)
    trace.undone = undone
    for edit in undone:
        trace.recognise(edit)
    for edit in edits[settled:]:
        trace.add(edit)


def _places(packed: bytes) -> list[Place]:
    digests = iter(unpack(packed))
    return list(map(Place._make, zip(digests, digests, strict=True)))


def _ids(ids: Sequence[str]) -> bytes:
    found = pack(ids)
    if len(found) != WIDTH * len(ids) or any(len(id) != 2 * WIDTH for id in ids):
        raise ValueError("an id is no digest")
    return found


def _sum(data: bytes, branch: str, seq: int) -> bytes:
    state = blake2b(f"{branch} {seq}\n".encode(), digest_size=_SUM)
    state.update(data)
    return state.digest()
