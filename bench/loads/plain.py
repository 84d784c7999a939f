"""What a turn costs: with few and many conversations, named and not, in both stores, in several processes."""

import asyncio
import multiprocessing
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from loads.figures import Figure, Spent, cpu
from loads.talking import SCOPE, Talker, engine_of, talk

TURNS = {1: 300, 64: 10, 512: 3}  # of each conversation, by how many there are
LONG_ITEMS, LONG_SIZES = 800, (100, 720)
APIECE = 16  # conversations of a process


async def many(place: str, talkers: int, named: bool, server: int | None = None, **settings: Any) -> list[Figure]:
    """CPU of prepare and observe, closed loop: each conversation begins its next turn when the last is done."""
    engine = engine_of(place, **settings)
    those = [Talker(n, named) for n in range(talkers)]
    await talk(engine, those, 1)
    times = TURNS[talkers]
    with Spent(server) as spent:
        await talk(engine, those, times)
    await engine.store.close()
    return per_turn(spent, talkers * times)


def per_turn(spent: Spent, done: int) -> list[Figure]:
    each = 1e3 / done
    found = [
        Figure("a turn", "ms CPU", spent.cpu * each, spent.wall * each),
        Figure("a turn, of it on the loop", "ms CPU", spent.loop * each),
        Figure("turns per second of CPU", "1/s", done / spent.cpu, done / spent.wall, more=True),
    ]
    if spent.served:
        found.append(Figure("a turn, beside it the server", "ms CPU", spent.served * each))
    return found


async def long(place: str, talkers: int, named: bool, rounds: int = 4, **settings: Any) -> list[Figure]:
    """Conversations of 800 items, bodies of some 350 kB, in turn."""
    engine = engine_of(place, **settings)
    those = [Talker(n, named, sizes=LONG_SIZES) for n in range(talkers)]
    for talker in those:
        await talker.turn(engine, LONG_ITEMS // 2)
    await talk(engine, those, 1)
    with Spent() as spent:
        await talk(engine, those, rounds)
    await engine.store.close()
    return per_turn(spent, talkers * rounds)


def crowd(place: str, processes: int, adds: bool, seconds: float = 4.0) -> list[Figure]:
    """Several processes on one file, each with conversations of its own."""
    context = multiprocessing.get_context("spawn")
    begin = context.Barrier(processes)
    with context.Manager() as manager:
        told = manager.list()
        those = [context.Process(target=_member, args=(place, n, adds, seconds, begin, told)) for n in range(processes)]
        for process in those:
            process.start()
        for process in those:
            process.join()
        done = [tuple(one) for one in told]
    assert len(done) == processes, "not all of them came to an end"
    turns, spent = sum(one[0] for one in done), sum(one[1] for one in done)
    rate = sum(one[0] / one[2] for one in done)
    return [
        Figure("a turn", "ms CPU", 1e3 * spent / turns),
        Figure("turns per second", "1/s clock", rate, more=True),
        Figure("longest turn", "ms clock", 1e3 * max(one[3] for one in done)),
    ]


def _member(place: str, number: int, adds: bool, seconds: float, begin: Any, told: Any) -> None:
    told.append(asyncio.run(_talking(place, number, adds, seconds, begin)))


async def _talking(place: str, number: int, adds: bool, seconds: float, begin: Any) -> tuple[float, ...]:
    engine = engine_of(place)
    those = [Talker(number * APIECE + n, named=True, adds=adds) for n in range(APIECE)]
    await talk(engine, those, 1)
    await asyncio.to_thread(begin.wait)
    begun, worked, done, longest = time.perf_counter(), cpu(), 0, 0.0

    async def one(talker: Talker) -> None:
        nonlocal done, longest
        while (clock := time.perf_counter()) - begun < seconds:
            await talker.turn(engine)
            done += 1
            longest = max(longest, time.perf_counter() - clock)

    await asyncio.gather(*map(one, those))
    took = time.perf_counter() - begun, cpu() - worked
    await engine.store.close()
    return done, took[1], took[0], longest


async def size(data: str | None = None, conversations: int = 20, length: int = 100) -> list[Figure]:
    """Bytes of a closed store for each token that was said."""
    from loads.corpus import recorded, tokens_in

    with TemporaryDirectory() as folder:
        path = Path(folder, "clew.db")
        engine = engine_of(str(path))
        tokens = 0
        if data:
            for name, bodies in recorded(Path(data)):
                for new, request in bodies:
                    tokens += tokens_in(new)
                    view = await engine.prepare(request)
                    await engine.observe(view, {"input_tokens": 1_000, "output_tokens": 50})
                print(f"{name}: {tokens:,} tokens")
        else:
            for n in range(conversations):
                talker = Talker(n, named=bool(n % 2))
                for _ in range(length):
                    await talker.turn(engine)
                    tokens += tokens_in(talker.new)
        calls = len(await engine.store.branches(SCOPE))
        await engine.store.close()
        assert calls
        return [Figure("size on disk", "bytes a token", path.stat().st_size / tokens)]
