"""A disaster, on purpose: a store that is backed up while it is written to, lost, restored, and gone on with."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

import postgres
from clew import Budget, Engine, Request, body, open_store
from clew.store import restore
from clew.store.places import is_url

CLIENTS, TURNS = 3, 12
MOST = 1_000  # turns, while a backup is made
SMALL = Budget(window=1_500, reserve=100)  # so that histories are compacted


class Client:
    """Re-sends its whole history each turn, as chat clients do; keeps what was sent on, by call."""

    def __init__(self, number: int) -> None:
        self.name = None if number % 2 else f"client {number}"
        self.messages: list[dict[str, Any]] = []
        for n in range(MOST):
            self.messages += [{"role": "user", "content": f"{number}.{n}: {'and so on ' * 20}"}]
            self.messages += [{"role": "assistant", "content": f"Done with {number}.{n}."}]
        self.ends = range(1, 2 * MOST, 2)
        self.turn = 0
        self.sent: dict[tuple[str, int], list[Any]] = {}

    def newest(self) -> dict[str, Any]:
        return self.messages[self.ends[self.turn - 1] - 1]

    def request(self) -> Request:
        end = self.ends[self.turn]
        return Request({"model": "gpt-4o", "messages": self.messages[:end]}, session=self.name)

    async def say(self, engine: Engine) -> None:
        view = await engine.prepare(self.request())
        self.turn += 1
        self.sent[view.branch, view.seq] = body(view)["messages"]


async def back_up(place: str, copy: Path, programs: Path | None) -> None:
    """As docs/stores.md says."""
    if is_url(place):
        await command(programs, "pg_dump", "--format=custom", f"--file={copy}", place)
        return
    store = open_store(place)
    await store.backup(copy)
    await store.close()


async def lose_and_restore(place: str, copy: Path, server: postgres.Server | None) -> None:
    if server is None:
        for path in Path(place).parent.glob(f"{Path(place).name}*"):
            path.unlink()
        restore(copy, Path(place))
        return
    name = place.split("?")[0].rpartition("/")[2]
    server.ask(f"drop database {name} with (force)")
    server.ask(f"create database {name} template template0")
    await command(server.programs, "pg_restore", "--exit-on-error", f"--dbname={place}", str(copy))


async def command(programs: Path | None, name: str, *args: str) -> None:
    assert programs is not None
    process = await asyncio.create_subprocess_exec(programs / name, *args, stderr=subprocess.PIPE)
    _, told = await process.communicate()
    assert process.returncode == 0, told.decode()


@pytest.mark.few(1)
async def test_a_store_that_was_lost_comes_back_as_it_was_backed_up(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server: postgres.Server | None = request.getfixturevalue("server") if is_url(place) else None
    clients, copy = [Client(n) for n in range(CLIENTS)], tmp_path / "backup"
    store = open_store(place)
    engine = Engine(store, SMALL)
    for _ in range(TURNS):
        await asyncio.gather(*(client.say(engine) for client in clients))
    before = [dict(client.sent) for client in clients]
    backup = asyncio.create_task(back_up(place, copy, server.programs if server else None))
    while not backup.done():  # nobody stops writing meanwhile
        for client in clients:
            await client.say(engine)
    await backup
    for client in clients:
        await client.say(engine)  # which is in no backup
    await store.close()

    await lose_and_restore(place, copy, server)
    store = open_store(place)
    assert await store.check(deep=True) == []
    engine = Engine(store, SMALL)
    for client, known in zip(clients, before, strict=True):
        for (branch, seq), messages in known.items():
            [call] = [call for call in await store.calls("default", branch) if (call.branch, call.seq) == (branch, seq)]
            assert body(await engine.resume("default", call))["messages"] == messages
        await client.say(engine)  # its whole history, with what the backup did not have
        (last, _), (now, _) = list(known)[-1], list(client.sent)[-1]
        assert now == last  # it is recognised, and goes on where it was
        said = (await store.load("default", now)).said
        whole = await store.nodes("default", [node.id for node in said])
        assert whole[said[-1].id].item.text == client.newest()["content"]
        assert len(said) == client.ends[client.turn - 1]
    assert await store.check(deep=True) == []
    await store.close()
