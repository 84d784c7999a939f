"""Branches read from the log: from the nearest checkpoint on, if there is one, else from their first event."""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from hashlib import blake2b
from itertools import chain
from typing import Any, cast

from clew.core import rawjson
from clew.core.items import Edit, Node, Scope
from clew.errors import BadRequest
from clew.facts.chapters import Chapter
from clew.store.compressing import inflate
from clew.store.database import Database
from clew.store.packing import WIDTH, listed, pack, unpack
from clew.store.records import ABSENT, Place, Revert
from clew.store.rows import event_of, read_row
from clew.store.trace import Fold, Trace, apply

PACKING = 1  # of how it is packed; one of another version is as if it were not there
_SUM = 16  # bytes
_SIZE = 4
_PLAIN = ("seq", "patched", "format", "frame", "predicted", "reported", "model", "window", "limit", "folding")
_IDS = ("gone", "loose", "held", "pinned")


FOREVER = 1 << 62  # past every sequence number
ASKED = 2_000  # events after which it is asked whether a checkpoint is due
SHARE = 32  # of all events, new: what is written of it for each event then stays the same, however many there are

# What reading damaged rows raises.
DAMAGE = (BadRequest, LookupError, TypeError, ValueError, AttributeError, RecursionError)


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


def restore(db: Database, scope: Scope, trace: Trace, until: int, lazy: bool = False) -> Replayed:
    """An empty trace of a branch, replayed up to and with an event."""
    place = {"scope": scope, "branch": trace.branch, "until": until}
    state = _nearest(db, place, trace, lazy)
    events = own(db.ask("events", **place, since=state.trace.seq))
    _replay(db, scope, state, ((seq, columns) for _, seq, _, *columns in events), [event[7] for event in events])
    return state


def replay(db: Database, scope: Scope, branch: str, session: str | None, until: int) -> Trace:
    """A branch replayed from its first event, whatever checkpoints there are."""
    state = Replayed(Trace(branch, session=session))
    events = own(db.ask("events", scope=scope, branch=branch, until=until, since=0))
    _replay(db, scope, state, ((seq, columns) for _, seq, _, *columns in events), [event[7] for event in events])
    return state.trace


def go_on(db: Database, scope: Scope, trace: Trace) -> set[str]:
    """Let what happened on a branch since happen to a trace of it; what kinds of events that were."""
    events = own(db.ask("newer_events", branch=trace.branch, since=trace.seq))
    _replay(db, scope, Replayed(trace), ((seq, columns) for _, seq, *columns in events), [event[6] for event in events])
    return {event[2] for event in events}


def own(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows of events without what was asked for, the branch that each begins with. Raises `ValueError`.

    An index whose pages are damaged leads to events of other conversations: what a row itself says counts.
    """
    found, last = [], -1
    for asked, *row in rows:
        if row[0] != asked or row[1] <= last:
            raise ValueError(f"events of {asked} are not where they belong")
        last = row[1]
        found.append(tuple(row))
    return found


def _replay(
    db: Database, scope: Scope, state: Replayed, rows: Iterable[tuple[int, Sequence[Any]]], new: Iterable[bytes | None]
) -> None:
    content_of = contents(db, scope, {id for ids in new for id in unpack(ids)})
    trace = state.trace
    for seq, columns in rows:
        trace.seq = seq
        event = event_of(read_row(*columns), trace.branch, seq, lambda at: Node(at, content_of[at], ABSENT))
        apply(trace, event)
        if isinstance(event, Edit | Chapter):
            state.at[id(event)] = seq
        elif isinstance(event, Revert):
            state.settled = len(trace.edits)


def contents(db: Database, scope: Scope, ids: Iterable[str]) -> dict[str, str]:
    """The contents of these nodes, by id."""
    return dict(db.ask("contents", scope=scope, ids=listed(ids)).fetchall())


# --- checkpoints ------------------------------------------------------------------------------------------------------


def _nearest(db: Database, place: Mapping[str, Any], trace: Trace, lazy: bool) -> Replayed:
    """The newest checkpoint on the way to an event, also one of a parent; nothing, if there is none that is whole."""
    found = db.ask("nearest_checkpoint", **place, version=PACKING).fetchone()
    if found:
        empty = Trace(trace.branch, session=trace.session)
        try:
            return unpacked(Checkpoint(*found), empty, lambda seqs: _edits(db, place, seqs), lazy)
        except DAMAGE:  # all that it says is in the log, too
            pass
    return Replayed(trace)


def _edits(db: Database, place: Mapping[str, Any], seqs: Sequence[int]) -> dict[int, Edit | Chapter]:
    rows = own(db.ask("edits_at", **place, seqs=listed(seqs))) if seqs else []
    content_of = contents(db, place["scope"], {id for row in rows for id in unpack(row[4])}) if rows else {}
    found: dict[int, Edit | Chapter] = {}
    for _, seq, kind, old, new, note in rows:
        row = read_row(kind, None, None, old, new, note)
        event = event_of(row, place["branch"], seq, lambda at: Node(at, content_of[at], ABSENT))
        assert isinstance(event, Edit | Chapter)
        found[seq] = event
    return found


def keep_checkpoint(db: Database, scope: Scope, branch: str, first: int, next: int, every: int = ASKED) -> None:
    """Make a checkpoint after the events from `first` to before `next` were written, if it is time for one."""
    if first // every == next // every:
        return  # asked once in so many events, so that turns need not ask
    known = db.ask("newest_checkpoint", scope=scope, branch=branch, until=FOREVER, version=PACKING).fetchone()[0] or 0
    if next - known >= max(every // 2, next // SHARE):
        make_checkpoint(db, scope, branch)


def make_checkpoint(db: Database, scope: Scope, branch: str) -> None:
    """Make a checkpoint of a branch as it is now, in place of the one there is."""
    try:
        made = packed(restore(db, scope, Trace(branch), FOREVER, lazy=True))
    except DAMAGE:
        return  # of a damaged log; a turn is written all the same
    db.ask("put_checkpoint", branch=branch, seq=made.seq, version=PACKING, data=made.data)


def keep_all(db: Database) -> None:
    """Drop all checkpoints, and make those anew that are worth it."""
    db.ask("drop_checkpoints")
    for branch, scope, newest in db.ask("newest_events").fetchall():
        keep_checkpoint(db, scope, branch, 0, newest + 1)


def is_right(db: Database, scope: Scope, branch: str, session: str | None) -> bool | None:
    """Whether the checkpoint of a branch says what its events say; None if those cannot be read."""
    with db.snapshot():
        found = db.ask("checkpoint", branch=branch, version=PACKING).fetchone()
        if found is None:
            return True  # gone meanwhile, or nobody reads it
        made = Checkpoint(*found)
        place = {"scope": scope, "branch": branch, "until": made.seq - 1}
        try:
            told = replay(db, scope, branch, session, made.seq - 1)
        except DAMAGE:
            return None
        try:
            state = unpacked(made, Trace(branch, session=session), lambda seqs: _edits(db, place, seqs))
        except DAMAGE:
            return False
    return state.trace == told
