"""A process that is killed in mid-conversation, and another that goes on with it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from frameworks.strands.talking import LONG, said, texts
from strands.session import FileSessionManager

from clew.adapters.strands import ClewAgentPlugin
from clew.testing import Answer

TALK = """
import os, signal, sys
from strands import Agent
from strands.models.openai import OpenAIModel
from strands.session import FileSessionManager
from clew.adapters.strands import ClewAgentPlugin

served = {"base_url": sys.argv[1], "api_key": "none"}
model = OpenAIModel(client_args=served, model_id="gpt-4o", context_window_limit=4_000)
sessions = FileSessionManager("s1", storage_dir="sessions")
agent = Agent(model=model, callback_handler=None, plugins=[ClewAgentPlugin("clew.db")], session_manager=sessions)
for n in range(10):
    agent(f"Turn {n}: host{n}.example. " + sys.argv[2])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_another_process_goes_on_where_one_was_killed(provide: Any, agent: Any, found: Any, tmp_path: Path) -> None:
    provider = provide([Answer("Noted.")])
    killed = subprocess.run([sys.executable, "-c", TALK, f"{provider.url}/v1", LONG], cwd=tmp_path)
    assert killed.returncode == -9
    assert len(provider.heard) == 10
    last = texts(provider.heard[-1].body)
    again = agent(
        provider, plugins=[ClewAgentPlugin("clew.db")], session_manager=FileSessionManager("s1", storage_dir="sessions")
    )
    assert len(said(again.messages)) == 20
    again("Go on.")
    sent = texts(provider.heard[-1].body)
    assert sent[: len(last)] == last  # the same stand-ins, and what was said since
    assert "host1.example" in found("s1", "host1.example")
