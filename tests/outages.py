"""A database server killed again and again while a client writes. python tests/outages.py KILLS SEED

The client stays, and goes on when the server is back. What it was told is written must be there, however the server
went.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress

import postgres
from clew import Budget, Engine, open_store
from clew.errors import StoreError
from crashing import (
    LINES,
    SPAN,
    WINDOW,
    Say,
    end,
    examine,
    fork,
    listen,
    take_down,
    warm_up,
    work,
)
from remembering import Host, Outcome

LOOK = 5  # outages between two looks at the store


def kill(server: postgres.Server) -> None:
    """The server and all its processes, at once."""
    lock = server.folder / "data" / "postmaster.pid"
    first = lock.read_text().split()[0]
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", first], capture_output=True, text=True, check=False)
    processes = [int(process) for process in (first, *found.stdout.split())]
    for process in processes:
        with suppress(ProcessLookupError):  # one of them served a client that was just gone
            os.kill(process, signal.SIGKILL)
    while any(map(_runs, processes)):
        time.sleep(0.01)
    for left in (lock, *server.folder.glob(".s.PGSQL.*.lock")):
        left.unlink()  # it names a process that may stay a zombie, which the next server would take for a living one


def _runs(process: int) -> bool:
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return bool(found.stdout.strip()) and not found.stdout.startswith("Z")


def outage(server: postgres.Server, where: str, host: Host, chance: random.Random, outcome: Outcome) -> None:
    """Let a client work, kill the server, and let the client go on."""
    seed = chance.random()

    async def client(say: Say) -> None:
        engine = Engine(open_store(where), Budget(window=WINDOW))
        while True:
            try:
                await work(engine, host, random.Random(seed), say)
            except StoreError:
                say("begin", "waiting")
                await asyncio.sleep(0.02)

    heard, told = os.pipe()
    child = fork(client, heard, told)
    os.close(told)
    said = listen(heard, chance.randrange(1, LINES))
    time.sleep(chance.uniform(0, SPAN))
    kill(server)
    while not said or said[-1] != ["begin", "waiting"]:
        said += listen(heard, 1)
    begun = [line[1] for line in said if line[0] == "begin"]
    outcome.kills += 1
    outcome.during[begun[begun.index("waiting") - 1]] += 1
    server.start()
    while said[-1][0] != "append":
        said += listen(heard, 1)
    take_down(said + end(child, heard), host, outcome)


def outages(kills: int, seed: int) -> Outcome:
    """So many of them, over one store."""
    programs = postgres.binaries()
    assert programs is not None, postgres.MISSING
    chance, outcome, host = random.Random(seed), Outcome(), Host()
    server = postgres.Server(programs)
    try:
        server.start()
        where = server.url(server.database())
        asyncio.run(warm_up(where))
        for n in range(1, kills + 1):
            outage(server, where, host, chance, outcome)
            if n == kills or n % LOOK == 0:
                examine(where, host, outcome)
    finally:
        server.remove()
    return outcome


if __name__ == "__main__":
    json.dump(vars(outages(int(sys.argv[1]), int(sys.argv[2]))), sys.stdout)
