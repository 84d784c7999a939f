"""Recall beside the question. python bench/beside_question.py [--client NAME] [--pairs pairs|later|orchestra] [--show]

Facts are told early in a session in the shape of each client's newest release, beside distractors, and long work goes
on until they are out of view; then each is asked for in other words, each time in the session as it stood. `beside`:
the fact stands beside the question in the client's next request; `there`: it stands anywhere in it. No network.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from copy import deepcopy
from pathlib import Path

from recalling.sessions import SHAPES, Asking, asked, judged, pairs, prepared


async def askings(client: str, name: str, folder: Path) -> list[Asking]:
    """What is there of each fact."""
    facts, others = pairs(name)
    path = folder / f"{client}.db"
    made = await prepared(client, [*facts, *others], str(path))
    found = []
    for n, pair in enumerate(facts):
        copy = folder / f"{client}-{n}.db"
        shutil.copy(path, copy)
        view, _ = await asked(deepcopy(made), pair, str(copy))
        found.append(judged(pair, view))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", choices=sorted(SHAPES), action="append")
    parser.add_argument("--pairs", default="pairs")
    parser.add_argument("--show", action="store_true", help="say which were there")
    given = parser.parse_args()
    print("client".ljust(14), "asked  beside  there  characters")
    with tempfile.TemporaryDirectory() as folder:
        for name in given.client or SHAPES:
            print(name, file=sys.stderr)
            found = asyncio.run(askings(SHAPES[name], given.pairs, Path(folder)))
            beside, there = sum(a.beside for a in found), sum(a.beside or a.elsewhere for a in found)
            size = sum(a.notes for a in found) // len(found)
            print(name.ljust(14), f"{len(found):5}  {beside:6}  {there:5}  {size:10,}", flush=True)
            for a in found if given.show else ():
                where = "beside" if a.beside else "in view" if a.elsewhere else "-"
                print(f"    {where:8} {a.pair.question}   [{a.pair.common or 'nothing in common'}]")


if __name__ == "__main__":
    main()
