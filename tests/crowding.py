"""Many processes that add to one session at once. python tests/crowding.py PROCESSES ADDITIONS STORE

Each says what it was told is written, and what it compacted. In the end one more looks whether all of it is there, in
the order that everybody saw.
"""

import asyncio
import json
import sys
from dataclasses import dataclass, field
from functools import partial

from clew import Budget, Engine, events, open_store
from clew.engine.append import Addition
from clew.engine.settings import Settings
from crashing import Say, hear, warm_up
from remembering import SCOPE, digest

SESSION = "shared"
WORDS = "the parser reads src/clew/view.py and fails with KeyError at line"
SAMPLE = 50  # calls that are resumed, of all


@dataclass
class Outcome:
    """What came of it."""

    added: int = 0  # acknowledged
    said: int = 0  # in the log
    compactions: int = 0  # that a process was told of
    problems: list[str] = field(default_factory=list)


def text(process: int, number: int) -> str:
    """What a process says."""
    return f"process {process}, message {number}: {WORDS} {process * 1_000 + number}"


async def add(process: int, count: int, where: str, say: Say) -> None:
    """One process: so many messages, one after the other."""
    store = open_store(where)

    def listen(event: events.Event) -> None:
        if isinstance(event, events.Edited):
            say("edited", event.seq, "")

    engine = Engine(store, Budget(window=3_000), Settings(listeners=[listen]))
    for number in range(count):
        body = {"model": "gpt-4o", "messages": [{"role": "user", "content": text(process, number)}]}
        view = await engine.prepare(Addition(body, SESSION))
        say("added", view.seq, text(process, number), digest(view))
    await store.close()


async def look(where: str, added: dict[int, tuple[str, str]], edited: list[int], say: Say) -> None:
    """What is not as the processes were told."""
    store = open_store(where)
    engine = Engine(store)
    branch = await store.session(SCOPE, SESSION) or ""
    found = [f"doctor: {p.count} {p.what}" for p in await store.check(deep=True)]
    trace = await store.load(SCOPE, branch)
    nodes = await store.nodes(SCOPE, [p.id for p in trace.said])
    said = [nodes[p.id].item.text for p in trace.said]
    calls = {c.seq: c for c in await store.calls(SCOPE, branch)}
    # By their sequence numbers, the messages acknowledged are the history: none lost, none twice, none moved.
    found += ["what was said is not what was acknowledged"] * (said != [added[seq][0] for seq in sorted(added)])
    found += [f"call {seq} was acknowledged and is not there" for seq in added if seq not in calls]
    for seq in sorted(added)[:: max(1, len(added) // SAMPLE)]:
        if digest(await engine.resume(SCOPE, calls[seq])) != added[seq][1]:
            found.append(f"call {seq} is not what was sent")
    gone = [id for edit in trace.edits for id in edit.sources]
    found += ["two compactions replaced the same"] * (len(gone) != len(set(gone)))
    found += [f"{len(edited)} edits were acknowledged, {len(trace.edits)} are there"] * (
        len(set(edited)) != len(edited) or len(edited) != len(trace.edits)
    )
    say(found, len(said))
    await store.close()


def crowd(processes: int, additions: int, where: str) -> Outcome:
    """So many additions, shared by the processes."""
    share = additions // processes
    told = hear(*(partial(add, process, share, where) for process in range(processes)))
    added = {seq: (said, *sent) for act, seq, said, *sent in told if act == "added"}
    edited = [seq for act, seq, *_ in told if act == "edited"]
    [(problems, said)] = hear(partial(look, where, added, edited))
    return Outcome(len(added), said, len(edited), problems)


if __name__ == "__main__":
    asyncio.run(warm_up(sys.argv[3]))
    json.dump(vars(crowd(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])), sys.stdout)
