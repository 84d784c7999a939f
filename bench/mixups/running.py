"""Worlds one after another on a store of their own; what is mixed up is told with as few acts as it takes."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace as with_
from itertools import count
from pathlib import Path

from clew import open_store
from clew.store.sql import SQLStore
from clew.testing import Answer
from mixups.acts import Actor
from mixups.plans import Act, Plan
from mixups.upstream import Heard, ScriptedUpstream
from mixups.world import Mixup, Tally, World

BATCH = 20  # worlds on one store
TOGETHER = frozenset({"go_on", "ask", "retry", "fail", "edit", "compact"})  # what may happen at the same time
TRIES = 40  # runs with fewer acts, to tell a fault with few


@asynccontextmanager
async def living(
    made: Plan, stores: list[SQLStore], upstream: ScriptedUpstream, again: str = ""
) -> AsyncIterator[Actor]:
    """A world in which things may be done, as long as the block runs."""
    actor = Actor(World(made, stores, upstream, again))

    async def script(heard: Heard) -> Answer:
        return await actor.world.say(heard, actor.judge.sent)

    upstream.script = script
    await actor.world.start()
    try:
        yield actor
    finally:
        upstream.script = None
        await actor.world.stop()


async def run(made: Plan, stores: list[SQLStore], upstream: ScriptedUpstream, again: str = "") -> World:
    """One world, wholly."""
    async with living(made, stores, upstream, again) as actor:
        for some in _portions(made):
            actor.world.act = made.acts.index(some[0])
            await asyncio.gather(*(actor.do(act) for act in some))
        await actor.look_back()
    return actor.world


def _portions(made: Plan) -> Iterable[Sequence[Act]]:
    """Acts as they are done: each alone, or a few of different conversations at the same time."""
    waiting: list[Act] = []
    for act in made.acts:
        if waiting and (
            len(waiting) == made.at_once
            or act.what not in TOGETHER
            or waiting[-1].what not in TOGETHER
            or act.who in {a.who for a in waiting}
        ):
            yield waiting
            waiting = []
        waiting.append(act)
    if waiting:
        yield waiting


class Fuzzer:
    """Runs worlds on stores: one in memory or on a server, and two over one file, as two processes have."""

    def __init__(self, stores: list[SQLStore]) -> None:
        self._stores = stores
        self._upstream = ScriptedUpstream()
        self._again = count()

    async def __aenter__(self) -> "Fuzzer":
        await self._upstream.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for store in self._stores:
            await store.close()
        await self._upstream.stop()

    async def fuzz(self, plans: Iterable[Plan]) -> Tally:
        """What came of these worlds."""
        tally = Tally()
        for made in plans:
            world = await run(made, self._stores, self._upstream)
            tally.add(world.tally)
            tally.counts["worlds"] += 1
            tally.counts["worlds with a mix-up"] += bool(world.found)
        return tally

    async def told(self, made: Plan, found: Mixup) -> str:
        """How to see a mix-up again, with as few acts as it takes."""
        kept = await self._needed(made, found)
        settings = ", ".join(f"{name}={value!r}" for name, value in vars(made).items() if name not in _LONG)
        clients = ", ".join(client.name for client in made.clients)
        acts = [f"    {n}: place {act.who} {act.what} {act.a} {act.b}" for n, act in enumerate(made.acts) if n in kept]
        return "\n".join(
            [
                f"seed {made.seed}: {found.door} ({found.link}): {found.who} got {', '.join(found.words)}",
                f"  {settings}; {clients}",
                f"  …{found.excerpt!r}",
                *acts,
                f"  python bench/fuzz_mixups.py --seed {made.seed} --worlds 1 --acts {','.join(map(str, kept))}",
            ]
        )

    async def _needed(self, made: Plan, found: Mixup) -> list[int]:
        """The acts without those that a mix-up of this kind does not need, as far as a few tries tell."""
        acts = list(range(min(len(made.acts), found.act + made.at_once)))
        theirs = [n for n in acts if made.acts[n].who in found.places]
        acts = theirs if await self._happens(only(made, theirs), found) else acts
        size, left = max(1, len(acts) // 2), TRIES
        while size and left:
            at = 0
            while at < len(acts) and left:
                fewer = acts[:at] + acts[at + size :]
                left -= 1
                if fewer and await self._happens(only(made, fewer), found):
                    acts = fewer
                else:
                    at += size
            size //= 2
        return acts

    async def _happens(self, made: Plan, wanted: Mixup) -> bool:
        with suppress(Exception):  # fewer acts may make no sense
            world = await run(made, self._stores, self._upstream, f" again {next(self._again)}")
            return any((found.door, found.link) == (wanted.door, wanted.link) for found in world.found)
        return False


_LONG = ("acts", "seed", "clients")


def only(made: Plan, acts: Sequence[int]) -> Plan:
    """A plan with these of its acts."""
    return with_(made, acts=tuple(made.acts[n] for n in acts))


def opened(place: str, folder: Path) -> list[SQLStore]:
    """The stores of a fuzzer: on a server, or here."""
    if place:
        return [open_store(place) for _ in range(3)]
    file = folder / "mixups.db"
    return [open_store(":memory:"), open_store(file), open_store(file)]
