"""How late the event loop is while something large is done on the same engine."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

from clew import Budget, Engine, Request, SQLite
from clew.engine.append import Addition
from clew.engine.settings import Settings
from loads.figures import Beat, Figure
from loads.talking import LEAD, MODEL, Talker, engine_of, library, talk

OTHERS = 63  # and the large one
WIDE = "gpt-4.1"  # the model whose window takes a million
MILLION = 4_000_000  # characters: about a million tokens


def large(characters: int, step: int = 4_000, model: str = MODEL) -> dict[str, Any]:
    """A conversation of so many characters, in items of a thousand tokens."""
    text = library()
    while len(text) < characters:
        text += library()
    said = [
        {"role": ("user", "assistant")[n % 2], "content": text[start : start + step]}
        for n, start in enumerate(range(0, characters, step))
    ]
    last = [] if said[-1]["role"] == "user" else [{"role": "user", "content": "Go on."}]
    return {"model": model, "messages": [LEAD, *said, *last]}


def wide(place: str) -> Engine:
    """An engine with a window of 200,000 for all models but one."""
    return Engine(SQLite(place), lambda model: Budget(window=3_000_000 if model.name == WIDE else 200_000), Settings())


async def beside(place: str, what: str, seconds: float = 6.0, tidy: bool = False) -> list[Figure]:
    """The beat while 64 conversations talk and one fold is made, or none."""
    engine = wide(place)
    those = [Talker(n, named=True) for n in range(OTHERS)]
    await talk(engine, those, 2)
    act = await _prepared(engine, what)
    if tidy:  # as `clew serve` has it
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 50, 1_000)
    done = asyncio.Event()

    async def others(talker: Talker) -> None:
        while not done.is_set():
            await talker.turn(engine)

    async with Beat() as beat:
        talking = asyncio.gather(*map(others, those))
        await asyncio.sleep(seconds / 3)
        if act:
            await act()
            await asyncio.sleep(0.2)
        else:
            await asyncio.sleep(2 * seconds / 3)
        done.set()
        await talking
    await engine.store.close()
    return beat.figures(f"64 talk, {what}" + (", rare full collections" if tidy else ""))


async def _prepared(engine: Engine, what: str) -> Callable[[], Awaitable[object]] | None:
    body = large(MILLION)
    match what:
        case "1M tokens come at once":
            return lambda: engine.prepare(Request(body, session="large"))
        case "1M tokens are added at once":
            return lambda: engine.prepare(Addition(body, "large"))
        case "1M tokens are compacted":
            view = await engine.prepare(Request(large(MILLION, model=WIDE), session="large"))
            return lambda: engine.compact(view)
    return None


async def first(place: str) -> list[Figure]:
    """The first turn of a process, which loads the vocabulary."""
    engine = engine_of(place)
    async with Beat() as beat:
        await asyncio.sleep(0.05)
        await Talker(1).turn(engine)
        await asyncio.sleep(0.05)
    await engine.store.close()
    return beat.figures("first turn of a process")[2:]


async def body(place: str, secrets: str = "off") -> list[Figure]:
    """A body of 4 MB that nobody has seen yet, with and without a look for secrets."""
    import orjson

    engine = engine_of(place, window=3_000_000, secrets=secrets)
    await Talker(1).turn(engine)
    given = orjson.dumps(large(MILLION))
    async with Beat() as beat:
        await asyncio.sleep(0.05)
        await engine.prepare(Request(given))
        await asyncio.sleep(0.05)
    await engine.store.close()
    return beat.figures("4 MB seen first" + (", looked through for secrets" if secrets != "off" else ""))[2:]
