"""Clew's own tools in the form of Strands, and who is offered them."""

import re
from collections.abc import Callable
from typing import Any

from strands import Agent
from strands.tools.tools import PythonAgentTool
from strands.types.content import Messages
from strands.types.tools import ToolResult, ToolResultStatus, ToolSpec, ToolUse

from clew.control import offered
from clew.core.items import SHORT
from clew.exchange.thread import Thread, warn
from clew.wire.formats.tools import Outcome, ToolDeclaration

_ID = re.compile(rf"\brecall [0-9a-f]{{{SHORT}}}\b")


def tool_of(tool: ToolDeclaration, thread_of: Callable[[Agent], Thread]) -> PythonAgentTool:
    """A tool of clew's; it is about the conversation of the agent that calls it."""

    async def answer(use: ToolUse, **state: Any) -> ToolResult:
        try:
            came = await thread_of(state["agent"]).answer(tool.name, use["input"])
        except Exception as error:
            warn(f"clew could not answer a call of {tool.name}", error)
            came = Outcome("Error: recall is unavailable right now; continue without it", failed=True)
        status: ToolResultStatus = "error" if came.failed else "success"
        return {"toolUseId": use["toolUseId"], "status": status, "content": [{"text": came.text}]}

    spec: ToolSpec = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": {"json": dict(tool.schema or {})},
    }
    return PythonAgentTool(tool.name, spec, answer)


def may_recall(agent: Agent, thread_of: Callable[[Agent], Thread], head: Messages) -> None:
    """Give an agent tools that look up what left its messages, once these name an id for it.

    Tools of its own that have these names stay.
    """
    if any(_ID.search(block.get("text", "")) for message in head for block in message["content"]):
        known = agent.tool_registry.registry
        tools = [tool for tool in offered("auto", False, "", "") if tool.name not in known]
        if tools:
            agent.tool_registry.process_tools([tool_of(tool, thread_of) for tool in tools])
