"""Real clients' sessions. python bench/client_shapes.py [--client NAME] [--windows N,N] [--turns N] [--again]

For every client, in every window where the frame, the reserve and the newest exchange fit in some of the turns: two
sessions side by side, in the client's own shape, with titles, memories, sub-agents and the client's own
compaction. Only `folds` should be anything but nought. With `--again` all is run twice, in stores with other secrets,
and compared.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence

from made_clients import CLIENTS, TURNS
from made_clients.judging import FAULTS, ClientTally, judged

WINDOWS = (16_000, 24_000, 32_000, 40_000, 48_000, 64_000, 72_000, 100_000, 128_000, 200_000)
LEAST = 5  # of so many turns, one must fit
WIDE = 20  # characters of a client's name


def rows(
    clients: Sequence[str], windows: Sequence[int], turns: int, again: bool
) -> Iterator[tuple[str, int, ClientTally, str]]:
    """A tally for each client and window."""
    for client in clients:
        for window in windows:
            print(f"{client} in {window:,}", file=sys.stderr)
            tally = asyncio.run(judged(client, window, turns))
            if tally.fits < tally.turns / LEAST:
                continue
            same = ""
            if again:
                same = "yes" if asyncio.run(judged(client, window, turns)).bodies == tally.bodies else "NO"
            yield client, window, tally, same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", choices=sorted(CLIENTS), action="append")
    parser.add_argument("--windows", default=",".join(map(str, WINDOWS)))
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--again", action="store_true")
    given = parser.parse_args()
    windows = [int(window) for window in given.windows.split(",")]
    heads = ("window", "turns", "fits", "folds", *FAULTS, *(("same",) if given.again else ()))
    print("client".ljust(WIDE), *(head.rjust(max(5, len(head))) for head in heads))
    for client, window, tally, same in rows(given.client or list(CLIENTS), windows, given.turns, given.again):
        cells = [window, tally.turns, tally.fits, tally.folds, *(getattr(tally, name) or "." for name in FAULTS)]
        cells += [same] if given.again else []
        told = (str(cell).rjust(max(5, len(head))) for cell, head in zip(cells, heads, strict=True))
        print(client.ljust(WIDE), *told, flush=True)


if __name__ == "__main__":
    main()
