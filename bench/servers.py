"""What a large store on a PostgreSQL server costs beside a small one.

python bench/scale.py --postgres URL [--all N] [--json FILE] [--keep]

Makes two databases on the server, of 100,000 and of `--all` items, and deletes them when it is done (`--keep`). Half of
the items of each are in one scope. Both are measured in turns, in one process. Beside milliseconds, which depend on who
else uses the machine, it counts the blocks that the server read for each act, from memory or disk.
"""

import asyncio
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from random import choice
from statistics import median
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import orjson
import psycopg

from clew import Budget, Engine
from clew.engine.recall import everywhere
from clew.store.postgres import Postgres
from clew.store.upkeep.purge import Purge
from copying import ITEMS, LARGE, LONG, SESSIONS, fill
from scale import COMMON, NEW, WINDOW, Client
from session import show

T = TypeVar("T")

SMALL = 100_000
ROUNDS = 5
HOT = 10  # turns in a row
SEARCHES = 5  # for rare words, which are soon found: the first one on a connection takes longer
SCOPES = ("tenant 3", LARGE)  # that are measured
SESSIONS_MEASURED = (3, 4)  # of each: one with a name, one that is known by its history
PURGES = 3  # of each kind: every one takes something away
IDLE = 5  # conversations that one retention run finds
DAY = 86_400.0
DATABASES = {"small": "clew_bench_small", "large": "clew_bench_large"}


class Unwiped(Postgres):
    """One whose purges delete rows and leave the tables as they are, as those of a large store do."""

    async def _erase(self, took: Purge) -> Purge:
        return took


class Subject:
    """A store that is measured."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.times: dict[str, list[float]] = defaultdict(list)
        self.blocks: dict[str, list[int]] = defaultdict(list)
        self.clients = {(scope, n): Client(n, ITEMS, LONG) for scope in SCOPES for n in SESSIONS_MEASURED}
        self.new = NEW + 2 * int(time.time())  # no other run has had it
        self.purged = ""  # what was purged last
        self.going: list[str] = []  # conversations to be purged one by one

    async def measure(self, round: int) -> None:
        """Take all times once, in a small scope and in the large one."""
        for scope in SCOPES:
            where = "a small scope" if scope != LARGE else "half the store"
            client = self.clients[scope, SESSIONS_MEASURED[round % 2]]
            store = Postgres(self.url)
            engine = Engine(store, Budget(window=WINDOW))
            request = client.request(scope)
            found = "its name" if client.name else "its history"
            view = await self._time(f"append, cold, found by {found}: {where}", engine.prepare(request))
            for _ in range(HOT):
                view = await self._time(f"append, hot: {where}", engine.prepare(client.request(scope)))
            self.new += 2
            stranger = Client(self.new, 100, LONG).request(scope)
            await self._time(f"append, a new conversation of 100 items: {where}", engine.prepare(stranger))
            call = (await store.calls(scope, view.branch))[-1]
            await self._time(f"view of the newest call: {where}", engine.resume(scope, call))
            # The number of the stranger's task: copies have all other words, so that nothing else is rare.
            for words, text, times in (("rare", str(self.new), SEARCHES), ("common", COMMON, 1)):
                for _ in range(times):
                    one = engine.find(scope, text, view.branch)
                    await self._time(f"search in a conversation, {words} words: {where}", one)
                    all = everywhere(store, scope, text, 20)
                    await self._time(f"search in the scope, {words} words: {where}", all)
            await store.close()

    async def count(self) -> None:
        """Blocks of each act, each on connections of its own: what a connection did is counted when it ends."""
        opening = await self._counted(lambda store: store.branches("nobody"))
        for scope in SCOPES:
            where = "a small scope" if scope != LARGE else "half the store"
            client = self.clients[scope, SESSIONS_MEASURED[0]]

            async def append(store: Postgres, scope: str = scope, client: Client = client) -> None:
                await Engine(store, Budget(window=WINDOW)).prepare(client.request(scope))

            async def rare(store: Postgres, scope: str = scope) -> None:
                await everywhere(store, scope, str(self.new), 20)

            async def common(store: Postgres, scope: str = scope) -> None:
                await everywhere(store, scope, COMMON, 20)

            for what, act in {
                "append, cold, found by its name": append,
                "search in the scope, rare words": rare,
                "search in the scope, common words": common,
            }.items():
                self.blocks[f"{what}: {where}"].append(await self._counted(act) - opening)

    async def purge(self, number: int) -> None:
        """Take away a scope, a conversation of the large one, and those of it that are idle."""
        opening = await self._counted(lambda store: store.branches("nobody"))

        async def of_scope(store: Postgres) -> None:
            named = "s.name like 'copy %'"
            found = ask(
                self.url, f"select s.name from clew.scope s join clew.branch b on b.scope = s.id where {named} limit 1"
            )
            scope = found[0][0]
            branches = [b.id for b in await store.branches(scope)]
            await self._purge(f"purge of a scope of {SESSIONS * ITEMS:,} items", store, scope, branches)

        async def of_one(store: Postgres) -> None:
            what = f"purge of one conversation of {ITEMS:,} items: half the store"
            await self._purge(what, store, LARGE, [self.going[number]])

        async def of_idle(store: Postgres) -> None:
            before = time.time() - (PURGES - number) * 1_000 * DAY
            branches = await self._time(
                "retention, idle conversations found: half the store", store.idle(LARGE, before)
            )
            assert len(branches) == IDLE, branches
            what = f"retention, {IDLE} conversations of {ITEMS:,} items deleted: half the store"
            await self._purge(what, store, LARGE, branches, before)

        async def of_item(store: Postgres) -> None:
            branch = await store.session(LARGE, str(self.clients[LARGE, SESSIONS_MEASURED[0]].name))
            said = (await store.load(LARGE, str(branch))).said
            self.purged = "purge of one item of a conversation: half the store"
            await self._time(self.purged, store.purge_item(LARGE, choice(said).id, "measured"))

        for act in (of_scope, of_one, of_idle, of_item):
            blocks = await self._counted(act) - opening  # of both, the trial and the purge
            self.blocks[self.purged].append(blocks)

    async def _purge(
        self, what: str, store: Postgres, scope: str, branches: list[str], before: float | None = None
    ) -> None:
        """As the command does: first as a trial, which reads what is to go, perhaps from disk."""
        self.purged = what
        await self._time(f"{what}, dry run", store.purge(scope, branches, "measured", dry_run=True, before=before))
        took = await self._time(what, store.purge(scope, branches, "measured", before=before))
        assert took.branches == len(branches), took

    def age(self) -> None:
        """Let some conversations of the large scope be old: each of several runs of retention finds a few."""
        # The oldest are copies: those that clew wrote there are measured otherwise.
        rows = ask(
            self.url,
            "select b.id from clew.branch b join clew.scope s on s.id = b.scope "
            f"where s.name = '{LARGE}' order by b.at, b.id limit {PURGES * (IDLE + 1)}",
        )
        self.going = [branch for (branch,) in rows[PURGES * IDLE :]]
        with psycopg.connect(self.url, autocommit=True, options="-c search_path=clew") as db:
            for n, (branch,) in enumerate(rows[: PURGES * IDLE]):
                back = (PURGES - n // IDLE + 0.5) * 1_000 * DAY
                db.execute("update branch set at = at - %s where id = %s", [back, branch])
                db.execute("update event set at = at - %s where branch = %s", [back, branch])

    async def _counted(self, act: Callable[[Postgres], Awaitable[Any]]) -> int:
        before = self._read()
        store = Unwiped(self.url)
        await act(store)
        await store.close()
        others = "datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"
        while ask(self.url, f"select 1 from pg_stat_activity where {others}"):
            await asyncio.sleep(0.05)
        return self._read() - before

    def _read(self) -> int:
        [(blocks,)] = ask(
            self.url, "select blks_hit + blks_read from pg_stat_database where datname = current_database()"
        )
        return int(blocks)

    async def _time(self, what: str, act: Awaitable[T]) -> T:
        begun = time.perf_counter()
        done = await act
        self.times[what].append(time.perf_counter() - begun)
        return done


def ask(url: str, statement: str) -> list[tuple[Any, ...]]:
    """What a statement gives, outside of any transaction."""
    with psycopg.connect(url, autocommit=True) as db:
        rows = db.execute(statement.encode())
        return rows.fetchall() if rows.description else []


def database(url: str, name: str) -> str:
    """The URL of another database of the same server."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


async def measured(urls: dict[str, str]) -> dict[str, Subject]:
    """Both stores, measured in turns."""
    subjects = {name: Subject(url) for name, url in urls.items()}
    for subject in subjects.values():
        subject.age()
    for round in range(ROUNDS):
        for name, subject in subjects.items():
            print(f"\rround {round + 1} of {ROUNDS}: {name} ", end="", file=sys.stderr, flush=True)
            await subject.measure(round)
            await subject.count()
    for number in range(PURGES):
        for name, subject in subjects.items():
            print(f"\rpurges {number + 1} of {PURGES}: {name} ", end="", file=sys.stderr, flush=True)
            await subject.purge(number)
    print(file=sys.stderr)
    return subjects


def figures(subjects: dict[str, Subject]) -> dict[str, dict[str, float]]:
    """By act: medians in both stores, and how many times as much the large one takes."""
    small, large = subjects["small"], subjects["large"]
    found: dict[str, dict[str, float]] = {}
    for what in small.times:
        one, other = median(small.times[what]), median(large.times[what])
        found[what] = {
            "small_ms": round(1e3 * one, 2),
            "large_ms": round(1e3 * other, 2),
            "ratio": round(other / one, 2),
        }
        if what in small.blocks:
            blocks = median(small.blocks[what]), median(large.blocks[what])
            found[what] |= {"small_blocks": round(blocks[0]), "large_blocks": round(blocks[1])}
            found[what]["blocks_ratio"] = round(blocks[1] / max(1, blocks[0]), 2)
    return found


def run(url: str, items: int, into: Path | None, keep: bool) -> None:
    """Make both stores where they are not there, measure, print the table, write the figures."""
    urls = {name: database(url, found) for name, found in DATABASES.items()}
    settings: dict[str, Any] = {"small_items": SMALL, "large_items": items, "rounds": ROUNDS, "purges": PURGES}
    for name, size in (("small", SMALL), ("large", items)):
        if not ask(url, f"select 1 from pg_database where datname = '{DATABASES[name]}'"):
            ask(url, f"create database {DATABASES[name]} template template0")
            took = fill(urls[name], size)
            ask(urls[name], f"comment on schema clew is '{took:.0f}'")  # for the next time, if it is kept
        about = ask(urls[name], "select pg_database_size(current_database()), obj_description('clew'::regnamespace)")
        settings[f"{name}_bytes"], settings[f"{name}_filled_seconds"] = about[0][0], int(about[0][1] or 0)
    [(settings["server"],)] = ask(url, "show server_version")
    [(settings["shared_buffers"],)] = ask(url, "show shared_buffers")
    found = figures(asyncio.run(measured(urls)))
    head = ("milliseconds, median", f"{SMALL:,} items", f"{items:,} items", "ratio", "ratio of blocks")
    rows = [
        (what, *(str(f.get(k, "")) for k in ("small_ms", "large_ms", "ratio", "blocks_ratio")))
        for what, f in found.items()
    ]
    show([head, *rows])
    if into:
        made = {"made": datetime.now(UTC).date().isoformat(), "settings": settings, "figures": found}
        into.write_bytes(orjson.dumps(made, option=orjson.OPT_INDENT_2) + b"\n")
    if not keep:
        for name in DATABASES.values():
            ask(url, f"drop database {name} with (force)")
