"""What partitions by tenant would cost and gain in a large store on a PostgreSQL server.

python bench/scale.py --postgres URL --keep, then: python bench/partitions.py URL [--json FILE] [--keep]

Copies the large store that the first command left, splits nodes and words of the copy into 16 partitions by hash of the
scope (`partitions.sql`), and measures both stores in turns. Takes 10 GB more, and as long as indexing them takes.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import orjson
import psycopg

from clew.store.postgres.database import SQL, translate
from clew.store.queries import parse
from servers import DATABASES, Subject, ask, database
from session import show

COPY = "clew_bench_parts"
TABLES = ("node", "body_text")
ROUNDS, PURGES = 3, 1
STATEMENTS = parse((Path(__file__).parent / "partitions.sql").read_text(encoding="utf-8"))


class Partitioned(Subject):
    """The copy, to which some statements must say the tenant."""

    async def measure(self, round: int) -> None:
        with speaking():
            await super().measure(round)

    async def purge(self, number: int) -> None:
        with speaking():
            await super().purge(number)


@contextmanager
def speaking() -> Iterator[None]:
    """Statements as partitions need them."""
    usual = dict(SQL)
    SQL.update({name: translate(text) for name, text in STATEMENTS.items() if name not in TABLES})
    try:
        yield
    finally:
        SQL.update(usual)


def split(url: str) -> None:
    """Make the copy, and split its tables."""
    ask(url, f"create database {COPY} template {DATABASES['large']} strategy file_copy")
    with psycopg.connect(database(url, COPY), autocommit=True) as db:
        db.execute("set search_path to clew; set maintenance_work_mem = '1GB'; set synchronous_commit = off")
        for table in TABLES:
            db.execute(STATEMENTS[table].encode())
            db.execute(f"vacuum analyze {table}".encode())


async def measured(plain: Subject, parts: Subject) -> None:
    """Both stores, in turns; at the end, what a vacuum of what was purged takes."""
    pair = (plain, parts)
    for subject in pair:
        subject.age()
    for round in range(ROUNDS):
        for subject in pair:
            print(f"\rround {round + 1} of {ROUNDS} ", end="", file=sys.stderr, flush=True)
            await subject.measure(round)
    for number in range(PURGES):
        for subject in pair:
            print(f"\rpurges {number + 1} of {PURGES} ", end="", file=sys.stderr, flush=True)
            await subject.purge(number)
    for table in TABLES:
        for subject in pair:
            begun = time.perf_counter()
            ask(subject.url, f"vacuum clew.{table}")
            subject.times[f"vacuum of {table} after all purges"].append(time.perf_counter() - begun)
    print(file=sys.stderr)


def figures(plain: Subject, parts: Subject) -> dict[str, dict[str, float]]:
    """By act: medians of both, and how many times as long it takes with partitions."""
    found = {}
    for what, times in plain.times.items():
        one, other = median(times), median(parts.times[what])
        found[what] = {
            "plain_ms": round(1e3 * one, 2),
            "parts_ms": round(1e3 * other, 2),
            "ratio": round(other / one, 2),
        }
    return found


def main() -> None:
    """Print the table, and write it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("url")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where figures are written")
    parser.add_argument("--keep", action="store_true", help="leave the copy there for the next time")
    given = parser.parse_args()
    if not ask(given.url, f"select 1 from pg_database where datname = '{COPY}'"):
        split(given.url)
    plain, parts = Subject(database(given.url, DATABASES["large"])), Partitioned(database(given.url, COPY))
    asyncio.run(measured(plain, parts))
    found = figures(plain, parts)
    show(
        [("milliseconds, median", "as it is", "16 partitions", "ratio")]
        + [(what, *(str(f[k]) for k in ("plain_ms", "parts_ms", "ratio"))) for what, f in found.items()]
    )
    if given.json:
        settings: dict[str, Any] = {"rounds": ROUNDS, "purges": PURGES}
        [(settings["items"],)] = ask(
            plain.url, "select reltuples::bigint from pg_class where oid = 'clew.body'::regclass"
        )
        made = {"made": datetime.now(UTC).date().isoformat(), "settings": settings, "figures": found}
        given.json.write_bytes(orjson.dumps(made, option=orjson.OPT_INDENT_2) + b"\n")
    if not given.keep:
        ask(given.url, f"drop database {COPY} with (force)")


if __name__ == "__main__":
    main()
