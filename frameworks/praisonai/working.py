"""An agent of PraisonAI that reads one file after another."""

from frameworks.reading import WINDOW, Worked, contents
from praisonaiagents import Agent
from praisonaiagents.config.feature_configs import ExecutionConfig

from clew import Engine
from clew.adapters.praisonai import ClewBackend
from clew.testing import StrictProvider

__all__ = ["WINDOW", "work"]


def read(path: str) -> str:
    """Read a file."""
    return contents(path, 40)


def work(provider: StrictProvider, engine: Engine) -> Worked:
    backend = ClewBackend("gpt-4o-mini", engine, base_url=f"{provider.url}/v1")
    agent = Agent(
        name="reader",
        instructions="You read.",
        model=backend,
        tools=[read],
        output="silent",
        context=False,
        execution=ExecutionConfig(max_iter=100),
    )
    return Worked(str(agent.chat("Read all parts, and tell me their keys.")))
