"""What a host remembers of a store whose clients are killed, and whether the store still has all of it."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from clew import Engine, body
from clew.core import rawjson
from clew.core.view import View
from clew.store.sql import SQLStore
from clew.store.trace import Trace

SCOPE = "default"
# What a kill may leave, and `clew doctor --repair` mends: nothing of it is a loss.
MENDED = (
    "purges whose bytes may still be in the file",
    "partial copies left by an interrupted backup or restore",
    "bodies in Chinese, Japanese, Korean, Thai or the like that an older clew indexed",
)


@dataclass
class Host:
    """What a host remembers of one store when its client is gone: what was acknowledged."""

    turns: Counter[str] = field(default_factory=Counter)  # by session: so many are done
    names: dict[str, str] = field(default_factory=dict)  # by branch: its session
    calls: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))  # by branch: digest of the body
    usages: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    pins: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    stand_ins: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    undone: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # sessions
    added: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # words, in their order
    gone: set[str] = field(default_factory=set)  # branches that were purged: their names may begin anew, on others
    going: set[str] = field(default_factory=set)  # it was not told whether they went

    def hear(self, act: str, branch: str, *told: Any) -> None:
        """Remember one thing that a client was told is done."""
        match act, told:
            case "append", (session, turn, seq, digest):
                self.turns[session] = turn + 1
                self.names[branch] = session
                self.calls[branch][seq] = digest
            case "add", (session, words):
                self.names[branch] = session
                self.added[branch].append(words)
            case "record", (seq, tokens):
                self.usages[branch][seq] = tokens
            case "pin", (id,):
                self.pins[branch].add(id)
            case "compact", (*ids,):
                self.stand_ins[branch].update(ids)
            case "undo", (*ids,):
                self.undone[branch].update(ids)
            case "fork", (parent, seq):
                self.names[branch] = ""
                self.calls[branch] = {at: digest for at, digest in self.calls[parent].items() if at <= seq}
            case "purge", ():
                self.forget(branch)

    def forget(self, branch: str) -> None:
        """A branch is gone for good."""
        session = self.names.pop(branch, "")
        self.turns.pop(session, None)
        for known in (self.calls, self.usages, self.pins, self.stand_ins, self.undone, self.added):
            known.pop(branch, None)
        self.going.discard(branch)
        self.gone.add(branch)


@dataclass
class Outcome:
    """What came of all rounds."""

    kills: int = 0
    during: Counter[str] = field(default_factory=Counter)  # by act: kills that cut it off
    acknowledged: Counter[str] = field(default_factory=Counter)
    unheard: int = 0  # calls in the log that no client was told of
    mended: Counter[str] = field(default_factory=Counter)  # what a kill left, and a repair removed
    problems: list[str] = field(default_factory=list)


@dataclass
class Look:
    """What somebody who looks at a store finds."""

    problems: list[str] = field(default_factory=list)
    unheard: int = 0
    mended: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)  # of the branches that were going


def digest(view: View) -> str:
    """Of the bytes that send a view."""
    return sha256(rawjson.dumps(body(view))).hexdigest()


async def examined(store: SQLStore) -> tuple[list[str], list[str]]:
    """What is wrong with a store, and what was until it was repaired."""
    found = await store.check(deep=True)
    mended = [p.what.partition(":")[0] for p in found if p.what.startswith(MENDED)]
    wrong = [f"doctor: {p.count} {p.what}" for p in found if not p.what.startswith(MENDED)]
    if mended:
        await store.repair()
        wrong += [f"doctor, after a repair: {p.count} {p.what}" for p in await store.check(deep=True)]
    return wrong, mended


async def look(store: SQLStore, host: Host) -> Look:
    """Everything acknowledged that is not there, or is not as it was; calls that nobody was told of."""
    seen = Look()
    seen.problems, seen.mended = await examined(store)
    there = {b.id for b in await store.branches(SCOPE)}
    seen.problems += [f"branch {id} was purged and is there" for id in host.gone & there]
    seen.gone = sorted(host.going - there)
    engine = Engine(store)
    for branch in host.names.keys() - set(seen.gone):
        if branch not in there:
            seen.problems.append(f"branch {branch} is lost")
            continue
        await _look_at_calls(engine, branch, host, seen)
        trace = await store.load(SCOPE, branch)
        seen.problems += [f"pin {id} of {branch} is lost" for id in host.pins[branch] - trace.pinned]
        stand_ins = {n.id for e in (*trace.edits, *trace.undone) for n in e.stand_ins}
        seen.problems += [f"stand-in {id} of {branch} is lost" for id in host.stand_ins[branch] - stand_ins]
        undone = {s.id for s in await store.sessions(SCOPE, branch) if s.undone}
        seen.problems += [f"undoing {id} of {branch} is lost" for id in host.undone[branch] - undone]
        seen.problems += await _lost_words(store, trace, host.added[branch])
    return seen


async def _look_at_calls(engine: Engine, branch: str, host: Host, seen: Look) -> None:
    calls, there = host.calls[branch], {c.seq: c for c in await engine.store.calls(SCOPE, branch)}
    seen.unheard += len(there.keys() - calls.keys())
    seen.problems += [f"call {seq} of {branch} is lost" for seq in calls.keys() - there.keys()]
    for seq in calls.keys() & there.keys():
        if digest(await engine.resume(SCOPE, there[seq])) != calls[seq]:
            seen.problems.append(f"call {seq} of {branch} is not what was sent")
    for seq, tokens in host.usages[branch].items():
        if ((there[seq].usage if seq in there else None) or {}).get("input") != tokens:
            seen.problems.append(f"usage of call {seq} of {branch} is lost")


async def _lost_words(store: SQLStore, trace: Trace, added: list[str]) -> list[str]:
    """Additions that are not there once, in their order."""
    ids = [place.id for place in trace.said]
    nodes = await store.nodes(SCOPE, ids)
    said = [nodes[id].item.text for id in ids]
    kept = [words for words in said if words in set(added)]
    return [] if kept == added else [f"additions to {trace.branch}: {len(kept)} of {len(added)}, or out of order"]
