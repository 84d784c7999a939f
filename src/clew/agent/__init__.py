"""An agent in a few lines: a model, tools, and clew, which keeps it inside its window.

agent = Agent(speaker("claude-sonnet-4-5"), Helm(engine), Workshop(tools(folder), Permissions()), session="work")
async for event in agent.run("Fix the failing test."): ...
"""

from clew.agent.delegating import Delegation, Report, let_delegate
from clew.agent.events import Answered, Compacted, Event, Ran, Retrying, Running
from clew.agent.loop import Agent, Hook

__all__ = [
    "Agent",
    "Answered",
    "Compacted",
    "Delegation",
    "Event",
    "Hook",
    "Ran",
    "Report",
    "Retrying",
    "Running",
    "let_delegate",
]
