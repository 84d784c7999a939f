"""Conversations of one scope that are alike in all but their words, through gateways and the library: does any of them
get a word of another?

python bench/fuzz_mixups.py [--turns N | --worlds N] [--seed N] [--store sqlite|postgres] [--processes N] [--shown N]

A mix-up is told with the door through which the word came, with what linked the two, and with the acts that it takes:
`--seed SEED --worlds 1 --acts N,N` runs those alone. Another checkout: PYTHONPATH=CHECKOUT/src.
"""

import argparse
import asyncio
import multiprocessing
import resource
import signal
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from fuzz import place_of
from mixups.plans import plan
from mixups.running import BATCH, Fuzzer, only, opened
from mixups.world import Tally


def portion(seeds: range, place: str, acts: tuple[int, ...]) -> Tally:
    """Some worlds, in this process."""

    async def fuzz(folder: str) -> Tally:
        plans = map(plan, seeds)
        async with Fuzzer(opened(place, Path(folder))) as fuzzer:
            return await fuzzer.fuzz(only(made, acts) for made in plans) if acts else await fuzzer.fuzz(plans)

    before = cpu()
    with tempfile.TemporaryDirectory(prefix="clew-mixups-") as folder:
        tally = asyncio.run(fuzz(folder))
    tally.cpu = cpu() - before
    return tally


def cpu() -> float:
    """Seconds that this process has worked."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def tell(total: Tally, place: str, shown: int) -> None:
    """Mix-ups of the kinds there were, the most frequent first, each with as few acts as it takes."""
    with tempfile.TemporaryDirectory(prefix="clew-mixups-") as folder:
        async with Fuzzer(opened(place, Path(folder))) as fuzzer:
            for kind, _ in total.faults().most_common(shown):
                seed, found = total.first[kind]
                print(await fuzzer.told(plan(seed), found), flush=True)


def portions(args: argparse.Namespace, place: str) -> Iterator[Tally]:
    """What comes of the worlds, a batch at a time, until there were enough."""
    work = partial(portion, place=place, acts=args.acts)
    if args.worlds:
        stop = args.seed + args.worlds
        batches = iter([range(n, min(n + BATCH, stop)) for n in range(args.seed, stop, BATCH)])
    else:
        batches = (range(n, n + BATCH) for n in count(args.seed, BATCH))
    turns = 0
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(args.processes, context) as pool:
        running: set[Future[Tally]] = set()
        while True:
            while len(running) < args.processes and (args.worlds or turns < args.turns):
                if (seeds := next(batches, None)) is None:
                    break
                running.add(pool.submit(work, seeds))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for one in done:
                turns += one.result().counts["turns"]
                yield one.result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=50_000)
    parser.add_argument("--worlds", type=int, default=0, help="so many instead, whatever turns they have")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--shown", type=int, default=10, help="kinds of mix-ups of which one is made small and told")
    parser.add_argument("--acts", type=lambda text: tuple(map(int, text.split(","))), default=())
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the server goes, too
    total = Tally()
    with place_of(args.store) as place:
        try:
            for tally in portions(args, place):
                total.add(tally)
                counts, faults = total.counts, sum(total.faults().values())
                told = f"{counts['turns']:,} turns, {counts['worlds']:,} worlds, {faults:,} mix-ups"
                print(f"\r{told}, {total.cpu:,.0f} s", end="", file=sys.stderr, flush=True)
            if not args.acts:
                print(file=sys.stderr)
                asyncio.run(tell(total, place, args.shown))
        finally:  # whoever ends it early sees what there was
            print(total.report(), flush=True)
    sys.exit(bool(total.faults()))


if __name__ == "__main__":
    main()
