"""Turns of a conversation."""

from typing import Any

from frameworks.reading import TURNS
from pydantic_ai.messages import ModelMessage


async def talk(agent: Any, turns: int = TURNS, history: list[ModelMessage] | None = None) -> list[ModelMessage]:
    """A conversation of some turns, as its messages."""
    history = history or []
    for _ in range(turns):
        result = await agent.run("Read the next two parts.", message_history=history)
        history = result.all_messages()
    return history
