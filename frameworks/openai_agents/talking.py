"""Tools, and models that use them, as tests of the session have them."""

from collections.abc import Callable
from typing import Any

from agents import Runner, function_tool
from frameworks.reading import contents

from clew.testing import Answer, Call

TURNS = 7
ROWS = 6_000


@function_tool
def read(path: str) -> str:
    """Read a file."""
    return contents(path, 110)


@function_tool
def dump() -> str:
    """Dump everything."""
    return "\n".join(f"row {n} is {n * 7}" for n in range(ROWS))


def said(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The items of Responses, or the messages of Chat."""
    items: list[dict[str, Any]] = body.get("messages") or body["input"]
    return items


def is_result(body: dict[str, Any]) -> bool:
    """Whether a request ends with what a tool gave back."""
    return said(body)[-1].get("role") == "tool" or said(body)[-1].get("type") == "function_call_output"


def names(body: dict[str, Any]) -> list[str]:
    """The tools that a model is offered."""
    return [(tool.get("function") or tool)["name"] for tool in body.get("tools") or ()]


def reading(reasoning: str = "") -> Callable[[dict[str, Any]], Answer]:
    """A model that reads two files a turn, at the same time."""
    parts = iter(range(0, 1_000, 2))

    def script(body: dict[str, Any]) -> Answer:
        if is_result(body):
            return Answer("Both are read.")
        n = next(parts)
        calls = (Call("read", {"path": f"part_{n}.py"}), Call("read", {"path": f"part_{n + 1}.py"}))
        return Answer(calls=calls, reasoning=reasoning)

    return script


async def awaited(agent: Any, text: str, session: Any, config: Any) -> Any:
    return (await Runner.run(agent, text, session=session, run_config=config)).final_output


async def streamed(agent: Any, text: str, session: Any, config: Any) -> Any:
    """A turn of which each event is seen when it comes."""
    running = Runner.run_streamed(agent, text, session=session, run_config=config)
    events = [event async for event in running.stream_events()]
    assert len(events) > 4
    return running.final_output
