"""A turn on its way to a server: one trip asks what decides, one writes it all and commits."""

from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

import postgres
from clew.core.items import Digests, Frame, Item
from clew.errors import Conflict
from clew.store.postgres.database import PostgresDatabase
from clew.store.postgres.opening import Address, StoreConnection, connect
from clew.store.records import Batch, Event, Pin, Said, Usage
from clew.store.writing import learn, write

SCOPE = "default"


def trips(connection: StoreConnection, file: Path, batch: Batch) -> int:
    """How often a client had to wait for the server while it wrote something."""
    with file.open("w+") as trace:
        connection.pgconn.trace(trace.fileno())
        try:
            write(PostgresDatabase(connection), b"", SCOPE, batch)
        finally:
            connection.pgconn.untrace()
        trace.seek(0)
        # A line a message, with the time, its way (forward or back) and its size.
        ways = [line.split("\t")[1] for line in trace.read().splitlines() if line.count("\t") > 2]
    return list(pairwise(ways)).count(("F", "B"))


def test_a_turn_is_two_trips(server: postgres.Server, tmp_path: Path) -> None:
    url = server.url(server.database("template"))
    with closing(connect(Address(url, "clew"))) as connection:
        db, digests, file = PostgresDatabase(connection), Digests(b"", SCOPE), tmp_path / "trace"
        nodes = tuple(digests.chain(Item("text", "user", f"word {n}") for n in range(12)))
        turns: list[tuple[Event, ...]] = [(Said(nodes[n : n + 3]), Pin((nodes[n].id,))) for n in range(0, 12, 3)]
        turns.append((Usage(0, {"input": 1}, 0.5),))
        for n, events in enumerate(turns):
            learned = (("kind", "name", {"n": n}),)
            frame = Frame("openai_chat", "gpt-4o", system="zebra " * 500, body={"user": str(n)})
            frames = ((digests.frame(frame), frame),)
            batch = Batch("b", 2 * n, events, opened=not n, heads=("ab" * 16,), frames=frames, learned=learned)
            assert trips(connection, file, batch) == 2
        with pytest.raises(Conflict):
            trips(connection, file, batch)
        learn(db, SCOPE, "kind", "other", {})
        assert sorted(db.ask("learned", scope=SCOPE, kind="kind")) == [("name", '{"n":4}'), ("other", "{}")]
        assert db.ask("newest_event", branch="b").fetchone() == (8,)
