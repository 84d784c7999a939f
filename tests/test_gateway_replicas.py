"""One of three gateways on one PostgreSQL is killed again and again, while clients work."""

import json
import os
import subprocess
import sys

import pytest

import postgres
import replicas

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there is no kill -9 on Windows")

# As many as CI has time for; `make kills` has 64 clients, and takes minutes.
MANY = int(os.environ.get("CLEW_KILLS", "12")) >= 500
CLIENTS, TURNS, PAUSE, SECONDS = (64, 30, 8.0, 10.0) if MANY else (4, 5, 0.2, 1.0)


@pytest.mark.nightly
def test_nothing_that_was_answered_is_lost(server: postgres.Server) -> None:
    given = map(str, (CLIENTS, TURNS, PAUSE, SECONDS, server.url(server.database())))
    done = subprocess.run([sys.executable, replicas.__file__, *given], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    sys.stdout.write(done.stdout)
    outcome = json.loads(done.stdout)
    assert outcome["problems"] == []
    assert outcome["kills"] > 0
    assert outcome["turns"] == CLIENTS * TURNS
    assert outcome["tries"].keys() <= {"1", "2"}, "one retry is enough"
    assert outcome["branches"] == CLIENTS, "nobody became two"
