"""What a store takes on disk, by what it is taken for, and beside the tokens that were said.

python bench/disk.py [--items N] [--sessions N] [--folder DIR]

Two stores: one of small made-up items, one of the real conversations at hand (`CLEW_CORPUS`, or the one that ships).
"""

import argparse
import asyncio
import gzip
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import clew
from clew import SQLite
from clew.tokens import counter_for
from filling import BATCH, SCOPE, Message, Session, fill
from session import show

MODEL = "gpt-4o"
SAMPLE = Path(clew.__file__).parent / "data" / "sample.jsonl.gz"
CALLED = frozenset({"user", "tool"})  # whose messages end where a request is made
PARTS = {  # tables; their indexes have names that begin with theirs
    "search index": ("body_text",),
    "bodies": ("body",),
    "events": ("event",),
    "nodes": ("node",),
    "known histories": ("head",),
    "checkpoints": ("checkpoint",),
}


def conversations() -> Iterator[list[Message]]:
    """The messages of each real conversation at hand."""
    folder = os.environ.get("CLEW_CORPUS")
    files = [f for f in sorted(Path(folder).glob("*.jsonl.gz")) if "probes" not in f.name] if folder else [SAMPLE]
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            yield from (json.loads(line)["messages"] for line in lines)


def turns(messages: list[Message]) -> Iterator[list[Message]]:
    """What each request adds."""
    turn: list[Message] = []
    for message in messages:
        if turn and message["role"] == "assistant" and turn[-1]["role"] in CALLED:
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn


async def fill_real(path: Path) -> None:
    """A store with the real conversations, as their turns would have been written."""
    if path.exists():
        return
    store = SQLite(path)
    for number, messages in enumerate(conversations(), 1):
        session, all = Session(store.secret, number), list(turns(messages))
        for start in range(0, len(all), BATCH):
            await store.write(SCOPE, session.batch(all[start : start + BATCH]))
    await store.close()


def sizes(path: Path) -> dict[str, int]:
    """Bytes of a file by part, written anew without what it does not use."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("vacuum")
        pages = dict(db.execute("select name, pgsize from dbstat where aggregate = 1").fetchall())
        found = {}
        for part, tables in PARTS.items():
            own = [name for name in pages if name in tables or name.startswith(tuple(f"{t}_" for t in tables))]
            own += [name for name in pages if name.removeprefix("sqlite_autoindex_").rpartition("_")[0] in tables]
            found[part] = sum(pages.pop(name) for name in dict.fromkeys(own))
        found["the rest"] = sum(pages.values())
    return found


async def tokens(path: Path) -> int:
    """Tokens of all that was said, each body once, by our own count."""
    counter, count = counter_for(MODEL), 0
    store = SQLite(path)
    for branch in await store.branches(SCOPE):
        said = (await store.load(SCOPE, branch.id)).said
        nodes = await store.nodes(SCOPE, [place.id for place in said])
        count += sum(counter.text(node.item.text) for node in nodes.values())
    await store.close()
    return count


async def measure(path: Path) -> list[tuple[str, ...]]:
    """Rows: what, bytes, of all, for each token."""
    count, found = await tokens(path), sizes(path)
    all = sum(found.values())
    head = (f"{path.stem}: {count:,} tokens", "MB", "share", "B/token")
    rows = [(part, f"{size / 1e6:.2f}", f"{size / all:.0%}", f"{size / count:.2f}") for part, size in found.items()]
    return [head, *rows, ("all", f"{all / 1e6:.2f}", "", f"{all / count:.2f}")]


async def run(folder: Path, sessions: int, items: int) -> None:
    """Print both tables."""
    made_up, real = folder / f"{sessions}x{items}.db", folder / "real.db"
    await fill(made_up, sessions, items)
    await fill_real(real)
    show(await measure(made_up))
    print()
    show(await measure(real))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=30)
    parser.add_argument("--items", type=int, default=1_000, help="of each session")
    parser.add_argument("--folder", type=Path, help="where stores are kept for the next time")
    given = parser.parse_args()
    with TemporaryDirectory() as scratch:
        asyncio.run(run(given.folder or Path(scratch), given.sessions, given.items))


if __name__ == "__main__":
    main()
