"""What agents and models say here."""

from collections.abc import Iterator
from typing import Annotated, Any

from clew.testing import Answer, Call

TURNS = 9


def read(path: Annotated[str, "Which file"]) -> str:
    """Read a file."""
    number = int(path.removeprefix("part_").removesuffix(".py"))
    return "\n".join([f"KEY_{number} = {number * 4711}", *(f"{path} line {n} of no interest" for n in range(60))])


def reading(turns: int = TURNS) -> Iterator[Answer]:
    """A model that reads two files at once in each turn."""
    for n in range(0, 2 * turns, 2):
        yield Answer(calls=(Call("read", {"path": f"part_{n}.py"}), Call("read", {"path": f"part_{n + 1}.py"})))
        yield Answer(f"Read parts {n} and {n + 1}.")


async def talk(agent: Any, session: Any, turns: int = TURNS, stream: bool = False) -> None:
    for _ in range(turns):
        if stream:
            answer = agent.run("Read the next two parts.", session=session, stream=True)
            async for _update in answer:
                pass
            await answer.get_final_response()
        else:
            await agent.run("Read the next two parts.", session=session)
