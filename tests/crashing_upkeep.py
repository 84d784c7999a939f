"""Upkeep killed again and again: python tests/crashing_upkeep.py KILLS SEED FOLDER [URL]

Backup, restore, migration, imports, repair, wiping and the purge of an item, each on a copy of a store that holds all
that a store can hold. What was there stays, what was begun is whole or absent, what is left over is named by
`clew doctor` and removed by its repair; and whoever asks again gets what an act that nobody killed would have given.
"""

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

import old_stores
from clew import SQLite, open_store
from clew.sessions.export_log import export
from clew.store.sqlite.opening import migrations
from crashing import Say, end, fork, hear, listen, warm_up
from remembering import SCOPE, Host, Outcome
from upkeeping import ACTS, ON_SERVERS, Place, act, inspect, sum_up


class Killer:
    """Has a template of each store, copies of which are worked on, and knows how long acts take."""

    def __init__(self, folder: Path, url: str | None, chance: random.Random) -> None:
        self.folder, self.url, self.chance = folder, url, chance
        self.outcome = Outcome()
        self.took: dict[str, float] = {}
        self._numbers = count(1)
        self.template = self._place("template")
        self.template.host = hear(self._fill)[0] and old_stores.known(self.template.where)
        self.lines = [line.encode() for [line] in hear(self._export)]
        self._wanted: dict[str, dict[str, Any]] = {}

    async def _fill(self, say: Say) -> None:
        old_stores.put(self.template.where, old_stores.versions(self.template.where)[-1])
        await open_store(self.template.where).close()  # as new as can be
        say(True)

    async def _export(self, say: Say) -> None:
        store = open_store(self.template.where)
        async for line in export(store, SCOPE, [b.id for b in await store.branches(SCOPE)]):
            say(line.decode())
        await store.close()

    def _place(self, name: str) -> Place:
        folder = self.folder / name
        folder.mkdir()
        if self.url is None:
            return Place(str(folder / "store.db"), folder, Host())
        database = f"upkeep_{name}_{os.getpid()}"
        self._ask(f'create database "{database}" template template0')
        return Place(self.url.replace("/postgres?", f"/{database}?"), folder, Host())

    def _ask(self, statement: str) -> None:
        assert self.url is not None
        with psycopg.connect(self.url, autocommit=True) as db:
            db.execute(statement.encode())

    def ready(self, name: str) -> Place:
        """A place where an act can begin."""
        place = self._place(f"round{next(self._numbers)}")
        place.host, place.lines = self.template.host, self.lines
        if name in ("import log", "import session"):
            place.wanted = self._wanted.get(name, {})
            return place
        versions = old_stores.versions(place.where)
        version = (
            self.chance.choice([v for v in versions if v < len(migrations(old_stores.kind_of(place.where)))])
            if name == "migrate"
            else versions[-1]
        )

        async def prepare(say: Say) -> None:
            old_stores.put(place.where, version)
            if name != "migrate":
                store = open_store(place.where)
                await store.repair()  # what an older version indexed in its own way
                await store.close()
            if name == "restore":
                store = open_store(place.where)
                await store.backup(place.copy)
                await store.close()
                copy = SQLite(place.copy)
                await copy.purge(SCOPE, [min(place.host.names)], "so that they differ")
                await copy.close()

        hear(prepare)
        return place

    def round(self, name: str, kill: bool = True) -> None:
        """Let somebody begin an act, and kill him; then look."""
        place = self.ready(name)

        async def client(say: Say) -> None:
            say("begin", name)
            begun = time.perf_counter()
            await act(name, place)
            say("done", time.perf_counter() - begun)
            await asyncio.Event().wait()

        heard, told = os.pipe()
        child = fork(client, heard, told)
        os.close(told)
        said = listen(heard, 1)
        if kill:
            time.sleep(self.chance.uniform(0, 1.1 * self.took[name]))
        else:
            said += listen(heard, 1)
        said += end(child, heard)
        place.done = len(said) > 1
        if place.done:
            self.took[name] = said[1][1]
        if not kill and name.startswith("import"):
            [[self._wanted[name]]] = hear(_saying(lambda: sum_up(place.where)))
            place.wanted = self._wanted[name]
        [[(problems, mended)]] = hear(_saying(lambda: inspect(name, place)))
        self.outcome.problems += [f"{name}: {problem}" for problem in problems[:3]]
        self.outcome.mended.update(mended)
        if kill:
            self.outcome.kills += 1
            self.outcome.during["nothing" if place.done else name] += 1
        self.outcome.acknowledged[name] += place.done
        self._remove(place)

    def _remove(self, place: Place) -> None:
        if self.url is not None:
            name = conninfo_to_dict(place.where)["dbname"]
            self._ask(f'drop database "{name}" with (force)')

    def run(self, kills: int) -> Outcome:
        """So many, shared by the acts."""
        acts = ACTS if self.url is None else ON_SERVERS
        for name in acts:
            self.round(name, kill=False)
        for n in range(kills):
            self.round(acts[n % len(acts)])
        return self.outcome


def _saying(what: Callable[[], Awaitable[Any]]) -> Callable[[Say], Any]:
    async def client(say: Say) -> None:
        say(await what())

    return client


if __name__ == "__main__":
    kills, seed, folder, *url = sys.argv[1:]
    asyncio.run(warm_up(url[0] if url else folder))
    killer = Killer(Path(folder), url[0] if url else None, random.Random(int(seed)))
    json.dump(vars(killer.run(int(kills))), sys.stdout)
