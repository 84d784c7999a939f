"""Stores as earlier versions of clew wrote them, with all that is in a store: python tests/old_stores.py FOLDER

`tests/stores` holds them: the newest version of their time, of which those before it are made by taking away what came
later; and what a host knew of each. The command writes such files with the clew that is installed.
"""

import asyncio
import gzip
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier

import postgres
from clew import Budget, Engine, Request, open_store
from clew.store.places import is_url
from clew.store.sqlite.opening import migrations
from crashing import ADDING, SESSIONS, WINDOW, Client, bodies
from remembering import Host

FOLDER = Path(__file__).parent / "stores"
NEWEST = {"sqlite": 4, "postgres": 3}  # versions of the files in that folder
SCHEMA = "clew"

OLDEST = {"sqlite": 3, "postgres": 2}  # before, there were no sessions, and what a log of today has is not in one
BACK = (  # from the newest version of those to the oldest
    "drop index session_place",
    "alter table session drop column opening",
    "create unique index session_place on session (branch, seq)",
)
# What later versions made, which a store of today has to lose to be as one of before.
LATER = (
    "drop table checkpoint",
    "drop table said_again",
    "drop table frame_use",
    "drop index branch_parent",
    "drop index branch_at",
    "drop index frame_parts",
)
LATER_ON_A_SERVER = ("drop index head_branch", "drop index handle_branch")


def kind_of(where: str) -> str:
    return "postgres" if is_url(where) else "sqlite"


def versions(where: str) -> list[int]:
    """Those that can be put there, oldest first."""
    kind = kind_of(where)
    return list(range(OLDEST[kind], NEWEST[kind] + 1))


def known(where: str) -> Host:
    """What a host knew of the store that `put` puts there."""
    told = json.loads((FOLDER / f"{kind_of(where)}.json").read_text())
    host = Host(names=told["names"], turns=told["turns"])
    for branch, calls in told["calls"].items():
        host.calls[branch] = {int(seq): digest for seq, digest in calls.items()}
    for branch, words in told["added"].items():
        host.added[branch] = words
    return host


def put(where: str, version: int) -> None:
    """A store of this version, where there is none."""
    packed = gzip.decompress((FOLDER / f"{kind_of(where)}.gz").read_bytes())
    if kind_of(where) == "sqlite":
        Path(where).write_bytes(packed)
        with closing(sqlite3.connect(where, isolation_level=None)) as db:
            db.execute("pragma journal_mode = delete")
            for statement in BACK if version < NEWEST["sqlite"] else ():
                db.execute(statement)
            db.execute(f"pragma user_version = {version}")
        return
    with psycopg.connect(where) as server:
        server.execute(SQL("create schema {}").format(Identifier(SCHEMA)))
        server.execute(SQL("set search_path to {}").format(Identifier(SCHEMA)))
        for script in migrations("postgres")[: NEWEST["postgres"]]:
            server.execute(script.encode())
        for table, rows in json.loads(packed).items():
            _fill(server, table, rows)
        for statement in BACK if version < NEWEST["postgres"] else ():
            server.execute(statement.encode())
        server.execute("update meta set value = %s where key = 'version'", [b"%d" % version])


def _fill(db: psycopg.Connection[Any], table: str, rows: str) -> None:
    with db.cursor() as cursor, cursor.copy(SQL("copy {} from stdin").format(Identifier(table))) as copy:
        copy.write(rows)
    if table in ("scope", "body", "purge"):
        db.execute(f"select setval(pg_get_serial_sequence('{table}', 'id'), max(id)) from {table}".encode())


# --- making them ------------------------------------------------------------------------------------------------------


async def fill(where: str) -> Host:
    """Sessions with all that can be in one."""
    host = Host()
    store = open_store(where)
    client = Client(Engine(store, Budget(window=WINDOW)), host, Random(1), lambda *_: None)
    for session in SESSIONS:
        for turn, body in enumerate(bodies(session)[:7]):
            view = await client.append(Request(body, session=session), turn)
            await client.record(view)
            if turn == 3:
                await client.pin(view)
            if turn == 5:
                await client.fork(view, f"{session} again")
        await client.compact(view)
        await client.add(ADDING[0])
    await client.undo(view)
    await client.purge(view.branch)
    await store.label("default", next(iter(host.names)), ["a tag"], archived=True)
    await store.close()
    return host


def make(folder: Path) -> None:
    """Write the files."""
    path = folder / "made.db"
    host = asyncio.run(fill(str(path)))
    (folder / "sqlite.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    path.unlink()
    _tell(folder / "sqlite.json", host)
    programs = postgres.binaries()
    assert programs is not None, postgres.MISSING
    server = postgres.Server(programs)
    try:
        server.start("fsync=off")
        where = server.url(server.database())
        host = asyncio.run(fill(where))
        tables: dict[str, str] = {}
        with psycopg.connect(where) as db:
            db.execute(SQL("set search_path to {}").format(Identifier(SCHEMA)))
            for (table,) in db.execute("select tablename from pg_tables where schemaname = %s", [SCHEMA]).fetchall():
                with db.cursor() as cursor, cursor.copy(SQL("copy {} to stdout").format(Identifier(table))) as copy:
                    tables[table] = b"".join(bytes(block) for block in copy).decode()
        (folder / "postgres.gz").write_bytes(gzip.compress(json.dumps(tables).encode(), mtime=0))
        _tell(folder / "postgres.json", host)
    finally:
        server.remove()


def _tell(path: Path, host: Host) -> None:
    told = {name: getattr(host, name) for name in ("names", "turns", "calls", "added")}
    path.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
