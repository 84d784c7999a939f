"""Tools, and models that use them, as tests of the middleware have them."""

import asyncio
from collections.abc import Callable
from typing import Any

from langchain_core.tools import tool

from clew.testing import Answer, Call

WINDOW = 8_000
TURNS = 7
ROWS = 6_000


def contents(path: str) -> str:
    """What is in a file: one line of interest."""
    number = int(path.removeprefix("part_").removesuffix(".py"))
    return "\n".join([f"KEY_{number} = {number * 4711}", *(f"{path} line {n} of no interest" for n in range(110))])


@tool
def read(path: str) -> str:
    """Read a file."""
    return contents(path)


@tool
def dump() -> str:
    """Dump everything."""
    return "\n".join(f"row {n} is {n * 7}" for n in range(ROWS))


def reading() -> Callable[[dict[str, Any]], Answer]:
    """A model that reads two files a turn, at the same time."""
    parts = iter(range(0, 1_000, 2))

    def script(body: dict[str, Any]) -> Answer:
        if role(body["messages"][-1]) == "user":
            n = next(parts)
            return Answer(calls=(Call("read", {"path": f"part_{n}.py"}), Call("read", {"path": f"part_{n + 1}.py"})))
        return Answer("Both are read.")

    return script


def role(message: dict[str, Any]) -> str:
    """Who speaks, where a provider has results in messages of the user's."""
    content = message.get("content")
    is_result = isinstance(content, list) and any(block.get("type") == "tool_result" for block in content)
    return "tool" if is_result else str(message["role"])


def blocking(agent: Any, said: str, config: Any = None) -> dict[str, Any]:
    """A turn of an agent that is not awaited."""
    told: dict[str, Any] = agent.invoke({"messages": [("user", said)]}, config)
    return told


def awaited(agent: Any, said: str, config: Any = None) -> dict[str, Any]:
    told: dict[str, Any] = asyncio.run(agent.ainvoke({"messages": [("user", said)]}, config))
    return told


def streamed(agent: Any, said: str, config: Any = None) -> dict[str, Any]:
    """A turn of which each token is seen when it comes."""
    tokens = [chunk for chunk, _ in agent.stream({"messages": [("user", said)]}, config, stream_mode="messages")]
    assert len(tokens) > 4
    told: dict[str, Any] = agent.get_state(config).values
    return told


def named(name: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}
