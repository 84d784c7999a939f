"""An agent in a few lines: a model, tools, and clew, which keeps it inside its window.

agent = Agent(speaker("claude-sonnet-4-5"), Helm(engine), Workshop(tools(folder), Permissions()), session="work")
async for event in agent.run("Fix the failing test."): ...
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

# Loaded when first used: a tool that runs in a process of its own needs none of it.
_HOMES = {
    "delegating": "Delegation Report let_delegate",
    "events": "Answered Compacted Event Ran Retrying Running",
    "loop": "Agent Hook",
}
_HOME = {name: f"clew.agent.{module}" for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'clew.agent' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value
