"""What a search costs in a large store: python bench/search.py [--items N] [--folder DIR]

CPU of this process and seconds by the clock for one query, medians, start-up apart: over all that was ever said,
and within one session.
"""

import argparse
import asyncio
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from clew import Budget, Engine, Sessions, SQLite
from clew.store import Store
from filling import SCOPE, fill, library

ITEMS = 1_000  # of each session
TIMES = 5
QUERIES = {
    "rare words": "OverflowDateError zoneinfo keyfile",
    "common words": "return self and if not None",
    "a question": "why does the parser of email headers fail with an index error when the address is empty?",
    "one name": "src/7/12.py",
    "a word that nobody said": "xyzzyplugh",
    "no word at all": "?! -- ''",
    "signs of the query language": 'NEAR("a" b, 5) AND col:"x" OR NOT * ^ (',
    "90 kB of a file": library()[200_000:290_000],
    "1 MB of one word": "parser " * 150_000,
    "100,000 words": " ".join(f"word{n}" for n in range(100_000)),
    "one word of 1 MB": "x" * 1_000_000,
}


async def measure(store: Store, items: int) -> None:
    """Print a line for each query."""
    engine = Engine(store, Budget(window=200_000))
    sessions = Sessions(engine, SCOPE)
    name = next(s.name for s in await store.sessions(SCOPE) if s.name)
    print(f"\n{items:11,} items{'':15}everywhere{'':16}one session of {ITEMS:,}")
    print(f"{'':34}CPU s  clock s  found     CPU s  clock s")
    for what, text in QUERIES.items():
        row = f"{what:32}"
        for where in (None, name):
            found, cpu, clock = [], list[float](), list[float]()
            for _ in range(TIMES):
                begun, started = time.process_time(), time.perf_counter()
                found = await sessions.search(text, where)
                cpu.append(time.process_time() - begun)
                clock.append(time.perf_counter() - started)
            row += f"{median(cpu):8.3f}{median(clock):9.3f}" + (f"{len(found):7}   " if where is None else "")
        print(row)
    await engine.close()


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, nargs="+", default=[10_000, 300_000])
    parser.add_argument("--folder", type=Path, help="where stores are kept for the next time")
    given = parser.parse_args()
    with TemporaryDirectory() as temporary:
        for items in given.items:
            path = (given.folder or Path(temporary)) / f"search_{items}.db"
            await fill(path, items // ITEMS, ITEMS)
            store = SQLite(path)
            await measure(store, items)
            await store.close()


if __name__ == "__main__":
    asyncio.run(main())
