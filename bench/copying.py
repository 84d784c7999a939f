"""Large stores on a server in minutes: some scopes written by clew, and the rows of one of them copied many times."""

import asyncio
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from clew.store.postgres import Postgres
from clew.store.postgres.database import translate
from clew.store.queries import parse
from filling import put

STATEMENTS = {
    name: translate(statement)
    for name, statement in parse((Path(__file__).parent / "clones.sql").read_text(encoding="utf-8")).items()
}
TABLES = (
    "body",
    "body_text",
    "node",
    "branch",
    "session",
    "event",
    "checkpoint",
    "head",
    "handle",
    "frame",
    "frame_use",
)
HERE = "scope = %(base)s"
OF_BRANCHES = "branch in (select id from branch where scope = %(base)s)"
OWN = {
    "body_text": "body in (select id from body where scope = %(base)s)",
    "event": OF_BRANCHES,
    "checkpoint": OF_BRANCHES,
}
TOGETHER = 25  # copies that one statement makes
SESSIONS, ITEMS = 10, 1_000  # of a scope, and of each session
LONG = 600  # characters of an item, at most
LARGE = "large"  # the scope that half of all copies go to
WRITTEN = ("tenant 1", "tenant 2", "tenant 3", LARGE)  # by clew, and measured


@dataclass(frozen=True)
class Shape:
    """How many copies of a scope there are beside those that clew wrote: in one scope, and in one each."""

    inside: int
    beside: int

    @property
    def items(self) -> int:
        return (len(WRITTEN) + self.inside + self.beside) * SESSIONS * ITEMS


def shape_of(items: int) -> Shape:
    """A store of about so many items, half of them in one scope."""
    scopes = items // (SESSIONS * ITEMS) - len(WRITTEN)
    return Shape(scopes // 2, scopes - scopes // 2)


def fill(url: str, items: int) -> float:
    """Make a store of so many items in an empty database; seconds it took."""
    begun = time.perf_counter()
    asyncio.run(_write(url))
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("set search_path to clew")
        db.execute("set maintenance_work_mem = '1GB'")
        db.execute("set synchronous_commit = off")
        _copy(db, shape_of(items))
    return time.perf_counter() - begun


async def _write(url: str) -> None:
    store = Postgres(url)
    for scope in WRITTEN:
        await put(store, SESSIONS, ITEMS, scope, LONG)
    await store.close()


def _copy(db: psycopg.Connection[Any], shape: Shape) -> None:
    """Without indexes, which are quicker made at once."""
    db.execute(STATEMENTS["prepare"].encode())
    numbers = dict(db.execute("select name, id from scope").fetchall())
    [(stride,)] = db.execute("select max(id) from body").fetchall()
    base, all = numbers[WRITTEN[0]], shape.inside + shape.beside
    for table in TABLES:
        # An unlogged table, and not a temporary one: others see it, too.
        db.execute(
            f"create unlogged table base_{table} as select * from {table} where {OWN.get(table, HERE)}".encode(),
            {"base": base},
        )
        db.execute(f"analyze base_{table}".encode())
    db.execute("create unlogged table copies (copy integer primary key, scope integer not null)")
    db.execute("insert into copies select n, %s from generate_series(1, %s::integer) n", [numbers[LARGE], shape.inside])
    db.execute(
        "with made as (insert into scope (name) select 'copy ' || n from generate_series(%s::integer, %s) n "
        "returning id, name) insert into copies select substring(name from 6)::integer, id from made",
        [shape.inside + 1, all],
    )
    made = _without_indexes(db)
    for first in range(1, all + 1, TOGETHER):
        given = {"base": base, "stride": stride, "first": first, "last": min(all, first + TOGETHER - 1)}
        for table in TABLES:
            db.execute(STATEMENTS[table].encode(), given)
        print(f"\r{given['last']:,} copies of {all:,} ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    db.execute("select setval(pg_get_serial_sequence('body', 'id'), max(id)) from body")
    for statement in made:
        db.execute(statement.encode())
    for table in ("copies", *(f"base_{table}" for table in TABLES)):
        db.execute(f"drop table {table}".encode())
    db.execute("vacuum analyze")


def _without_indexes(db: psycopg.Connection[Any]) -> list[str]:
    """Drop those of the tables that are copied; the statements that make them again."""
    oid = "select c.oid from pg_class c where c.relnamespace = 'clew'::regnamespace and c.relname = any(%s)"
    constraints = db.execute(
        "select conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint "
        f"where contype in ('p', 'u') and conrelid in ({oid})",
        [list(TABLES)],
    ).fetchall()
    for table, name, _ in constraints:
        if table != "frame":
            db.execute(f"alter table {table} drop constraint {name}".encode())
    indexes = db.execute(
        "select i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) "
        f"from pg_index i where i.indrelid in ({oid})",
        [list(TABLES)],
    ).fetchall()
    indexes = [(name, made) for name, made in indexes if not name.startswith("frame")]
    for name, _ in indexes:
        db.execute(f"drop index {name}".encode())
    return [
        *(f"alter table {table} add constraint {name} {made}" for table, name, made in constraints if table != "frame"),
        *(made for _, made in indexes),
    ]
