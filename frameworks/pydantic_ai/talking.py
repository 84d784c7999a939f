"""What agents and models say here."""

from collections.abc import Iterator
from typing import Any

from pydantic_ai.messages import ModelMessage

from clew.testing import Answer, Call

TURNS = 9


def read(path: str) -> str:
    """Read a file."""
    number = int(path.removeprefix("part_").removesuffix(".py"))
    return "\n".join([f"KEY_{number} = {number * 4711}", *(f"{path} line {n} of no interest" for n in range(60))])


def reading(turns: int = TURNS) -> Iterator[Answer]:
    """A model that reads two files at once in each turn."""
    for n in range(0, 2 * turns, 2):
        yield Answer(calls=(Call("read", {"path": f"part_{n}.py"}), Call("read", {"path": f"part_{n + 1}.py"})))
        yield Answer(f"Read parts {n} and {n + 1}.")


async def talk(agent: Any, turns: int = TURNS, history: list[ModelMessage] | None = None) -> list[ModelMessage]:
    """A conversation of some turns, as its messages."""
    history = history or []
    for _ in range(turns):
        result = await agent.run("Read the next two parts.", message_history=history)
        history = result.all_messages()
    return history
