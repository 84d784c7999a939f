"""Turns of a conversation."""

from typing import Any

from frameworks.reading import TURNS


async def talk(agent: Any, session: Any, turns: int = TURNS, stream: bool = False) -> None:
    for _ in range(turns):
        if stream:
            answer = agent.run("Read the next two parts.", session=session, stream=True)
            async for _update in answer:
                pass
            await answer.get_final_response()
        else:
            await agent.run("Read the next two parts.", session=session)
