"""How long backups take, and how large they are.

python bench/backups.py [--items N] [--postgres URL] [--json FILE]

A SQLite store with so many items, copied by `clew backup`, by `vacuum into` and by `clew export`, and put back.
With `--postgres`, the URL of a database with a store in it, that is dumped and restored into a new one beside it.
"""

import argparse
import asyncio
import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from clew import SQLite
from clew.sessions.export_log import export
from clew.sessions.import_log import take_in
from clew.store import restore
from filling import SCOPE, fill
from servers import ask, database
from session import show

Figures = dict[str, dict[str, float]]


class Watch:
    """Takes times, and the sizes of what was made."""

    def __init__(self) -> None:
        self.figures: Figures = {}

    def take(self, what: str, act: Callable[[], Any], made: Path | None = None) -> None:
        begun = time.perf_counter()
        act()
        self.figures[what] = {"seconds": round(time.perf_counter() - begun, 2)}
        if made:
            self.figures[what]["bytes"] = made.stat().st_size


def of_file(folder: Path, items: int, watch: Watch) -> None:
    """A SQLite store."""
    path = folder / "store.db"
    asyncio.run(fill(path, items // 1_000, 1_000))
    watch.figures["SQLite: the store itself"] = {"bytes": path.stat().st_size}
    watch.take("SQLite: clew backup, verified", lambda: asyncio.run(_backup(path, folder / "copy")), folder / "copy")
    watch.take("SQLite: vacuum into", lambda: _vacuum(path, folder / "vacuumed"), folder / "vacuumed")
    watch.take("SQLite: clew backup --restore", lambda: restore(folder / "copy", folder / "restored.db"))
    watch.take("SQLite: clew export", lambda: asyncio.run(_export(path, folder / "log")), folder / "log")
    watch.take("SQLite: clew import", lambda: asyncio.run(_import(folder / "log", folder / "imported.db")))


async def _backup(path: Path, copy: Path) -> None:
    store = SQLite(path)
    await store.backup(copy)
    await store.close()


def _vacuum(path: Path, copy: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("vacuum into ?", [str(copy)])


async def _export(path: Path, log: Path) -> None:
    store = SQLite(path)
    branches = [branch.id for branch in await store.branches(SCOPE)]
    with log.open("wb") as file:
        async for line in export(store, SCOPE, branches):
            file.write(line)
    await store.close()


async def _import(log: Path, path: Path) -> None:
    store = SQLite(path)
    with log.open("rb") as lines:
        await take_in(store, SCOPE, lines)
    await store.close()


def of_server(folder: Path, url: str, watch: Watch) -> None:
    """A database with a store in it."""
    new = "clew_bench_restored"
    [(size,)] = ask(url, "select pg_database_size(current_database())")
    watch.figures["PostgreSQL: the database itself"] = {"bytes": size}
    dump = folder / "dump"
    watch.take("PostgreSQL: pg_dump", lambda: _run("pg_dump", "--format=custom", f"--file={dump}", url), dump)
    ask(url, f"create database {new} template template0")
    try:
        there = database(url, new)
        watch.take(
            "PostgreSQL: pg_restore, 2 jobs", lambda: _run("pg_restore", "--jobs=2", f"--dbname={there}", str(dump))
        )
    finally:
        ask(url, f"drop database {new} with (force)")


def _run(name: str, *args: str) -> None:
    subprocess.run([shutil.which(name) or name, *args], check=True, env=os.environ)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--postgres", metavar="URL")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args()
    watch = Watch()
    with TemporaryDirectory() as scratch:
        of_file(Path(scratch), given.items, watch)
        if given.postgres:
            of_server(Path(scratch), given.postgres, watch)
    head = ("", "seconds", "MB")
    rows = [
        (w, str(f.get("seconds", "")), f"{f['bytes'] / 1e6:,.1f}" if "bytes" in f else "")
        for w, f in watch.figures.items()
    ]
    show([head, *rows])
    if given.json:
        made = {
            "made": datetime.now(UTC).date().isoformat(),
            "settings": {"items": given.items},
            "figures": watch.figures,
        }
        given.json.write_bytes(orjson.dumps(made, option=orjson.OPT_INDENT_2) + b"\n")


if __name__ == "__main__":
    main()
