"""A process that is killed in mid-conversation, and another that goes on with it."""

import json
import subprocess
import sys
from pathlib import Path

from praisonaiagents import Agent

from clew import Budget, Engine, Sessions, SQLite, run
from clew.adapters.praisonai import ClewBackend
from clew.testing import Answer, StrictProvider

WINDOW = 4_000
TALK = """
import json, os, pathlib, signal, sys
from praisonaiagents import Agent
from clew import Budget, Engine, SQLite
from clew.adapters.praisonai import ClewBackend

engine = Engine(SQLite("clew.db"), Budget(window=4_000, high=0.7, low=0.5))
backend = ClewBackend("gpt-4o-mini", engine, session="work", base_url=sys.argv[1])
agent = Agent(name="worker", instructions="You take notes.", model=backend, output="silent", context=False)
for n in range(10):
    agent.chat(f"Turn {n}: host{n}.example. " + "detail " * 200)
pathlib.Path("history.json").write_text(json.dumps(agent.chat_history))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_another_process_goes_on_where_one_was_killed(tmp_path: Path) -> None:
    with StrictProvider([Answer("Noted.")], window=WINDOW) as provider:
        url = f"{provider.url}/v1"
        killed = subprocess.run([sys.executable, "-c", TALK, url], cwd=tmp_path)
        assert killed.returncode == -9
        assert len(provider.heard) == 10
        last = provider.heard[-1].body["messages"]
        engine = Engine(SQLite(tmp_path / "clew.db"), Budget(window=WINDOW, high=0.7, low=0.5))
        backend = ClewBackend("gpt-4o-mini", engine, session="work", base_url=url)
        again = Agent(name="worker", instructions="You take notes.", model=backend, output="silent", context=False)
        again.chat_history = json.loads((tmp_path / "history.json").read_text())
        again.chat("Go on.")
    sent = provider.heard[-1].body["messages"]
    assert sent[: len(last)] == last  # the same stand-ins, and what was said since
    assert len({session.branch for session in run(Sessions(engine).lineage("work"))}) == 1
    run(engine.store.close())
