"""An agent of ADK that reads one file after another."""

import asyncio
from typing import Any

from frameworks.adk.talking import runner, say
from frameworks.reading import WINDOW, Worked, contents
from google.adk.agents import Agent, InvocationContext
from google.adk.models import Gemini
from google.adk.plugins.base_plugin import BasePlugin

from clew import Engine
from clew.adapters.adk import ClewPlugin
from clew.testing import StrictProvider

__all__ = ["WINDOW", "work"]


def read(path: str) -> str:
    """Read a file."""
    return contents(path, 40)


class Counting(BasePlugin):
    """How many calls of models ADK counted in a run."""

    calls = 0

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        counted: Any = invocation_context._invocation_cost_manager
        self.calls = counted._number_of_llm_calls


def work(provider: StrictProvider, engine: Engine) -> Worked:
    model, counting = Gemini(model="gemini-3-pro", base_url=provider.url), Counting("counting")
    agent = Agent(name="reader", model=model, instruction="You read.", tools=[read])
    answer = asyncio.run(say(runner(agent, ClewPlugin(engine), counting), "Read all parts, and tell me their keys."))
    return Worked(answer, counting.calls)
