"""An agent in a few lines: a model, tools, and clew, which keeps it inside its window.

own = Toolbox(tools(folder), Permissions())
agent = Agent(speaker("claude-sonnet-4-5"), ContextController(engine), own, session="work")
async for event in agent.run("Fix the failing test."): ...
"""

from typing import TYPE_CHECKING, Any

from clew.core.lazy import gone, loader

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
_load = loader(__name__, _HOMES)
_gone = gone(__name__, let_delegate="`agent.child(name)` is a sub-agent, which a tool of yours can run")


def __getattr__(name: str) -> Any:
    return _load(name) if name in __all__ else _gone(name)
