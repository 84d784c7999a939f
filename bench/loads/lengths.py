"""Long conversations: what a new token costs late, and what opening and searching 100,000 items costs."""

from pathlib import Path
from typing import Any

from clew import Engine, Sessions, open_store
from clew.engine.append import Addition
from loads.corpus import tokens_in
from loads.figures import Figure, Spent
from loads.talking import LEAD, MODEL, SCOPE, Talker, engine_of

ITEM = (300, 1_300)  # characters: two of them are some 400 tokens
RARE = "zipimporter bytecode mismatch"
AFTER = 5  # turns after a store was filled, before it is closed and opened again


async def growth(place: str, turns: int = 2_500, window: int = 32_000, adds: bool = False) -> list[Figure]:
    """CPU for each new token, in the first fifth of a conversation and in the last."""
    engine, talker = engine_of(place, window=window), Talker(1, named=True, adds=adds, sizes=ITEM)
    await Talker(2).turn(engine)
    spent, said = list[tuple[float, float]](), list[int]()
    for _ in range(turns):
        with Spent() as turn:
            await talker.turn(engine)
        spent.append((turn.cpu, turn.wall))
        said.append(tokens_in(talker.new))
    await engine.store.close()
    fifth = turns // 5
    parts = {"first": slice(0, fifth), "last": slice(turns - fifth, turns)}
    each = {
        name: [1e6 * sum(one[kind] for one in spent[part]) / sum(said[part]) for kind in (0, 1)]
        for name, part in parts.items()
    }
    return [
        *(Figure(f"a new token, {name} fifth", "us CPU", each[name][0], each[name][1]) for name in parts),
        Figure("a new token, last / first", "times", each["last"][0] / each["first"][0]),
        Figure("longest turn", "ms CPU", 1e3 * max(one[0] for one in spent)),
    ]


async def fill(path: str, sessions: int, items: int) -> list[Figure]:
    """A store as `filling` of that commit writes it, with a few turns of the engine on top."""
    from filling import fill as filled

    await filled(Path(path), sessions, items)
    engine = engine_of(path)
    for n in range(AFTER):
        view = await engine.prepare(_addition(n))
        await engine.observe(view, {"input_tokens": 40_000, "output_tokens": 50})
    await engine.close()
    await engine.store.close()
    size = Path(path).stat().st_size
    return [Figure("size on disk", "MB", size / 1e6)]


def _addition(n: int) -> Addition:
    said = [{"role": "assistant", "content": f"Done with {n}."}, {"role": "user", "content": f"And now {n}?"}]
    return Addition({"model": MODEL, "messages": [LEAD, *said]}, "session 1")


async def opened(path: str) -> list[Figure]:
    """A turn on a long conversation in a new process, and what is asked of it then."""
    import loads.corpus

    loads.corpus.tokens_in([LEAD])  # the vocabulary is there
    engine = engine_of(path)
    await Talker(10_000).turn(engine)
    with Spent() as cold:
        view = await engine.prepare(_addition(100))
    found = [Figure("first addition, cold", "ms CPU", 1e3 * cold.cpu, 1e3 * cold.wall)]
    with Spent() as spent:
        await engine.store.load(SCOPE, view.branch)
    found.append(Figure("store.load", "ms CPU", 1e3 * spent.cpu, 1e3 * spent.wall))
    with Spent() as spent:
        view = await engine.prepare(_addition(101))
    found.append(Figure("addition, hot", "ms CPU", 1e3 * spent.cpu, 1e3 * spent.wall))
    call = (await engine.store.calls(SCOPE, view.branch))[-1]
    id = view.nodes[-2].id
    acts: dict[str, Any] = {
        "find, hot": lambda: engine.find(SCOPE, RARE, view.branch),
        "recall, hot": lambda: engine.recall(SCOPE, id, view.branch),
        "resume, hot": lambda: engine.resume(SCOPE, call),
    }
    for name, act in acts.items():
        with Spent() as spent:
            await act()
        found.append(Figure(name, "ms CPU", 1e3 * spent.cpu, 1e3 * spent.wall))
    await engine.store.close()
    return found


async def fill_and_search(place: str, server: int, sessions: int, items: int) -> list[Figure]:
    """A store on a server, which is not kept."""
    from filling import put

    store = open_store(place)
    await put(store, sessions, items)
    await store.close()
    return await searched(place, server)


async def searched(path: str, server: int | None = None) -> list[Figure]:
    """A question over all that was ever said in a store; the server's CPU counts, too."""
    engine: Engine = engine_of(path)
    sessions, found = Sessions(engine, SCOPE), list[Figure]()
    for name, text in (("rare words", RARE), ("common words", "return the value of self if name is None")):
        await sessions.search(text)
        with Spent(server) as spent:
            await sessions.search(text)
        found.append(Figure(f"search, {name}", "ms CPU", 1e3 * (spent.cpu + spent.served), 1e3 * spent.wall))
    await engine.store.close()
    return found
