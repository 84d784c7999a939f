"""Clients that are killed, servers that are, and clients that come in crowds: nothing acknowledged is ever lost."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import crashing
import crashing_upkeep
import crowding
import outages
import postgres
import processes
import upkeeping

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there is no kill -9 on Windows")

# As many as CI has time for. `make kills` has 500 clients of each kind of store, and as many who look after one; 20
# servers, 5,000 additions.
MANY = int(os.environ.get("CLEW_KILLS", "12"))
OUTAGES, ADDITIONS, PROCESSES = (20, 5_000, 8) if MANY >= 500 else (2, 104, 4)
STORES = max(2, MANY // 25)
UPKEEP = MANY if MANY >= 500 else 8


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    """Of store."""
    return str(request.param)


@pytest.fixture
def stores(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """Where stores can be made that are not there yet."""
    if kind == "sqlite":
        return [str(tmp_path / f"{n}.db") for n in range(STORES)]
    server: postgres.Server = request.getfixturevalue("server")
    return [server.url(server.database()) for _ in range(STORES)]


def run(script: str | None, *given: object) -> dict[str, Any]:
    """In a process that has one thread and nothing else to do: a fork of this one would inherit what pytest does."""
    done = processes.run(str(script), *map(str, given))
    assert done.returncode == 0, done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout)
    sys.stdout.write(f"{outcome}\n")  # which act was cut off how often, for `make kills` to show
    return outcome


@pytest.mark.few(1)
def test_killed_clients_lose_nothing_acknowledged(kind: str, stores: list[str]) -> None:
    outcome = run(crashing.__file__, MANY, 1, *stores)
    assert outcome["problems"] == []
    assert outcome["kills"] == MANY
    assert set(outcome["acknowledged"]) <= set(crashing.GOALS) - {"open"}
    assert outcome["acknowledged"]["append"] > MANY
    if MANY >= 500:  # of a dozen clients one act or another may come too late
        assert set(outcome["acknowledged"]) == set(crashing.GOALS) - {"open"}
        assert set(outcome["during"]) >= set(crashing.GOALS), "every act was cut off at some time"


@pytest.mark.nightly
def test_killed_upkeep_loses_nothing(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: list[str] = [request.getfixturevalue("server").url()] if kind == "postgres" else []
    outcome = run(crashing_upkeep.__file__, UPKEEP, 1, tmp_path, *server)
    assert outcome["problems"] == []
    assert outcome["kills"] == UPKEEP
    acts = upkeeping.ACTS if kind == "sqlite" else upkeeping.ON_SERVERS
    assert set(outcome["acknowledged"]) == set(acts)
    if MANY >= 500:
        assert set(outcome["during"]) >= set(acts), "every act was cut off at some time"


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for the server's processes as Linux has them")
def test_a_killed_server_loses_nothing_acknowledged(server: postgres.Server) -> None:
    # One of its own, which is there if `server` is: with fsync, and nobody else's to kill.
    outcome = run(outages.__file__, OUTAGES, 1)
    assert outcome["problems"] == []
    assert outcome["kills"] == OUTAGES
    assert outcome["acknowledged"]["append"] > OUTAGES


@pytest.mark.few(1)
def test_many_processes_add_to_one_session(stores: list[str]) -> None:
    outcome = run(crowding.__file__, PROCESSES, ADDITIONS, stores[0])
    assert outcome["problems"] == []
    assert outcome["added"] == outcome["said"] == ADDITIONS
    assert outcome["compactions"] > 0
