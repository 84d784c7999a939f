"""Clients that are killed, and clients that come in crowds: nothing that anybody was told is written is lost."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import clew
import crashing
import crowding

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there is no kill -9 on Windows")

STORES = 10


@pytest.fixture
def stores(tmp_path: Path) -> list[str]:
    """Where stores can be made that are not there yet."""
    return [str(tmp_path / f"{n}.db") for n in range(STORES)]


def run(script: str | None, *given: object) -> dict[str, Any]:
    """In a process that has one thread and nothing else to do: a fork of this one would inherit what pytest does."""
    command = [sys.executable, str(script), *map(str, given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def test_500_kills_lose_nothing_acknowledged(stores: list[str]) -> None:
    outcome = run(crashing.__file__, 500, 1, *stores)
    assert outcome["problems"] == []
    assert outcome["kills"] == 500
    assert outcome["during"].keys() >= {"open", "append", "record", "compact"}, "every act was cut off at some time"
    assert outcome["acknowledged"].keys() == {"append", "record", "pin", "compact"}


@pytest.mark.skipif(not hasattr(clew, "Addition"), reason="nobody can add to a session without its history yet")
def test_8_processes_add_to_one_session(stores: list[str]) -> None:
    outcome = run(crowding.__file__, 8, 5_000, stores[0])
    assert outcome["problems"] == []
    assert outcome["added"] == outcome["said"] == 5_000
    assert outcome["compactions"] > 0
