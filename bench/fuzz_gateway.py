"""Requests and answers with something wrong in them, through a gateway.

python bench/fuzz_gateway.py [--requests N] [--seed N]

A fault is told with its seed: run that alone with `--seed SEED --requests 1`, or a few before it, where it takes more.
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from fuzzing_gateway import fuzz

BATCH = 100  # requests to one gateway


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    statuses, told, start, stop = Counter[str](), list[str](), time.monotonic(), args.seed + args.requests
    for first in range(args.seed, stop, BATCH):
        faults = fuzz(range(first, min(first + BATCH, stop)))
        statuses += faults.statuses
        told += faults.told
        for one in faults.told:
            print(one, flush=True)
    seconds = time.monotonic() - start
    print(f"{args.requests:,} requests, {len(told):,} faults, {seconds:,.0f} s; {dict(sorted(statuses.items()))}")
    sys.exit(bool(told))


if __name__ == "__main__":
    main()
