"""A process that is killed in mid-conversation, and another that goes on with it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crewai import Agent

from clew import Engine
from clew.adapters.crewai import ClewCrewCompaction
from clew.testing import Answer, StrictProvider

TALK = """
import json, os, pathlib, signal, sys
from crewai import LLM, Agent
from clew import Budget, Engine, SQLite
from clew.adapters.crewai import ClewCrewCompaction

llm = LLM(model="openai/gpt-4o", base_url=sys.argv[1], api_key="none")
agent = Agent(role="Clerk", goal="Keep the books.", backstory="Careful.", llm=llm)
ClewCrewCompaction(Engine(SQLite("clew.db"), Budget(window=8_000, reserve=500))).attach(agent)
said = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"Page {n}. " + "detail " * 600} for n in range(21)]
came = agent.kickoff(said)
pathlib.Path("said.json").write_text(json.dumps([m for m in came.messages if m["role"] != "system"]))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_another_process_goes_on_where_one_was_killed(
    clerk: Callable[..., Agent], engine: Callable[..., Engine], tmp_path: Path
) -> None:
    with StrictProvider([Answer("Noted.")], window=8_000) as provider:
        killed = subprocess.run([sys.executable, "-c", TALK, f"{provider.url}/v1"], cwd=tmp_path)
        assert killed.returncode == -9
        agent = clerk(provider)
        ClewCrewCompaction(engine()).attach(agent)
        said: list[dict[str, Any]] = json.loads((tmp_path / "said.json").read_text())
        agent.kickoff([*said, {"role": "user", "content": "Go on."}])
    before, after = (heard.body["messages"] for heard in provider.heard)
    assert after[1 : len(before)] == before[1:]  # the same stand-ins, and what was said since
    assert len(str(after)) < len(str(said))
