"""An agent of Inspect AI that reads one file after another."""

import os
from pathlib import Path

from frameworks.inspect_ai.reading import THRESHOLD, model_of
from frameworks.reading import WINDOW, Worked, contents
from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.agent import AgentPrompt, react
from inspect_ai.dataset import Sample
from inspect_ai.event import ModelEvent
from inspect_ai.tool import Tool, tool

from clew import Engine
from clew.adapters.inspect_ai import ClewCompaction
from clew.testing import StrictProvider

__all__ = ["WINDOW", "work"]


@tool
def read() -> Tool:
    async def execute(path: str) -> str:
        """Read a file.

        Args:
            path: Which one.
        """
        return contents(path, 40)

    return execute


def work(provider: StrictProvider, engine: Engine, offer: bool = True) -> Worked:
    os.chdir(Path.home())  # Inspect writes beside whoever runs it
    compaction = ClewCompaction(engine, threshold=THRESHOLD)
    tools = [read(), *(compaction.tools if offer else ())]
    agent = react(prompt=AgentPrompt("You read."), tools=tools, compaction=compaction, submit=False)
    task = Task([Sample("Read all parts, and tell me their keys.")], solver=agent)
    (log,) = evaluate(task, model_of(provider), log_dir="logs", display="none", max_tokens=500)
    assert log.samples, log.error
    calls = [event for event in log.samples[0].events if isinstance(event, ModelEvent)]
    return Worked(log.samples[0].output.completion, len(calls))
