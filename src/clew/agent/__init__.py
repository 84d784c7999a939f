"""An agent in a few lines: a model, tools, and clew, which keeps it inside its window.

own = Toolbox(tools(folder), Permissions())
agent = Agent(speaker("claude-sonnet-4-5"), ContextController(engine), own, session="work")
async for event in agent.run("Fix the failing test."): ...
"""

from typing import TYPE_CHECKING

from clew.core.lazy import loader

if TYPE_CHECKING:
    from clew.agent.events import AgentEvent, Answered, Compacted, Ran, Retrying, Running
    from clew.agent.loop import Agent, Hook

__all__ = [
    "Agent",
    "AgentEvent",
    "Answered",
    "Compacted",
    "Hook",
    "Ran",
    "Retrying",
    "Running",
]

# Loaded when first used: a tool that runs in a process of its own needs none of it.
_HOMES = {
    "events": "AgentEvent Answered Compacted Ran Retrying Running",
    "loop": "Agent Hook",
}
__getattr__ = loader(__name__, _HOMES)
