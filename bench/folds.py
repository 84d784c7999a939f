"""CPU of folds after much was said: python bench/folds.py [--beside DIR] [--data FILE] [--tokens N,N] [--rounds N]

Two checkouts are measured in turns, each run in a process of its own: this one, and that in DIR. `first`: a history of
so many tokens is folded at once. `grown`: it grew in a window of 200,000, all folds together.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace as with_
from itertools import chain, count
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MODEL, WINDOW = "gpt-4o", 200_000
SIZES = (200_000, 1_000_000, 5_000_000)  # tokens said


def messages(data: Path | None) -> Iterator[dict[str, Any]]:
    """What is said: conversations of a file one after the other, or made-up turns, without end."""
    if data is None:
        from filling import turns

        yield from chain.from_iterable(turns(1))
    with gzip.open(str(data), "rt", encoding="utf-8") as lines:
        talks = [json.loads(line)["messages"] for line in lines]
    for n in count():
        for talk in talks:
            yield from talk if n == 0 else [*talk, {"role": "user", "content": f"Round {n}."}]


def measured(tokens: int, data: Path | None) -> dict[str, float]:
    """Seconds of CPU of both kinds of folds after so many tokens."""
    from clew import Budget
    from clew.core.bridge import run
    from clew.core.items import Digests
    from clew.core.view import View
    from clew.steps import default, repair
    from clew.tokens.target import Target
    from clew.wire import decode

    said, size = list[dict[str, Any]](), 0
    for message in messages(data):
        if size > 4 * tokens and message["role"] == "user":
            break
        said.append(message)
        size += len(str(message.get("content") or "")) + len(str(message.get("tool_calls") or ""))

    def viewed() -> tuple[View, Target]:
        frame, items = decode({"messages": [m for m in said if m["role"] != "system"]}, "openai_chat")
        digests = Digests()
        view = View(frame, tuple(digests.chain(items)), digests)
        return view, Target.of(Budget(window=WINDOW, model=MODEL)).around(frame)

    def fold(view: View, target: Target) -> tuple[View, float]:
        target.size(view)  # is counted when it comes
        begun = time.process_time()
        return run(default()(view, target)), time.process_time() - begun

    view, target = viewed()
    _, first = fold(repair(view), target)
    whole, target = viewed()
    view, took = with_(whole, nodes=()), list[float]()
    for at, node in enumerate(whole.nodes):
        view = with_(view, nodes=(*view.nodes, node))
        ends = node.item.kind != "call" and (at + 1 == len(whole.nodes) or whole.nodes[at + 1].item.kind != "result")
        if ends and at % 8 == 0 and target.size(view).tokens > target.threshold:
            view, seconds = fold(repair(view), target)
            took.append(seconds)
    return {"first": first, "grown": sum(took)}


def main() -> None:
    """Print a row for each size and kind of fold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--beside", type=Path, metavar="DIR", help="another checkout")
    parser.add_argument("--data", type=Path, metavar="FILE", help="conversations, in place of made-up ones")
    parser.add_argument("--tokens", default=",".join(map(str, SIZES)))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = [int(size) for size in given.tokens.split(",")]
    if given.one:
        print(json.dumps(measured(sizes[0], given.data)))
        return
    sides = [HERE.parent, *([given.beside.resolve()] if given.beside else [])]
    print("tokens said, fold: seconds of CPU" + (" here, beside, ratio" if given.beside else ""))
    for size in sizes:
        found: list[list[dict[str, float]]] = [[] for _ in sides]
        for _ in range(given.rounds):
            for n, side in enumerate(sides):
                command = [sys.executable, __file__, "--one", "--tokens", str(size)]
                command += ["--data", str(given.data)] if given.data else []
                env = {**os.environ, "PYTHONPATH": f"{side / 'src'}{os.pathsep}{HERE}", "PYTHONHASHSEED": "0"}
                done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
                found[n].append(json.loads(done.stdout))
        for kind in found[0][0]:
            took = [min(one.get(kind, 0.0) for one in side) for side in found]
            ratio = f"  {took[0] / took[1]:.2f}" if len(took) > 1 else ""
            print(f"{size:>9,} {kind}", *(f"{seconds:7.2f}" for seconds in took), ratio, flush=True)


if __name__ == "__main__":
    main()
