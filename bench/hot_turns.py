"""A hot turn of every client's shape. python bench/hot_turns.py [--client NAME] [--size KB] [--turns N] [--format]

A session in a client's own shape grows to the size of a body; turns follow, with all that the client moves and changes
from one to the next. Each is given as compact bytes, as bytes with spaces and escapes (as Python's `json.dumps` writes
them), and as dicts. In ms of the process's CPU, the median of the turns: `prepare`, `body` and `observe` together,
beside `orjson.loads` + `sha256` over the same bytes. Nothing is folded, and without `--format` nobody says which format
it is. `--profile` says where the time went.
"""

import argparse
import asyncio
import cProfile
import json
import os
import pstats
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from itertools import islice
from statistics import median
from typing import Any

import orjson

from clew import Budget, Engine, Request, SQLite, body
from clew.engine.settings import Settings
from made_clients import CLIENTS, ClientRequest, session
from made_clients.judging import SESSION

WAYS: Mapping[str, Callable[[Any], Any]] = {
    "bytes": orjson.dumps,
    "spaces": lambda given: json.dumps(given).encode(),
    "dicts": lambda given: orjson.loads(orjson.dumps(given)),
}
LONG = 400  # turns, of which only the first half is not summed up by the client
WIDE = 20


def requests(client: str, size: int, turns: int) -> tuple[list[ClientRequest], list[ClientRequest]]:
    """A session until its bodies have a size, and what follows."""
    mains = (sent for sent in session(client, "amber", LONG) if sent.kind == "main")
    before = []
    for sent in mains:
        before.append(sent)
        if len(orjson.dumps(sent.body)) >= size:
            break
    return before, list(islice(mains, turns))


async def measure(client: str, size: int, turns: int, told: bool, profile: cProfile.Profile | None) -> list[float]:
    """Medians: of reading, and of each way to give a body."""
    before, after = requests(client, size, turns)
    costs: dict[str, list[float]] = {"reading": [], **{way: [] for way in WAYS}}
    for way, write in WAYS.items():
        store = SQLite(":memory:")
        engine = Engine(store, Budget(window=10_000_000, reserve=1_000), Settings())
        for sent in [*before[-4:], *after]:
            given = write(sent.body)
            named = next((sent.headers[name] for name in SESSION if name in sent.headers), None)
            request = Request(given, sent.format if told else None, session=named)
            if profile and sent in after:
                profile.enable()
            begin = time.process_time()
            view = await engine.prepare(request)
            body(view)
            await engine.observe(view, {"input_tokens": 90_000, "output_tokens": 100})
            costs[way].append(time.process_time() - begin)
            if profile:
                profile.disable()
        del costs[way][:4]
        await engine.close()
        await store.close()
    for sent in after:
        raw = orjson.dumps(sent.body)
        begin = time.process_time()
        orjson.loads(raw)
        sha256(raw).digest()
        costs["reading"].append(time.process_time() - begin)
    return [len(orjson.dumps(after[-1].body)) / 1e3, *(median(found) * 1e3 for found in costs.values())]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", choices=sorted(CLIENTS), action="append")
    parser.add_argument("--size", type=int, default=350, help="kB of a body at the first measured turn")
    parser.add_argument("--turns", type=int, default=16)
    parser.add_argument("--format", action="store_true", help="say which format it is")
    parser.add_argument("--profile", action="store_true", help="say where the time went")
    given = parser.parse_args()
    profile = cProfile.Profile(time.process_time) if given.profile else None
    print("client".ljust(WIDE), *(head.rjust(8) for head in ("kB", "reading", *WAYS)), sep="")
    for client in given.client or list(CLIENTS):
        if not requests(client, given.size * 1_000, 1)[1]:
            continue  # its bodies never get so large
        found = asyncio.run(measure(client, given.size * 1_000, given.turns, given.format, profile))
        print(client.ljust(WIDE), *(f"{cost:8.2f}" for cost in found), sep="", flush=True)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    if profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)


if __name__ == "__main__":
    main()
