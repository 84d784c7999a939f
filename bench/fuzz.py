"""Random sessions of clients that do all that clients do, and what is wrong with what is sent for them.

python bench/fuzz.py [--sessions N] [--seed N] [--store sqlite|postgres] [--processes N] [--shown N]

Each session runs warm and cold. A fault is told with its seed and with the acts that it takes: run that seed alone with
`--seed SEED --sessions 1`. Ids are made with a store's own secret, so that what hangs on a summary's last token may
not come again.
"""

import argparse
import asyncio
import multiprocessing
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import postgres
from clew import SQLite, open_store
from clew.store.sql import SQLStore
from fuzzing import BATCH, Tally, fuzz

KINDS = ("foreign", "stale", "lost", "invalid", "large", "crash")


def portion(seeds: range, place: str, shown: int) -> Tally:
    """Some sessions, in this process; on a server, all portions share a store."""

    def opened() -> SQLStore:
        return open_store(place) if place else SQLite(":memory:")

    return asyncio.run(fuzz(seeds, opened, shown))


@contextmanager
def place_of(store: str) -> Iterator[str]:
    """Where the sessions are kept: in memory, or on a server that is there as long."""
    if store == "sqlite":
        yield ""
        return
    programs = postgres.binaries()
    if programs is None:
        raise SystemExit(postgres.MISSING)
    server = postgres.Server(programs)
    try:
        server.start("fsync=off", "full_page_writes=off")
        yield server.url(server.database())
    finally:
        server.remove()


def portions(args: argparse.Namespace, place: str) -> Iterator[Tally]:
    """What comes of the sessions, a batch at a time."""
    stop = args.seed + args.sessions
    work = partial(portion, place=place, shown=args.shown)
    batches = [range(first, min(first + BATCH, stop)) for first in range(args.seed, stop, BATCH)]
    if args.processes == 1:
        yield from map(work, batches)
        return
    with ProcessPoolExecutor(args.processes, multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(work, seeds) for seeds in batches]):
            yield done.result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--shown", type=int, default=1, help="faults of each kind that a batch makes small and tells")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the server goes, too
    total, start, shown = Tally(), time.monotonic(), Counter[str]()
    with place_of(args.store) as place:
        for tally in portions(args, place):
            for one in tally.told:
                kind = one.split(": ")[1]
                shown[kind] += 1
                if shown[kind] <= 5 * args.shown:
                    print(one, flush=True)
            total.add(tally)
            seconds = time.monotonic() - start
            print(f"\r{total.sessions:,} sessions, {total.faulty:,} faulty, {seconds:,.0f} s", end="", file=sys.stderr)
    print(file=sys.stderr)
    print(f"{total.sessions:,} sessions, {total.turns:,} turns, {total.folded:,} of them folded")
    print(f"{total.other:,} turns in which a cold engine sent something else than a warm one")
    for kind in KINDS:
        runs = total.faults[kind]
        print(f"{kind:8} {runs:6,} runs, {runs * 1_000 / total.sessions:6.1f} per 1,000 sessions")
    sys.exit(bool(total.faulty))


if __name__ == "__main__":
    main()
